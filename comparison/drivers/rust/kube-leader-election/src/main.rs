//! A candidate: the crate kube-leader-election, called every retry period.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Parser;
use comparison_work::{Options, on_sigterm};
use kube_leader_election::{LeaseLock, LeaseLockParams, LeaseLockResult};
use tokio::sync::Notify;

/// Competes for a Lease until SIGTERM.
#[derive(Parser)]
struct Args {
    #[command(flatten)]
    options: Options,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let Args { options } = Args::parse();
    let log = options.open()?;
    let params = LeaseLockParams {
        holder_id: options.identity.clone(),
        lease_name: options.lock.clone(),
        lease_ttl: options.lease,
    };
    let mut config = kube::Config::infer().await?;
    config.connect_timeout = Some(options.request_timeout());
    config.read_timeout = config.connect_timeout;
    config.write_timeout = config.connect_timeout;
    let lock = LeaseLock::new(kube::Client::try_from(config)?, "default", params);
    let leads = Arc::new(AtomicBool::new(false));
    let won = Arc::new(Notify::new());
    let asked = on_sigterm()?;
    log.ready();
    let renewing = async {
        loop {
            // An error leaves the answer as it was, as in the example of the crate.
            if let Ok(result) = lock.try_acquire_or_renew().await {
                leads.store(matches!(result, LeaseLockResult::Acquired(_)), Ordering::SeqCst);
                won.notify_one();
            }
            tokio::time::sleep(options.retry).await;
        }
    };
    let working = async {
        loop {
            won.notified().await;
            if leads.load(Ordering::SeqCst) {
                log.work(None, options.work, || leads.load(Ordering::SeqCst), std::future::pending()).await;
            }
        }
    };
    tokio::select! {
        () = asked.cancelled() => {}
        _ = renewing => {}
        _ = working => {}
    }
    if leads.load(Ordering::SeqCst) {
        log.append(None, "stop");
        lock.step_down().await?;
    }
    Ok(())
}
