//! The tasks beside the election: signals, the limits of patience, and messages about the wait.

use std::future::poll_fn;
use std::pin::Pin;

use leaderelection::LeaderHandle;
use rustix::process::Signal;
use tokio::time::Sleep;

use super::election::ElectionEnd;
use super::first_read::{self, Held};
use super::locks;
use super::work::Job;
use crate::exit::Failure;
use crate::supervise::signals::{self, Signals};

/// The reason for which this process gave up waiting.
#[derive(Debug)]
pub(super) enum GivenUp {
    Signal(Signal),
    TimedOut,
    Held(Vec<Held>),
    Refused(Failure),
}

/// The tasks beside the election.
pub(super) struct Watch<'a> {
    pub(super) no_wait: bool,
    /// The number of slots, if the process competes for slots.
    pub(super) slots: Option<u32>,
    pub(super) job: &'a Job,
    pub(super) locks: Vec<LeaderHandle>,
    /// The same, of which the writes that are refused are awaited.
    pub(super) refusals: Vec<LeaderHandle>,
}

impl Watch<'_> {
    /// Runs the election to its end, passes signals on, and gives up when the wait is over. Fails, and leaves the
    /// lease as it is, if processes cannot be ended.
    pub(super) async fn until_over(
        mut self,
        election: impl Future<Output = ElectionEnd>,
        signals: &mut Signals,
        mut give_up: Pin<&mut Sleep>,
    ) -> Result<(ElectionEnd, Option<GivenUp>), Failure> {
        let (mut given_up, mut waits_for) = (None, None);
        let mut election = std::pin::pin!(election);
        let mut election = poll_fn(|context| {
            let polled = election.as_mut().poll(context);
            // The elector renews the lease while it is polled.
            self.job.state.tell_watchdog();
            polled
        });
        loop {
            tokio::select! {
                biased;
                left = self.job.state.left_behind() => return Err(left),
                // Before the elector goes on, which would release the lease.
                () = self.job.state.has_dropped() => self.job.end_dropped().await?,
                end = &mut election => return Ok((end, given_up)),
                signal = signals.next() => {
                    if !self.job.state.on_signal(signal) && signals::ends_the_wait(signal) {
                        given_up.get_or_insert(GivenUp::Signal(signal));
                        self.job.shutdown.cancel();
                    }
                }
                () = &mut give_up, if given_up.is_none() && !self.job.state.has_begun() => {
                    // The election is not polled in between, so the check and the cancellation see the same
                    // state.
                    if self.is_waiting() {
                        let failure = locks::failure_of_store(&self.locks);
                        given_up = Some(failure.map_or(GivenUp::TimedOut, GivenUp::Refused));
                        self.job.shutdown.cancel();
                    }
                }
                refused = locks::next_refusal(&mut self.refusals), if self.no_wait && given_up.is_none() => {
                    if self.is_waiting() {
                        given_up = Some(GivenUp::Refused(refused));
                        self.job.shutdown.cancel();
                    }
                }
                () = locks::changed(&mut self.locks), if given_up.is_none() && (self.no_wait || self.slots.is_some()) => {
                    let held = locks::held_by_others(&self.locks);
                    if !self.no_wait {
                        self.tell_of_a_wait(held.as_deref().map(first_read::names), &mut waits_for);
                    } else if let Some(held) = held.filter(|_| self.is_waiting()) {
                        given_up = Some(GivenUp::Held(held));
                        self.job.shutdown.cancel();
                    }
                }
            }
        }
    }

    fn is_waiting(&self) -> bool {
        !self.job.state.has_begun() && !locks::is_led(&self.locks)
    }

    /// Tells the user which processes hold all slots, once for all of them.
    fn tell_of_a_wait(&self, held: Option<String>, waits_for: &mut Option<String>) {
        if held != *waits_for {
            if let Some(names) = &held {
                let what = if self.slots == Some(1) { "the slot is" } else { "all slots are" };
                self.job.output.say(format_args!("waiting: {what} held by {names}"));
            }
            *waits_for = held;
        }
    }
}
