//! The check of reported duplicate identities.

use super::knowledge::Oracle;
use super::property::Property;
use crate::simulation::names::{ProcessId, Shown};

impl Oracle {
    /// Records what a read showed to the elector.
    pub(crate) fn read(&mut self, process: ProcessId, shown: Shown) {
        self.processes[process].seen.read = shown;
    }

    /// Checks a reported duplicate identity. A duplicate identity is reported when a read shows it, so it concerns the
    /// last read.
    pub(crate) fn duplicate_reported(&mut self, process: ProcessId) {
        self.stats.duplicates += 1;
        self.log(Some(process), || "reports that another process uses its identity".to_owned());
        let histories =
            if self.scenario.rollouts.is_some() { &self.halves[..] } else { std::slice::from_ref(&self.object) };
        let read = histories.iter().zip(self.processes[process].seen.read).filter(|(_, write)| *write > 0);
        let writers: Vec<_> = read.filter_map(|(history, write)| Some((write, history.writer(write)?))).collect();
        let identity = |process: ProcessId| &self.processes[process].identity;
        let is_duplicate =
            |(_, writer): &(u64, ProcessId)| *writer != process && identity(*writer) == identity(process);
        let is_true = writers.iter().any(is_duplicate) || self.has_forgery(&self.processes[process].seen.read);
        self.timeline.demand(is_true, Property::NoFalseDuplicate, || {
            format!("p{process} reports a duplicate identity, and has read these writes of processes: {writers:?}")
        });
    }
}
