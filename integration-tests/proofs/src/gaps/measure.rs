//! The events of a fleet, one by one.

use std::sync::Arc;
use std::time::Duration;

use leaderelection::MemoryStore;
use leaderelection::implement::ConditionalStore;
use tokio::runtime::Builder;
use tokio::time::{Instant, sleep};

use super::member::Member;
use super::watch::{Cause, Gap, Watch};
use crate::counted::{Client, Pace, Pauses, Requests};
use crate::switchboard::Switchboard;

/// The longest wait for anything.
const PATIENCE: Duration = Duration::from_secs(2_000);

/// The time between the stop of a process and the start of its successor in a rolling restart.
const REPLACED: Duration = Duration::from_secs(1);

/// A process's way to the store of the fleet.
pub type Open<'a> = dyn Fn() -> Arc<dyn ConditionalStore> + 'a;

/// A change of the members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Event {
    /// All members start at one moment, and no lock exists.
    Start,
    /// One member leads all locks, is stopped, and starts again.
    Restart,
    /// One member leads all locks, dies, and starts again under another identity.
    Crashed,
    /// The members are replaced one after the other.
    Roll,
    /// One member of the fleet dies.
    Crash,
    /// One further member joins.
    Join,
    /// The leaders give up each lock once, one after the other.
    HandOvers,
}

/// The size of a fleet, and its store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The number of locks.
    pub locks: usize,
    /// The number of members.
    pub members: usize,
    /// The store.
    pub pace: Pace,
    /// `true` if the members send each other messages.
    pub sends_messages: bool,
    /// `true` if the members balance their shares.
    pub balances: bool,
    /// The time in which a fleet comes to rest: delays of fail-back, and the moves of balance.
    pub rest: Duration,
}

/// The measurements of one event.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The time until every lock was led; `None` if that did not happen.
    pub all_led: Option<Duration>,
    /// The number of locks that were led in the end.
    pub led: usize,
    /// The times without a leader that the event caused, shortest first.
    pub gaps: Vec<Duration>,
    /// Those of other locks, which moved for balance, shortest first.
    pub moved: Vec<Duration>,
    /// The time until the last move for balance; zero without any.
    pub balanced: Duration,
    /// The largest difference of a share from the mean share, as a part of that.
    pub unfair: f64,
    /// The part of all writes that were refused because another was first.
    pub refused: f64,
    /// All requests, a page of a listing as one.
    pub requests: u64,
    /// The longest times between two renewals of a session.
    pub renewals: Pauses,
    /// The number of terms that began beside another term of their lock: zero, or the library is broken.
    pub overlaps: usize,
}

impl Event {
    /// Lets the event happen to a fleet in simulated time, beside a store in memory, and measures.
    ///
    /// # Panics
    ///
    /// If there is no runtime.
    #[must_use]
    pub fn measure(self, settings: Settings) -> Measured {
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
        let store = Arc::new(MemoryStore::new());
        runtime.block_on(self.happen(settings, &|| store.clone(), "fleet"))
    }

    /// Lets the event happen to a fleet whose locks are below a prefix of a store, where nothing else is, and measures. Each
    /// process opens the store by itself.
    pub async fn happen(self, settings: Settings, open: &Open<'_>, prefix: &str) -> Measured {
        Fleet::new(settings, open, prefix).live_through(self).await
    }
}

/// A running fleet.
struct Fleet<'a> {
    settings: Settings,
    open: &'a Open<'a>,
    prefix: String,
    watch: Watch,
    members: Vec<Member>,
    board: Switchboard,
    /// The way to the store of every process that was ever started.
    clients: Vec<Client>,
}

impl<'a> Fleet<'a> {
    fn new(settings: Settings, open: &'a Open<'a>, prefix: &str) -> Self {
        let (watch, prefix) = (Watch::over(settings.locks), prefix.to_owned());
        Self { settings, open, prefix, watch, members: Vec::new(), board: Switchboard::default(), clients: Vec::new() }
    }

    fn start(&mut self) {
        let Settings { locks, pace, sends_messages, balances, .. } = self.settings;
        let client = Client::new((self.open)(), pace);
        let board = sends_messages.then_some(&self.board);
        let number = self.clients.len();
        self.members.push(Member::start(number, (client.clone(), &self.prefix), locks, &self.watch, board, balances));
        self.clients.push(client);
    }

