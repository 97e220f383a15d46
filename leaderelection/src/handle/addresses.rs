//! The methods of a handle that read the leader's addresses and change this elector's address for clients.

use crate::handle::status::LeaderHandle;
use crate::timings::config_error::ConfigError;

impl LeaderHandle {
    /// The address that the leader [advertises](crate::LeaderElectionConfigBuilder::advertise), for requests that only
    /// the leader may serve; `None` if nobody is known to lead, or if the leader advertises no address.
    ///
    /// Anyone who can write the lock can put any address there. So authenticate the server before you send a secret.
    #[must_use]
    pub fn leader_address(&self) -> Option<String> {
        self.status().leader_address
    }

    /// The address that the leader [advertises to clients](crate::LeaderElectionConfigBuilder::advertise_to_clients).
    /// If the leader has no address for clients, this is [`leader_address`](Self::leader_address).
    #[must_use]
    pub fn client_address(&self) -> Option<String> {
        self.status().client_address
    }

    /// Changes the address that this elector [advertises to
    /// clients](crate::LeaderElectionConfigBuilder::advertise_to_clients), for the current term and later ones; `None`
    /// removes it. A leader writes the new address with its next renewal.
    ///
    /// ```
    /// # use leaderelection::{DefaultLeaderElector, Elector, LeaderElectionConfig, MemoryLock, MemoryStore};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let lock = MemoryLock::new(MemoryStore::new(), "locks/scheduler", "node-1");
    /// let config = LeaderElectionConfig::builder(lock, ())
    ///     .advertise("https://10.0.1.42:8443/health/leadership")
    ///     .advertise_to_clients("https://10.0.1.42/api")
    ///     .build()?;
    /// let elector = DefaultLeaderElector::new(config);
    /// let mut handle = elector.handle();
    /// tokio::spawn(async move { elector.campaign(std::future::pending()).await });
    /// handle.elected().await?;
    /// // Redirect requests that only the leader may serve.
    /// assert_eq!(handle.client_address().as_deref(), Some("https://10.0.1.42/api"));
    /// handle.advertise_to_clients(Some("https://10.0.1.42:9443/api".to_owned()))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If the URL is invalid; the error shows it and the problem. Fails for the lock of a session, too: its address
    /// cannot be changed. After an error, nothing has changed.
    pub fn advertise_to_clients(&self, url: Option<String>) -> Result<(), ConfigError> {
        let of_session = || ConfigError::new("advertise_to_clients", "cannot be changed for the lock of a session");
        self.tuning.as_ref().ok_or_else(of_session)?.set_clients(url)
    }
}
