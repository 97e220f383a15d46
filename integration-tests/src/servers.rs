//! The servers of the tests: real servers, and one that misbehaves on command.

use std::hash::{BuildHasher as _, RandomState};

pub mod azurite;
#[cfg(target_os = "linux")]
pub mod ceph;
pub mod express;
pub mod fake_gcs;
#[cfg(target_os = "linux")]
pub mod fake_gcs_server;
mod install;
pub mod kube_api;
pub mod npm;
pub mod oss;
pub mod pip;
pub mod process;
pub mod racy_s3;
mod s3_client;
pub mod scripted;
pub mod seaweedfs;
pub mod tls;

/// Returns a name that no other test uses.
#[must_use]
pub fn unique_name() -> String {
    format!("{:016x}", random())
}

fn random() -> u64 {
    RandomState::new().hash_one(())
}