    /// The requests of all processes so far, and the writes that were refused.
    fn requests(&self) -> (Requests, u64) {
        (self.clients.iter().map(Client::requests).sum(), self.clients.iter().map(Client::refused).sum())
    }

    async fn live_through(mut self, event: Event) -> Measured {
        let alone = matches!(event, Event::Restart | Event::Crashed);
        let Settings { members, rest, .. } = self.settings;
        let members = if alone { 1 } else { members };
        let mut began = Instant::now();
        if event != Event::Start {
            // One after the other, so that their renewals are not in step.
            for index in 0..members {
                self.start();
                sleep(Duration::from_millis(5_300 + 370 * index as u64)).await;
            }
            self.all_led(began).await;
            sleep(rest).await;
            self.watch.take_gaps();
            began = Instant::now();
        }
        let before = self.requests();
        match event {
            Event::Start => (0..members).for_each(|_| self.start()),
            Event::Restart => {
                self.members.remove(0).stop().await;
                self.start();
                began = Instant::now();
            }
            Event::Crashed | Event::Crash => {
                began = self.members.remove(0).crash().await;
                if event == Event::Crashed {
                    self.start();
                }
            }
            Event::Roll => {
                for _ in 0..members {
                    self.members.remove(0).stop().await;
                    sleep(REPLACED).await;
                    self.start();
                    sleep(rest / 2).await;
                }
            }
            Event::Join => self.start(),
            Event::HandOvers => {
                for lock in 0..self.settings.locks {
                    self.watch.step_down(lock);
                    sleep(Duration::from_millis(170)).await;
                }
            }
        }
        let all_led = self.all_led(began).await;
        if !alone {
            sleep(rest).await;
        }
        self.measured(began, event, all_led, before)
    }

    /// Waits until every lock is led, and returns the time since `began`.
    async fn all_led(&self, began: Instant) -> Option<Duration> {
        // The end of a process that was killed is carried out first.
        sleep(Duration::from_millis(1)).await;
        while self.watch.led() < self.settings.locks {
            if began.elapsed() > PATIENCE {
                return None;
            }
            sleep(Duration::from_millis(10)).await;
        }
        Some(began.elapsed())
    }

    fn measured(
        &self,
        began: Instant,
        event: Event,
        all_led: Option<Duration>,
        (before, refused_before): (Requests, u64),
    ) -> Measured {
        let gaps = self.watch.take_gaps();
        let caused = match event {
            Event::Crash | Event::Crashed => Cause::Crash,
            Event::Join | Event::HandOvers => Cause::HandOver,
            Event::Start | Event::Restart | Event::Roll => Cause::Stop,
        };
        let balanced = gaps.iter().filter(|gap| gap.cause == Cause::HandOver).map(|gap| gap.ended_at).max();
        let shares = self.watch.shares(self.clients.len());
        let alive: Vec<usize> = self.members.iter().map(|member| shares[member.number]).collect();
        let mean = self.settings.locks as f64 / alive.len() as f64;
        let (requests, refused) = self.requests();
        let Requests { writes, reads, listings, deletions } = requests.since(before, 1);
        Measured {
            all_led,
            led: self.watch.led(),
            gaps: sorted(&gaps, |gap| gap.cause == caused),
            moved: sorted(&gaps, |gap| gap.cause == Cause::HandOver),
            balanced: balanced.map(|at| at.saturating_duration_since(began)).unwrap_or_default(),
            unfair: alive.iter().map(|share| (*share as f64 - mean).abs() / mean).fold(0.0, f64::max),
            refused: (refused - refused_before) as f64 / (writes + deletions).max(1) as f64,
            requests: writes + reads + listings + deletions,
            renewals: self.clients.iter().fold(Pauses::default(), |all, one| all.longer(one.renewals().longest)),
            overlaps: self.watch.overlaps(),
        }
    }
}

fn sorted(gaps: &[Gap], wanted: impl Fn(&Gap) -> bool) -> Vec<Duration> {
    let mut lasted: Vec<Duration> = gaps.iter().filter(|gap| wanted(gap)).map(|gap| gap.lasted).collect();
    lasted.sort_unstable();
    lasted
}
