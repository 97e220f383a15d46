//! Ceph's gateway, an S3-compatible server that compares ETags without their quotes.
//!
//! No package registry of a language has it, so the tests use it only where the system has it installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use aws_sdk_s3::Client;
use aws_sdk_s3::config::Credentials;

use super::process::{ServerProcess, free_ports, start_on_free_ports};
use super::{s3_client, unique_name};

const NAME: &str = "ceph";
const PROGRAMS: [&str; 7] = ["ceph", "ceph-authtool", "ceph-mon", "ceph-osd", "monmaptool", "radosgw", "radosgw-admin"];
const GATEWAY_STARTS_WITHIN: Duration = Duration::from_secs(120);

/// A running cluster of one monitor, one daemon that keeps its objects in memory, and one gateway without buckets.
#[derive(Debug)]
pub struct Ceph {
    // Fields are dropped in order: a gateway without its cluster does nothing but wait.
    _gateway: ServerProcess,
    _storage: ServerProcess,
    _monitor: ServerProcess,
    port: u16,
    access_key: String,
    secret_key: String,
}

impl Ceph {
    /// Starts the cluster in `directory` on free ports, or returns the reason why it cannot run here.
    ///
    /// # Errors
    ///
    /// If a program of Ceph is not installed.
    ///
    /// # Panics
    ///
    /// If the installed programs do not start.
    pub fn start(directory: &Path) -> Result<Self, String> {
        let missing = PROGRAMS.iter().find(|program| !is_installed(program));
        match missing {
            Some(program) => Err(format!(
                "`{program}` is not installed; Debian has it in radosgw, ceph-mon and ceph-osd, to be installed with \
                 --no-install-recommends"
            )),
            None => Ok(start_on_free_ports(directory, NAME, Self::try_start)),
        }
    }

    fn try_start(directory: PathBuf) -> Result<Self, String> {
        let beside = |part: &str| {
            let path = directory.with_extension(part);
            fs::create_dir_all(&path).map(|()| path).expect("cannot create a server's directory")
        };
        let (storage_directory, gateway_directory) = (beside("storage"), beside("gateway"));
        let (port, cluster_id, storage_id) = (free_ports(2, 0), uuid()?, uuid()?);
        let (access_key, secret_key) = (unique_name(), unique_name());
        let file = |name: &str| directory.join(name).display().to_string();
        let (keyring, map) = (file("keyring"), file("monmap"));
        let monitor_address = format!("[v2:127.0.0.1:{}]", port + 1);
        let settings = format!(
            "[global]\n\
             fsid = {cluster_id}\n\
             mon host = {monitor_address}\n\
             ms bind msgr1 = false\n\
             public addr = 127.0.0.1\n\
             keyring = {keyring}\n\
             admin socket =\n\
             pid file =\n\
             log file = {}/$name.log\n\
             crash dir = {}\n\
             mon data = {}\n\
             mon allow pool size one = true\n\
             osd data = {}\n\
             osd objectstore = memstore\n\
             osd pool default size = 1\n\
             osd pool default min size = 1\n\
             osd pool default pg num = 4\n\
             osd pool default pgp num = 4\n\
             osd pool default pg autoscale mode = off\n\
             osd crush chooseleaf type = 0\n\
             rgw frontends = beast endpoint=127.0.0.1:{port}\n",
            directory.display(),
            directory.display(),
            directory.join("monitor").display(),
            storage_directory.join("data").display(),
        );
        fs::create_dir_all(directory.join("monitor")).map_err(|error| error.to_string())?;
        fs::create_dir_all(storage_directory.join("data")).map_err(|error| error.to_string())?;
        fs::write(directory.join("ceph.conf"), settings).map_err(|error| error.to_string())?;
        let conf = file("ceph.conf");
        let run = |program: &str, arguments: &[&str]| run(program, &conf, arguments);

        let allow_all = ["--cap", "mon", "allow *", "--cap", "osd", "allow *", "--cap", "mgr", "allow *"];
        run("ceph-authtool", &["-C", &keyring, "--gen-key", "-n", "mon.", "--cap", "mon", "allow *"])?;
        run("ceph-authtool", &[&[&*keyring, "--gen-key", "-n", "client.admin"], &allow_all[..]].concat())?;
        run("monmaptool", &["--create", "--fsid", &cluster_id, "--addv", "a", &monitor_address, &map])?;
        run("ceph-mon", &["-i", "a", "--mkfs", "--monmap", &map, "--keyring", &keyring])?;
        let monitor = daemon("ceph-mon", &conf, &["-i", "a", "-f"], directory.clone());

        run("ceph", &["--connect-timeout", "60", "osd", "new", &storage_id])?;
        let key = run("ceph", &["auth", "get-or-create", "osd.0", "mon", "allow profile osd", "osd", "allow *"])?;
        let keys = fs::read_to_string(&keyring).map_err(|error| error.to_string())? + &key;
        fs::write(&keyring, keys).map_err(|error| error.to_string())?;
        run("ceph-osd", &["-i", "0", "--mkfs", "--osd-uuid", &storage_id])?;
        let storage = daemon("ceph-osd", &conf, &["-i", "0", "-f"], storage_directory);

        let mut gateway = daemon("radosgw", &conf, &["-n", "client.admin", "-f"], gateway_directory);
        gateway.wait_until_answering(port, "/", 200, GATEWAY_STARTS_WITHIN)?;
        let user = ["user", "create", "--uid", "test", "--display-name", "test"];
        let keys = ["--access-key", &access_key, "--secret-key", &secret_key];
        run("radosgw-admin", &[&user[..], &keys[..]].concat())?;
        Ok(Self { _gateway: gateway, _storage: storage, _monitor: monitor, port, access_key, secret_key })
    }

    /// A client with all permissions.
    #[must_use]
    pub fn client(&self) -> Client {
        let credentials = Credentials::new(&self.access_key, &self.secret_key, None, None, "test");
        s3_client::new(&format!("http://127.0.0.1:{}", self.port), credentials)
    }
}

fn is_installed(program: &str) -> bool {
    let mut version = Command::new(program);
    version.arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

fn daemon(program: &str, conf: &str, arguments: &[&str], directory: PathBuf) -> ServerProcess {
    let mut server = Command::new(program);
    server.args(["-c", conf]).args(arguments);
    ServerProcess::start(&server, directory)
}

/// Runs a program to its end, and returns what it printed.
fn run(program: &str, conf: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program).args(["-c", conf]).args(arguments).output();
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn uuid() -> Result<String, String> {
    let uuid = fs::read_to_string("/proc/sys/kernel/random/uuid").map_err(|error| error.to_string())?;
    Ok(uuid.trim().to_owned())
}
