//! The events of a run, in order.

use std::fmt;
use std::time::Duration;

use leaderelection::election::Heard as Word;
use leaderelection::migration::view::Half;
use leaderelection::{EndReason, StoreErrorKind};

use super::clock::{NodeClock, TrueTime};
use super::faults::{Link, Outage};
use super::operator::Plan;
use super::oracle::Told;
use super::vandal::Spoilt;

/// One process of a candidate, from its start until it ends or crashes.
pub(super) type ProcessId = usize;

/// The number of an intervention in its run.
pub(super) type PlanId = usize;

/// The number of a request in its run.
pub(super) type RequestId = u32;

/// The number of a successful write in its run.
pub(super) type WriteNumber = u64;

/// The writes that a read has shown, in the old lock and in the new one, or in the only lock; 0 for none.
pub(super) type Shown = [WriteNumber; 2];

/// An event, with the process that it concerns.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) at: TrueTime,
    pub(super) process: Option<ProcessId>,
    pub(super) event: Event,
}

#[derive(Clone, Debug)]
pub(super) enum Event {
    Began { twin: bool },
    Crashed,
    Ended,
    RunEnded { token: Option<u64>, reason: Option<EndReason> },
    CancelCalled,
    StepDownCalled { led: bool },
    Reconfigured { lease: Duration },
    TransferCalled { to: String, led: bool },
    Frozen { lasts: Duration, timers_too: bool },
    WentOn,
    StoodStill { lasts: Duration },
    Network(Link),
    Sent { request: RequestId, what: Sent },
    Arrived { request: RequestId, half: Option<Half>, effect: Effect },
    Answered { request: RequestId, answer: Heard },
    Leads { token: u64, until: TrueTime },
    LeadsNoMore { token: u64 },
    WorkStarted { token: u64 },
    WorkEnded { token: u64 },
    StopCalled,
    ClashReported,
    CompetesFor { job: String },
    JobEnded { token: u64, succeeds: bool },
    JobTold { result: String },
    Lists { highest: u64 },
    ReadsNumber { number: u64, is_there: bool },
    Creates { number: u64, write: WriteNumber },
    CreatesLate { number: u64 },
    FindsNumber { number: u64 },
    Removes { number: u64 },
    Store(Option<Outage>),
    Deleted,
    Spoilt(Spoilt),
    Repaired,
    AskedFor { identity: String },
    Plans(Plan),
    WasTold(Told),
    Hears(Word),
    Calm(bool),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    Read,
    Create {
        token: u64,
    },
    Update {
        token: u64,
    },
    /// A request for the lease of another.
    Ask {
        token: u64,
    },
    Release {
        token: u64,
    },
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Effect {
    Read { newest: WriteNumber },
    Wrote { write: WriteNumber },
    Conflict { newest: WriteNumber },
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Heard {
    Done,
    Error(StoreErrorKind, Option<Duration>),
}

#[derive(Debug, Default)]
pub(super) struct Timeline {
    entries: Vec<Entry>,
}

impl Timeline {
    pub(super) fn push(&mut self, at: TrueTime, process: Option<ProcessId>, event: Event) {
        self.entries.push(Entry { at, process, event });
    }

    /// Returns the last `most` entries, one a line, with the time by the clock of the node that they concern.
    pub(super) fn to_text(&self, most: usize, node_of: impl Fn(ProcessId) -> (usize, NodeClock)) -> String {
        use fmt::Write as _;

        let skipped = self.entries.len().saturating_sub(most);
        let mut text = String::new();
        if skipped > 0 {
            let _ = writeln!(text, "... {skipped} earlier entries");
        }
        for Entry { at, process, event } in &self.entries[skipped..] {
            let at_text = format!("{:.3}s", at.as_secs_f64());
            let _ = match process {
                None => writeln!(text, "{at_text:>12} {:>20}  {event}", ""),
                Some(process) => {
                    let (node, clock) = node_of(*process);
                    let local = clock.local_at(*at).as_nanos() as f64 / 1e9;
                    writeln!(text, "{at_text:>12} {:>20}  node {node} p{process}: {event}", format!("[{local:.3}s]"))
                }
            };
        }
        text
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Began { twin: false } => f.write_str("starts"),
            Self::Began { twin: true } => f.write_str("starts, with an identity that others use too"),
            Self::Crashed => f.write_str("CRASHES"),
            Self::Ended => f.write_str("has ended"),
            Self::RunEnded { token, reason } => write!(f, "run() returned: token {token:?}, {reason:?}"),
            Self::CancelCalled => f.write_str("is cancelled"),
            Self::Reconfigured { lease } => write!(f, "is told to go on with the timings of a lease of {lease:?}"),
            Self::StepDownCalled { led } => {
                write!(f, "is told to step down; {}", if *led { "led" } else { "did not lead" })
            }
            Self::TransferCalled { to, led } => {
                write!(f, "is told to hand over to {to}; {}", if *led { "led" } else { "did not lead" })
            }
            Self::AskedFor { identity } => write!(f, "an operator asks for {identity} to lead"),
            Self::Plans(plan) => write!(f, "an operator plans: {plan:?}"),
            Self::WasTold(told) => write!(f, "the operator is told: {told:?}"),
            Self::Frozen { lasts, timers_too } => {
                write!(f, "FROZEN for {lasts:?}{}", if *timers_too { ", its timers too" } else { "" })
            }
            Self::StoodStill { lasts } => write!(f, "goes on after ALL STOOD STILL for {lasts:?}"),
            Self::WentOn => f.write_str("goes on"),
            Self::Network(link) => write!(f, "network {link:?}"),
            Self::Sent { request, what } => write!(f, "r{request} sent: {what:?}"),
            Self::Arrived { request, half, effect } => {
                write!(
                    f,
                    "r{request} arrived{}: ",
                    half.map_or_else(String::new, |half| format!(" at the {half:?} lock"))
                )?;
                match effect {
                    Effect::Read { newest: 0 } => f.write_str("there is no object"),
                    Effect::Read { newest } => write!(f, "reads w{newest}"),
                    Effect::Wrote { write } => write!(f, "WRITES w{write}"),
                    Effect::Conflict { newest } => write!(f, "conflict, w{newest} is there"),
                }
            }
            Self::Answered { request, answer: Heard::Done } => write!(f, "r{request} answered: done"),
            Self::Answered { request, answer: Heard::Error(kind, None) } => write!(f, "r{request} answered: {kind:?}"),
            Self::Answered { request, answer: Heard::Error(kind, Some(pause)) } => {
                write!(f, "r{request} answered: {kind:?}, retry after {pause:?}")
            }
            Self::Leads { token, until } => write!(f, "LEADS with token {token} until {:.3}s", until.as_secs_f64()),
            Self::LeadsNoMore { token } => write!(f, "leads no more with token {token}"),
            Self::WorkStarted { token } => write!(f, "on_start_leading({token})"),
            Self::WorkEnded { token } => write!(f, "work of term {token} is gone"),
            Self::StopCalled => f.write_str("on_stop_leading()"),
            Self::ClashReported => f.write_str("reports that another process uses its identity"),
            Self::CompetesFor { job } => write!(f, "competes for {job}"),
            Self::JobEnded { token, succeeds } => {
                write!(f, "the job of term {token} {}", if *succeeds { "HAS SUCCEEDED" } else { "has failed" })
            }
            Self::JobTold { result } => write!(f, "run_once() returned: {result}"),
            Self::Lists { highest } => write!(f, "lists, and {highest} is the highest number"),
            Self::ReadsNumber { number, is_there: true } => write!(f, "reads number {number}"),
            Self::ReadsNumber { number, is_there: false } => write!(f, "reads number {number}, which is not there"),
            Self::Creates { number, write } => write!(f, "creates number {number}: WRITES w{write}"),
            Self::CreatesLate { number } => write!(f, "CREATES NUMBER {number} LATE"),
            Self::FindsNumber { number } => write!(f, "creates no number {number}, which is there"),
            Self::Removes { number } => write!(f, "removes number {number}"),
            Self::Store(None) => f.write_str("the store works again"),
            Self::Store(Some(outage)) => write!(f, "THE STORE FAILS: {outage:?}"),
            Self::Deleted => f.write_str("AN OPERATOR DELETES THE OBJECT"),
            Self::Spoilt(spoilt) => write!(f, "SOMEBODY REPLACES THE RECORD: {spoilt:?}"),
            Self::Repaired => f.write_str("the record is put back"),
            Self::Hears(word) => write!(f, "hears {word:?}"),
            Self::Calm(true) => f.write_str("nothing goes wrong from here on"),
            Self::Calm(false) => f.write_str("things go wrong from here on"),
        }
    }
}
