//! Azurite, Microsoft's own emulator of Azure Blob Storage.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use azure_core::base64;
use azure_storage_blob::BlobContainerClient;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use super::npm::{self, Packages};
use super::process::{ServerProcess, free_ports, start_on_free_ports};
use super::random;

const NAME: &str = "azurite-3.37.0";

/// The packages of Azurite. Half of them would belong to a telemetry client, which is off: the manifest
/// replaces that client with a small unrelated package.
const PACKAGES: Packages = Packages {
    manifest: include_str!("../../requirements/azurite/package.json"),
    lock: include_str!("../../requirements/azurite/package-lock.json"),
};

const ACCOUNT: &str = "account";

/// A module that Node.js loads first. Azurite waits for the disk at each write, which takes half a second while the machine
/// writes back what a build has left. No test loses the power, so that nothing needs what is on the disk itself.
const NO_WAIT_FOR_THE_DISK: &str =
    "--import=data:text/javascript,import%20fs%20from%22node:fs%22;fs.fdatasync=(_,done)=>done(null)";

/// A running server with an account of its own and no containers.
#[derive(Debug)]
pub struct Azurite {
    process: ServerProcess,
    port: u16,
    key: String,
}

impl Azurite {
    /// Installs the server in `directory` if need be, and starts it on a free port.
    ///
    /// # Panics
    ///
    /// If the installation or the start fails. The message names the missing program.
    #[must_use]
    pub fn start(directory: &Path) -> Self {
        let program = npm::install(directory, NAME, PACKAGES).join("node_modules/.bin/azurite-blob");
        start_on_free_ports(directory, NAME, |data| Self::try_start(&program, data))
    }

    fn try_start(program: &Path, data: PathBuf) -> Result<Self, String> {
        let port = free_ports(1, 0);
        let key = base64::encode(format!("{:016x}{:016x}", random(), random()));

        let mut server = Command::new(program);
        server.env("AZURITE_ACCOUNTS", format!("{ACCOUNT}:{key}")).env("NODE_OPTIONS", NO_WAIT_FOR_THE_DISK);
        server.args(["--blobHost", "127.0.0.1", "--silent", "--disableTelemetry"]);
        server.arg("--blobPort").arg(port.to_string()).arg("--location").arg(&data);
        // The default of five seconds would close connections during the requests of a slow test.
        server.args(["--blobKeepAliveTimeout", "3600"]);

        let mut process = ServerProcess::start(&server, data);
        // The server has no health page, but refuses an unsigned listing.
        process.wait_until_answering(port, &format!("/{ACCOUNT}?comp=list"), 403, Duration::from_secs(60))?;
        Ok(Self { process, port, key })
    }

    /// The process, which a test may end, freeze and start again.
    pub fn process(&mut self) -> &mut ServerProcess {
        &mut self.process
    }

    /// The name of the storage account, and its key.
    #[must_use]
    pub fn account_key(&self) -> (&str, &str) {
        (ACCOUNT, &self.key)
    }

    /// The URL of the server, such as `http://127.0.0.1:12345`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The URL of a container, such as `http://127.0.0.1:12345/account/container`.
    #[must_use]
    pub fn container_url(&self, container: &str) -> String {
        format!("{}/{ACCOUNT}/{container}", self.url())
    }

    /// A credential with the account's key.
    #[must_use]
    pub fn connection_string(&self) -> String {
        let endpoint = format!("{}/{ACCOUNT}", self.url());
        format!("AccountName={ACCOUNT};AccountKey={};BlobEndpoint={endpoint};", self.key)
    }

    /// A SAS for `permissions`, such as `rwdlc`, in the whole account.
    #[must_use]
    pub fn sas(&self, permissions: &str) -> String {
        account_sas(ACCOUNT, &self.key, permissions)
    }

    /// A client for `container` with all permissions.
    #[must_use]
    pub fn container(&self, container: &str) -> BlobContainerClient {
        let url = format!("{}?{}", self.container_url(container), self.sas("rwdlc"));
        BlobContainerClient::new(url.parse().expect("a URL"), None, None).expect("a client")
    }
}

/// A SAS for `permissions` in the whole account, signed with the account's key.
///
/// <https://learn.microsoft.com/rest/api/storageservices/create-account-sas>
///
/// # Panics
///
/// If the key is not base64.
#[must_use]
pub fn account_sas(account: &str, key: &str, permissions: &str) -> String {
    let (version, expiry) = ("2022-11-02", "2099-01-01T00:00:00Z");
    let text = format!("{account}\n{permissions}\nb\nsco\n\n{expiry}\n\n\n{version}\n\n");
    let key = base64::decode(key).expect("the key is base64");
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("a key may have any length");
    mac.update(text.as_bytes());
    let signature = base64::encode(mac.finalize().into_bytes()).replace('+', "%2B").replace('/', "%2F");
    format!("sv={version}&ss=b&srt=sco&sp={permissions}&se={expiry}&sig={}", signature.replace('=', "%3D"))
}
