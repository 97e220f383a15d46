//! A process of the fleet.

use std::fmt;
use std::future::pending;
use std::io::Write as _;
use std::str::FromStr;

use chrono::{DateTime, Utc};
use leaderelection::{Elector, LeaderCallbacks, LeaderHandle, Session, Timings};
use leaderelection_backends::url::Location;

use crate::{address, peers};

/// A line of a member's standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// The work of a lock has begun.
    Leads {
        /// The lock.
        lock: usize,
        /// The moment, by the wall clock.
        at: DateTime<Utc>,
    },
    /// The work of a lock has ended.
    Ends {
        /// The lock.
        lock: usize,
        /// The moment, by the wall clock.
        at: DateTime<Utc>,
    },
    /// The member has seen a leader of every lock.
    Steady,
}

impl News {
    fn send(self) {
        // An error means that the parent has ended, and so will this process.
        let _ = std::io::stdout().write_all(format!("{self}\n").as_bytes());
    }
}

impl fmt::Display for News {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Leads { lock, at } => write!(f, "leads {lock} {}", at.timestamp_micros()),
            Self::Ends { lock, at } => write!(f, "ends {lock} {}", at.timestamp_micros()),
            Self::Steady => f.write_str("steady"),
        }
    }
}

impl FromStr for News {
    type Err = anyhow::Error;

    fn from_str(line: &str) -> anyhow::Result<Self> {
        let words: Vec<_> = line.split(' ').collect();
        match words[..] {
            [word @ ("leads" | "ends"), lock, at] => {
                let at = DateTime::from_timestamp_micros(at.parse()?);
                let (lock, at) = (lock.parse()?, at.ok_or_else(|| anyhow::anyhow!("no moment: {line}"))?);
                Ok(if word == "leads" { Self::Leads { lock, at } } else { Self::Ends { lock, at } })
            }
            ["steady"] => Ok(Self::Steady),
            _ => anyhow::bail!("no news: {line}"),
        }
    }
}

/// The arguments of a member.
#[derive(Debug, clap::Args)]
pub struct MemberArgs {
    /// The prefix of the fleet, as a lock's URL.
    place: Location,
    /// The member's identity.
    identity: String,
    /// The number of locks.
    locks: usize,
    /// The timings, as JSON.
    #[arg(value_parser = |text: &str| serde_json::from_str::<Timings>(text))]
    timings: Timings,
    /// The key by which the members send each other messages.
    #[arg(long)]
    peer_key: Option<String>,
}

/// Competes for all locks through one session, until the standard input ends. Each line of that is a lock to give up.
///
/// # Errors
///
/// If the session cannot be built.
pub async fn take_part(args: MemberArgs) -> anyhow::Result<()> {
    let MemberArgs { place, identity, locks, timings, peer_key } = args;
    let peers = peer_key.as_deref().map(peers).transpose()?;
    let mut session = Session::builder(place.open().await?, place.key(), identity).timings(timings);
    if let Some(address) = peers.as_ref().and_then(address) {
        session = session.advertise(address);
    }
    let session = session.build()?;
    let _attached = peers.as_ref().map(|peers| peers.attach_session(&session)).transpose()?;
    let mut handles = Vec::new();
    for lock in 0..locks {
        let callbacks = LeaderCallbacks::new().on_start_leading(move |leadership| async move {
            News::Leads { lock, at: Utc::now() }.send();
            leadership.lost().await;
            News::Ends { lock, at: Utc::now() }.send();
        });
        let elector = session.elector(format!("lock-{lock}"), callbacks)?;
        handles.push(elector.handle());
        tokio::spawn(async move { elector.campaign(pending()).await });
    }
    follow_orders(handles.clone());
    tokio::spawn(report_steady(handles));
    session.run(pending()).await?;
    Ok(())
}

fn follow_orders(handles: Vec<LeaderHandle>) {
    // A thread of its own: a runtime would wait for tokio's reader of standard input before it ends.
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            let lock: Option<usize> = line.parse().ok();
            lock.and_then(|lock| handles.get(lock)).map(LeaderHandle::step_down);
        }
        std::process::exit(1);
    });
}

async fn report_steady(handles: Vec<LeaderHandle>) {
    for mut handle in handles {
        while handle.leader().is_none() {
            if handle.changed().await.is_err() {
                return;
            }
        }
    }
    News::Steady.send();
}
