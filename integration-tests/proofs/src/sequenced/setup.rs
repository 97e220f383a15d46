//! The faults and the bounds of an exploration, and the explored setups.

use crate::kit::{Question, questions};

/// The faults and the bounds of an exploration.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// The number of newest objects that a write keeps.
    pub keep: u64,
    /// The highest number that is explored.
    pub last_number: u64,
    /// The number of writes that each process begins.
    pub writes: Vec<u8>,
    /// The number of creations and removals that are in flight although nobody waits for them.
    pub late: usize,
    /// The order in which a listing reads the keys.
    pub listing: Listing,
    /// A process crashes, and begins anew with nothing that it knows.
    pub crashes: bool,
    /// A request fails, with an effect, with a late one, or without any.
    pub failures: bool,
    /// The lock is deleted.
    pub deletions: bool,
    /// A creation is delivered twice.
    pub duplicates: bool,
}

/// The way in which a store answers a listing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Listing {
    /// From one snapshot.
    #[default]
    Snapshot,
    /// Key by key, in ascending order, while other requests are carried out.
    Ascending,
}

/// Returns the setups of every test run.
pub fn questions() -> Vec<Question<Setup>> {
    questions! {
        new "late requests": two();
        new "failures": two(), failures: true;
        new "deletions in listings key by key": deleted(), late: 0;
        new "creations that are delivered twice": fewer(), duplicates: true;
    }
}

/// Returns the larger setups: deletions, listings that take time, more late requests, more kept objects, and crashes.
pub fn larger() -> Vec<Question<Setup>> {
    questions! {
        new "deletions in listings key by key, and a late request": deleted();
        new "listings key by key": two(), listing: Listing::Ascending;
        new "deletions": two(), deletions: true;
        new "two kept objects": two(), keep: 2, last_number: 4, writes: vec![4, 1];
        new "creations that are delivered twice, and three writes": two(), duplicates: true;
        new "two late requests": two(), late: 2;
        new "crashes": two(), crashes: true;
        new "failures and deletions, key by key": two(), failures: true, deletions: true, listing: Listing::Ascending;
    }
}

/// Returns a setup of two processes and one late request. With one kept object, the fewest writes remove a number that a
/// stalled process is about to create.
fn two() -> Setup {
    Setup { keep: 1, last_number: 3, writes: vec![3, 1], late: 1, ..Setup::default() }
}

/// Returns a setup of two processes with as few writes as remove a number.
fn fewer() -> Setup {
    Setup { writes: vec![2, 1], ..two() }
}

/// Returns a setup in which the lock is deleted, while listings read one key after the other.
fn deleted() -> Setup {
    Setup { listing: Listing::Ascending, deletions: true, ..fewer() }
}
