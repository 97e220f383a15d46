//! A program with a client of kube, which leads once by a lock in S3. With the word `install`, it chooses the provider of TLS first.

use std::error::Error;

use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};
use leaderelection::{DefaultLeaderElector, Elector, LeaderCallbacks, LeaderElectionConfig, Leadership, ObjectLock, shutdown_signal};
use leaderelection_s3::S3Location;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let [identity, url] = [1, 2].map(|place| std::env::args().nth(place));
    let location: S3Location = url.ok_or("no URL is given")?.parse()?;
    if std::env::args().any(|word| word == "install") {
        rustls::crypto::ring::default_provider().install_default().map_err(|_| "a provider is installed already")?;
    }
    let leases: Api<Lease> = Api::default_namespaced(Client::try_default().await?);
    let lock = ObjectLock::new(location.open().await?, location.key, identity.ok_or("no identity is given")?);
    let config = LeaderElectionConfig::builder(lock, LeaderCallbacks::new()).build()?;
    let work = |leadership: Leadership| async move {
        leases.get_opt("absent").await?;
        println!("leads with token {}", leadership.fencing_token());
        Ok::<_, kube::Error>(())
    };
    DefaultLeaderElector::new(config).run_while_leading(shutdown_signal(), work).await??;
    Ok(())
}
