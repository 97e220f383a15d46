//! The check of reported clashes of identities.

use super::{Oracle, Property};
use crate::simulation::clock::TrueTime;
use crate::simulation::timeline::{Event, ProcessId, Shown};

impl Oracle {
    /// Records what a read showed to the elector.
    pub(in crate::simulation) fn read(&mut self, process: ProcessId, shown: Shown) {
        self.processes[process].read = shown;
    }

    /// Checks a reported clash. A clash is reported when a read shows it, so it concerns the last read.
    pub(in crate::simulation) fn clash_reported(&mut self, now: TrueTime, process: ProcessId) {
        self.stats.clashes += 1;
        self.log(now, Some(process), Event::ClashReported);
        let histories =
            if self.scenario.rollouts.is_some() { &self.halves[..] } else { std::slice::from_ref(&self.object) };
        let read = histories.iter().zip(self.processes[process].read).filter(|(_, write)| *write > 0);
        let writers = read.filter_map(|(history, write)| Some((write, history.writer(write)?)));
        let wrong = writers.map(|(write, writer)| match writer == process {
            true => Some(format!("w{write} is its own")),
            false if self.processes[writer].identity == self.processes[process].identity => None,
            false => Some(format!("w{write} is p{writer}'s, which has another identity")),
        });
        let wrong: Vec<_> = wrong.collect();
        if wrong.iter().any(Option::is_none) {
            return;
        }
        let what = wrong.into_iter().flatten().next().unwrap_or_else(|| "it has read no write".to_owned());
        let what = format!("p{process} reports a clash of identities, and {what}");
        self.violated(now, Property::NoFalseClash, what);
    }
}
