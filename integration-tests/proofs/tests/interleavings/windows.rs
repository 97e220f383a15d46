//! The threads that read, extend and close the window of a term.
//!
//! The elector moves the window on one thread, while any number of threads ask if it is open, and time passes.

use std::time::Duration;

use chrono::{DateTime, Utc};
use leaderelection::implement::async_trait;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use loom::thread;

use crate::clock::{Clock, LocalInstant};
use crate::election::{Command, Term};
use crate::explore;
use crate::window::Window;

/// A clock that another thread moves. Every read of the clock is a point at which threads change.
#[derive(Debug)]
struct Hands(AtomicU64);

#[async_trait]
impl Clock for Hands {
    fn now(&self) -> LocalInstant {
        LocalInstant::from_nanos(self.0.load(Ordering::SeqCst))
    }

    fn wall_time(&self) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH
    }

    async fn sleep_until(&self, _deadline: LocalInstant) -> LocalInstant {
        unreachable!("nobody sleeps here")
    }
}

/// A window, its clock, and the news that somebody has seen the window closed.
#[derive(Clone)]
struct Stage {
    window: Arc<Window>,
    clock: Arc<Hands>,
    seen_closed: Arc<AtomicBool>,
}

impl Stage {
    /// A window from 0 to 10, at 9.
    fn new() -> Self {
        let clock = Arc::new(Hands(AtomicU64::new(9)));
        Self { window: Arc::new(Window::new(&term(0))), clock, seen_closed: Arc::new(AtomicBool::new(false)) }
    }

    /// Starts a thread.
    fn runs(&self, body: impl FnOnce(&Stage) + 'static) -> thread::JoinHandle<()> {
        let stage = self.clone();
        thread::spawn(move || body(&stage))
    }

    fn time_passes(&self) {
        self.clock.0.store(10, Ordering::SeqCst);
    }

    /// Asks if the window is open. An answer must not contradict what was seen before it was asked for.
    fn reads_clock(&self) {
        let was_seen_closed = self.seen_closed.load(Ordering::SeqCst);
        let is_open = !self.window.remaining(&*self.clock).is_zero();
        assert!(!(was_seen_closed && is_open), "the window was seen closed, and is open again");
        if !is_open {
            self.seen_closed.store(true, Ordering::SeqCst);
        }
    }

    fn extends(&self) -> bool {
        self.window.extend(&term(5), &*self.clock)
    }
}

fn term(sent_at: u64) -> Term {
    let sent_at = LocalInstant::from_nanos(sent_at);
    Term { fencing_token: 7, sent_at, valid_until: sent_at + Duration::from_nanos(10) }
}

#[test]
fn a_renewal_never_opens_a_window_that_somebody_has_seen_closed() {
    explore(|| {
        let stage = Stage::new();
        let threads = [
            stage.runs(Stage::time_passes),
            stage.runs(|stage| {
                stage.reads_clock();
                stage.reads_clock();
            }),
            stage.runs(|stage| {
                stage.extends();
            }),
        ];
        stage.reads_clock();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        stage.reads_clock();
    });
}

#[test]
fn a_renewal_that_was_refused_and_one_that_was_taken_are_told_apart() {
    explore(|| {
        let stage = Stage::new();
        let threads = [stage.runs(Stage::time_passes), stage.runs(Stage::reads_clock)];
        let extended = stage.extends();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        // The extended window ends at 15.
        assert_eq!(!stage.window.remaining(&*stage.clock).is_zero(), extended);
        assert!(!(extended && stage.seen_closed.load(Ordering::SeqCst)));
    });
}

#[test]
fn of_two_commands_one_closes_the_window_and_is_carried_out() {
    explore(|| {
        let stage = Stage::new();
        let won = Arc::new(AtomicU64::new(0));
        let commands = [Command::StepDown, Command::TransferTo("b".to_owned())].map(|command| {
            let won = Arc::clone(&won);
            stage.runs(move |stage| {
                if stage.window.close_by(command, &*stage.clock) {
                    won.fetch_add(1, Ordering::SeqCst);
                    stage.reads_clock();
                    assert!(stage.seen_closed.load(Ordering::SeqCst), "a command leaves the window open");
                }
            })
        });
        let extended = stage.extends();
        stage.reads_clock();
        commands.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(won.load(Ordering::SeqCst), 1, "extended: {extended}");
        assert!(stage.window.take_command().is_some());
        assert!(stage.window.take_command().is_none());
        assert!(!stage.extends());
    });
}

#[test]
fn the_end_of_a_term_and_a_command_close_the_window_for_good() {
    explore(|| {
        let stage = Stage::new();
        let threads = [
            stage.runs(|stage| stage.window.close()),
            stage.runs(|stage| {
                stage.window.close_by(Command::StepDown, &*stage.clock);
            }),
            stage.runs(|stage| {
                stage.extends();
            }),
        ];
        stage.reads_clock();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert!(stage.window.remaining(&*stage.clock).is_zero());
        assert!(!stage.extends());
    });
}
