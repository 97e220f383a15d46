//! A candidate: the lease of the crate kubert, which renews it one retry period after its last renewal.

use clap::Parser;
use comparison_work::{Options, on_sigterm};
use k8s_openapi::api::coordination::v1::Lease;
use kube_client::{Api, Client, Config};
use kubert::lease::{ClaimParams, LeaseManager};

/// Competes for a Lease, which must exist, until SIGTERM.
#[derive(Parser)]
struct Args {
    #[command(flatten)]
    options: Options,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let Args { options } = Args::parse();
    let log = options.open()?;
    let asked = on_sigterm()?;
    let params = ClaimParams { lease_duration: options.lease, renew_grace_period: options.lease - options.retry };
    let mut config = Config::infer().await?;
    config.connect_timeout = Some(options.request_timeout());
    config.read_timeout = config.connect_timeout;
    config.write_timeout = config.connect_timeout;
    let api: Api<Lease> = Api::default_namespaced(Client::try_from(config)?);
    log.ready();
    while !asked.is_cancelled() {
        // The task of a manager ends with some errors, and a new manager goes on.
        let manager = LeaseManager::init(api.clone(), &options.lock).await;
        let spawned = match manager {
            Ok(manager) => manager.spawn(&options.identity, params.clone()).await,
            Err(error) => Err(error),
        };
        let Ok((mut claim, task)) = spawned else {
            tokio::time::sleep(options.retry).await;
            continue;
        };
        loop {
            if claim.borrow().is_current_for(&options.identity) {
                let leads = || claim.borrow().is_current_for(&options.identity);
                log.work(None, options.work, leads, asked.cancelled()).await;
            }
            let changed = tokio::select! {
                () = asked.cancelled() => false,
                changed = claim.changed() => changed.is_ok(),
            };
            if !changed {
                break;
            }
        }
        // The lease is given up once nobody polls the claim.
        drop(claim);
        let _ = task.await;
    }
    Ok(())
}
