//! Tests that use the command line as people and scripts do.
#![cfg(unix)]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

mod browser;
#[cfg(target_os = "linux")]
mod cgroups;
#[cfg(target_os = "linux")]
mod chain;
mod cloud_events;
mod clouds;
mod compound;
mod control_characters;
mod credentials;
mod crowds;
mod dashboard;
mod descendants;
mod environment;
mod fake_s3;
mod first_contact;
mod following;
mod foreign_records;
mod forgotten;
mod generated;
mod giving_up;
mod guides;
mod health;
mod history;
mod hooks;
mod hung;
mod intervene;
mod jobs;
mod last_words;
mod lease_api;
mod list;
mod logs;
mod loss;
mod metrics;
mod migration;
mod notify;
mod once;
mod other_user;
mod peers;
mod pipe;
mod probe;
mod purpose;
mod recipes;
mod run;
mod s3;
mod serve;
mod service;
mod sessions;
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
#[cfg(target_os = "linux")]
mod uninterruptible;
mod waiting;
mod watch;
mod watchdog;
mod without_certificates;
mod words;
mod zombies;
