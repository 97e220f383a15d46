//! The check of reported clashes of identities.

use super::{Oracle, Property};
use crate::simulation::clock::TrueTime;
use crate::simulation::timeline::{Event, ProcessId, WriteNumber};

impl Oracle {
    /// Records the write that a read showed to the elector; `None` if no object existed.
    pub(in crate::simulation) fn read(&mut self, process: ProcessId, write: Option<WriteNumber>) {
        self.processes[process].read = write;
    }

    /// Checks a reported clash. A clash is reported when a read shows it, so it concerns the last read.
    pub(in crate::simulation) fn clash_reported(&mut self, now: TrueTime, process: ProcessId) {
        self.stats.clashes += 1;
        self.log(now, Some(process), Event::ClashReported);
        let read = self.processes[process].read;
        let writer = read.and_then(|write| self.object.writer(write));
        let what = match (read, writer) {
            (Some(write), Some(writer)) if writer == process => format!("w{write} is its own"),
            (Some(write), Some(writer)) if self.processes[writer].identity != self.processes[process].identity => {
                format!("w{write} is p{writer}'s, which has another identity")
            }
            (Some(_), Some(_)) => return,
            _ => "it has read no write".to_owned(),
        };
        let what = format!("p{process} reports a clash of identities, and {what}");
        self.violated(now, Property::NoFalseClash, what);
    }
}
