//! The buckets of the parts of a lock: local directories, or buckets of a server.

use std::fs;
use std::process::Command;

use leaderelection_integration_tests::servers::seaweedfs::SeaweedFs;
use tokio::runtime::Runtime;

use crate::support::{Place, leaderelect};

/// The buckets of a lock's parts. An attacker has the keys of some of them.
pub(super) trait Buckets {
    fn lock(&self, part: &str) -> String;
    fn command(&self, args: &[&str]) -> Command;
    /// Creates the buckets of all parts, of which those that are `away` cannot be used.
    fn create(&self, here: &[String], away: &[String]);
    /// Makes the buckets available that were away.
    fn restore(&self, away: &[String]);
    fn body(&self, part: &str) -> Vec<u8>;
    fn put(&self, part: &str, body: &str);
}

impl Buckets for Place {
    fn lock(&self, part: &str) -> String {
        self.file(&format!("{part}/worker"))
    }

    fn command(&self, args: &[&str]) -> Command {
        leaderelect(args)
    }

    fn create(&self, here: &[String], away: &[String]) {
        here.iter().chain(away).for_each(|part| fs::create_dir(self.path(part)).unwrap());
        away.iter().for_each(|part| self.cut_off(part));
    }

    fn restore(&self, away: &[String]) {
        away.iter().for_each(|part| self.put_back(part));
    }

    fn body(&self, part: &str) -> Vec<u8> {
        Self::body(self, &format!("{part}/worker"))
    }

    fn put(&self, part: &str, body: &str) {
        Self::put(self, &format!("{part}/worker"), body);
    }
}

/// The buckets of one cell on a server.
pub(super) struct S3Buckets<'a> {
    pub(super) server: &'a SeaweedFs,
    pub(super) runtime: &'a Runtime,
    pub(super) cell: usize,
}

impl S3Buckets<'_> {
    fn bucket(&self, part: &str) -> String {
        format!("cell-{}-{part}", self.cell)
    }
}

impl Drop for S3Buckets<'_> {
    /// The server has room for few buckets.
    fn drop(&mut self) {
        let client = self.server.client();
        for part in ["a", "b", "c", "d", "e"] {
            let bucket = self.bucket(part);
            self.runtime.block_on(async {
                let _ = client.delete_object().bucket(&bucket).key("worker").send().await;
                let _ = client.delete_bucket().bucket(&bucket).send().await;
            });
        }
    }
}

impl Buckets for S3Buckets<'_> {
    fn lock(&self, part: &str) -> String {
        format!("s3://{}/worker?endpoint={}", self.bucket(part), self.server.url())
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = leaderelect(args);
        command.envs(self.server.environment());
        command
    }

    fn create(&self, here: &[String], _away: &[String]) {
        // A bucket that does not exist cannot be used.
        self.restore(here);
    }

    fn restore(&self, away: &[String]) {
        away.iter().for_each(|part| self.runtime.block_on(self.server.create_bucket(&self.bucket(part))));
    }

    fn body(&self, part: &str) -> Vec<u8> {
        let get = self.server.client().get_object().bucket(self.bucket(part)).key("worker");
        self.runtime.block_on(async { get.send().await.unwrap().body.collect().await.unwrap().to_vec() })
    }

    fn put(&self, part: &str, body: &str) {
        let put = self.server.client().put_object().bucket(self.bucket(part)).key("worker");
        self.runtime.block_on(put.body(body.as_bytes().to_vec().into()).send()).unwrap();
    }
}
