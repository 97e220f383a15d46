//! Tests that use the command line as people and scripts do.
#![cfg(unix)]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]
#![cfg_attr(
    not(feature = "all-tests"),
    allow(dead_code, unused_imports, reason = "some of it is for tests that take long")
)]

#[cfg(feature = "all-tests")]
mod browser;
#[cfg(all(feature = "all-tests", target_os = "linux"))]
mod cgroups;
#[cfg(all(feature = "all-tests", target_os = "linux"))]
mod chain;
#[cfg(feature = "all-tests")]
mod cloud_events;
mod clouds;
#[cfg(feature = "all-tests")]
mod compound;
mod control_characters;
mod credentials;
#[cfg(feature = "all-tests")]
mod crowds;
mod dashboard;
mod descendants;
mod environment;
mod fake_s3;
mod first_contact;
#[cfg(feature = "all-tests")]
mod following;
#[cfg(feature = "all-tests")]
mod foreign_records;
#[cfg(feature = "all-tests")]
mod forgotten;
#[cfg(all(feature = "all-tests", target_os = "linux"))]
mod freezes;
mod generated;
mod giving_up;
#[cfg(feature = "all-tests")]
mod guides;
mod health;
mod history;
mod hooks;
#[cfg(feature = "all-tests")]
mod hostile_parts;
#[cfg(feature = "all-tests")]
mod hung;
mod intervene;
mod jobs;
#[cfg(feature = "all-tests")]
mod last_words;
mod lease_api;
mod list;
#[cfg(feature = "all-tests")]
mod logs;
mod loss;
mod metrics;
#[cfg(feature = "all-tests")]
mod migrating;
#[cfg(feature = "all-tests")]
mod migration;
mod notify;
mod once;
#[cfg(feature = "all-tests")]
mod other_user;
#[cfg(target_os = "linux")]
mod overlay;
mod peers;
mod pipe;
mod probe;
mod purpose;
#[cfg(feature = "all-tests")]
mod recipes;
mod run;
mod s3;
mod serve;
mod service;
mod sessions;
#[cfg(feature = "all-tests")]
mod short;
#[cfg(target_os = "linux")]
mod shortages;
mod signals;
mod slots;
mod status;
mod stderr;
mod store_clock;
mod support;
mod terminal;
#[cfg(all(feature = "all-tests", target_os = "linux"))]
mod uninterruptible;
mod waiting;
mod watch;
mod watchdog;
mod without_certificates;
#[cfg(feature = "all-tests")]
mod words;
mod zombies;
