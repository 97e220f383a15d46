//! The faults and the bounds of an exploration.

/// The faults and the bounds of an exploration.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The number of newest objects that a write keeps.
    pub keep: u64,
    /// The highest number that is explored.
    pub last_number: u64,
    /// The number of writes that each process begins.
    pub writes: Vec<u8>,
    /// The number of creations and removals that are on their way although nobody waits for them.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    /// From one snapshot.
    Snapshot,
    /// Key by key, in ascending order, while other requests are carried out.
    Ascending,
}
