//! Three processes elect a leader. The leaders are killed, stopped and frozen, and other candidates take over.
//!
//! | module | |
//! |---|---|
//! | `candidate` | one of the processes; `leaderelection_arena::candidate` shows how an application elects a leader |
//! | `thaw` | the part of a candidate that only the demonstration needs |
//! | `peers` | the line between the candidates, for those who ask for it |
//! | `scenario` | the faults that the leaders suffer |
//! | `stage`, `cluster`, `observer`, `world` | the processes, the lock as seen from outside, the known state |
//! | `view`, `verdict` | the output for the person who watches, and the final checks |

#![expect(unreachable_pub, reason = "a program has nobody to hide from")]

mod args;
mod candidate;
mod cluster;
mod observer;
mod peers;
mod place;
mod scenario;
mod stage;
mod thaw;
mod verdict;
mod view;
mod world;

use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser as _;
use leaderelection_backends::url::{FileLocation, Location};
use tempfile::TempDir;
use tokio::signal::unix::{SignalKind, signal};

use args::{Cli, Role, Settings, Timing};
use place::Site;
use stage::Stage;
use verdict::Verdict;
use view::View;

#[tokio::main]
async fn main() -> ExitCode {
    if std::env::var_os("RUST_LOG").is_some() {
        leaderelection_arena::logs::to_stderr();
    }
    let Cli { role, settings } = Cli::parse();
    let result = match role {
        Some(Role::Candidate { name, settings }) => candidate::run(name, settings).await.map(|()| ExitCode::SUCCESS),
        None if settings.peers && !cfg!(feature = "peers") => Err(peers::become_one_with_peers()),
        None => demonstrate(settings).await,
    };
    result.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

async fn demonstrate(mut settings: Settings) -> anyhow::Result<ExitCode> {
    // The library's check runs here, so that its message appears once and not from every candidate.
    settings.timing.check().context("wrong timings, right ones are --lease 15s --renew 10s --retry 2s")?;

    let mut directory = None;
    let place = match &settings.store {
        Some(place) => place.clone(),
        None => temporary_place(directory.insert(TempDir::with_prefix("failover-")?))?,
    };
    settings.store = Some(place.clone());
    let site = Site::open(&place).await?;
    site.claim().await?;

    let passed = tokio::select! {
        biased;
        result = run(&settings, &site) => result?,
        result = interrupted() => {
            result?;
            println!("interrupted; the candidates are stopped");
            site.clear().await;
            return Ok(ExitCode::from(130));
        }
    };
    if passed {
        site.clear().await;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(directory) = directory {
        let _kept = directory.keep();
    }
    println!("the log is kept: {}", site.log());
    Ok(ExitCode::FAILURE)
}

/// Plays the scenario. Returns `true` if no check failed.
async fn run(settings: &Settings, site: &Site) -> anyhow::Result<bool> {
    println!("three processes compete for {}", site.store.describe(&site.lock_key));
    let Timing { lease, renew, retry } = settings.timing;
    println!("lease {lease:?}, renew deadline {renew:?}, retry period {retry:?}");
    if settings.peers {
        println!("followers get messages from the leader, and seldom read the lock");
    }
    println!();
    let mut stage = Stage::new(settings, site.clone(), View::new(settings))?;
    let findings = scenario::play(&mut stage).await;
    stage.close();
    let log = site.log().entries().await?;
    let verdict = Verdict::new(&stage.world, &log, &findings);
    print!("\n{verdict}");
    Ok(verdict.passed())
}

fn temporary_place(directory: &TempDir) -> anyhow::Result<Location> {
    let place = FileLocation::directory(directory.path(), "lock");
    Ok(place.context("the temporary directory cannot hold a lock; set TMPDIR to another one")?.into())
}

/// Completes when a signal asks the program to end. The candidates end with the program.
async fn interrupted() -> std::io::Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hang_up.recv() => {}
    }
    Ok(())
}
