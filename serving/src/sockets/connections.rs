//! The budget for connections that others open to this process.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::permit::ConnectionPermit;

/// The most connections, however many files the process may open, unless the process serves many clients. It is far above any
/// legitimate need.
const MOST: usize = 512;

/// The connections beyond the limit that are told so at a time.
const MOST_BEYOND: usize = 64;

/// A budget for the open connections of any number of servers. A clone is the same budget.
///
/// A connection takes a file, and every request of an elector to its store needs one. So connections get half of the files
/// that the process may open, and 512 at most. At the limit, a new connection closes the one that has been silent for longest.
/// Strangers who connect and ask nothing, or who ask and read no answer, therefore keep nobody out, and delay no renewal.
///
/// A budget [for clients](Self::of_process_for_clients) closes only connections that have asked for nothing but
/// probes. If all have, a new one is answered with 503: an elector that is silent between two renewals keeps its connection.
#[derive(Clone, Debug)]
pub struct Connections(Arc<Mutex<Open>>);

#[derive(Debug)]
struct Open {
    most: usize,
    turns_away: bool,
    /// By the last sign of life, the longest silent first.
    seats: BTreeMap<u64, Arc<ConnectionPermit>>,
    /// Those that are told that there are too many, the oldest first.
    beyond: BTreeMap<u64, Arc<ConnectionPermit>>,
    next: u64,
}

impl Connections {
    /// Returns the budget of this process. Its size follows from the limit of open files at the first call.
    #[must_use]
    pub fn of_process() -> Self {
        Self::of_process_with(MOST, false)
    }

    /// Returns the budget of this process, for a program that serves so many clients at a time: whoever calls first decides.
    #[must_use]
    pub fn of_process_for_clients(most: usize) -> Self {
        Self::of_process_with(most, true)
    }

    fn of_process_with(most: usize, turns_away: bool) -> Self {
        static OF_PROCESS: OnceLock<Connections> = OnceLock::new();
        #[cfg(unix)]
        let files = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        #[cfg(not(unix))]
        let files = None;
        OF_PROCESS.get_or_init(|| Self::at_most(share_of(files, most), turns_away)).clone()
    }

    /// The number of connections that may be open at a time.
    pub fn most(&self) -> usize {
        self.open().most
    }

    pub(super) fn at_most(most: usize, turns_away: bool) -> Self {
        let (seats, beyond) = (BTreeMap::new(), BTreeMap::new());
        Self(Arc::new(Mutex::new(Open { most: most.max(1), turns_away, seats, beyond, next: 0 })))
    }

    /// Gives a new connection its place in the order of signs of life. Returns its number, and `true` if it is beyond the limit.
    pub(super) fn admit(&self, permit: Arc<ConnectionPermit>) -> (u64, bool) {
        let mut open = self.open();
        let is_full = open.seats.len() >= open.most;
        let mut crowded_out = if is_full { open.make_room() } else { None };
        let is_beyond = is_full && crowded_out.is_none();
        if is_beyond && open.beyond.len() >= MOST_BEYOND {
            crowded_out = open.beyond.pop_first().map(|(_, oldest)| oldest);
        }
        let number = open.enter(permit, is_beyond);
        drop(open);
        if let Some(permit) = crowded_out {
            // At once, and not when the task of that connection has its turn: the next connection may come before.
            permit.close();
        }
        (number, is_beyond)
    }

    /// Moves a connection to the end of the order. Returns its new number.
    pub(super) fn received(&self, number: u64) -> u64 {
        let mut open = self.open();
        match open.seats.remove(&number) {
            Some(permit) => open.enter(permit, false),
            None => number,
        }
    }

    pub(super) fn leave(&self, number: u64) {
        let mut open = self.open();
        open.seats.remove(&number);
        open.beyond.remove(&number);
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        let open = self.open();
        open.seats.len() + open.beyond.len()
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        // No code that could panic runs under the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    /// Takes out the connection that makes room for a new one, if one does.
    fn make_room(&mut self) -> Option<Arc<ConnectionPermit>> {
        let mut seats = self.seats.iter();
        let (number, _) = seats.find(|(_, permit)| !self.turns_away || !permit.has_asked())?;
        let number = *number;
        self.seats.remove(&number)
    }

    fn enter(&mut self, permit: Arc<ConnectionPermit>, is_beyond: bool) -> u64 {
        let number = self.next;
        self.next += 1;
        if is_beyond { &mut self.beyond } else { &mut self.seats }.insert(number, permit);
        number
    }
}

/// The part of the files that a process may open, of which `None` has no limit.
fn share_of(files: Option<u64>, most: usize) -> usize {
    files.and_then(|files| usize::try_from(files / 2).ok()).map_or(most, |half| half.min(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_get_half_of_the_files_and_512_at_most() {
        let shares = [None, Some(1023), Some(1024), Some(1026), Some(101)].map(|files| share_of(files, MOST));
        assert_eq!(shares, [512, 511, 512, 512, 50]);
    }
}
