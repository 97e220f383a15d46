//! One candidate of the demonstration.

use std::sync::Arc;

use anyhow::Context as _;
use leaderelection::{Elector, ObjectLock};
use leaderelection_arena::candidate::Candidate;

use crate::args::Settings;
use crate::peers::Line;
use crate::place::Site;
use crate::thaw;

/// Competes for the lock, and works while it leads, until SIGTERM.
pub async fn run(name: String, settings: Settings) -> anyhow::Result<()> {
    let site = Site::open(settings.store.as_ref().context("a candidate needs --store")?).await?;
    let candidate = Candidate {
        lock: Arc::new(ObjectLock::new(Arc::clone(&site.store), &site.lock_key, &name)),
        log: site.log(),
        timings: settings.timing.check()?,
        rest: settings.append_period(),
    };
    let line = settings.peers.then(Line::open).transpose()?;
    let attached = candidate
        .compete(line.as_ref().and_then(Line::address), |elector| {
            tokio::spawn(thaw::watch(elector.handle(), site.log(), name));
            line.as_ref().map(|line| line.attach(elector)).transpose()
        })
        .await?;
    if let Some(line) = line {
        line.finish(attached).await;
    }
    Ok(())
}
