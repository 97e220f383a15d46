//! The settings of a probe.

use std::iter::repeat_n;
use std::sync::Arc;
use std::time::Duration;

use leaderelection::clock::{Clock, SystemClock};
use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus;

/// The settings of a [probe](crate::probe()): its place, its races, its limits.
///
/// ```
/// use std::time::Duration;
/// use leaderelection_conformance::ProbeConfig;
///
/// let config = ProbeConfig::new().prefix("scratch/").writers(32).rounds(4).time_limit(Duration::from_secs(20));
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct ProbeConfig {
    prefix: String,
    id: Option<String>,
    pub(crate) writers: usize,
    pub(crate) rounds: usize,
    pub(super) request_timeout: Duration,
    pub(super) time_limit: Duration,
    pub(super) clock: Arc<dyn Clock>,
}

const FOLDER: &str = "leaderelection-probe/";

/// Returns `true` if `key` is that of an object in a folder of probes, and so not that of a lock.
///
/// ```
/// use leaderelection_conformance::is_object_of_probe;
///
/// assert!(is_object_of_probe("locks/leaderelection-probe/0198c0de/creators-7"));
/// assert!(!is_object_of_probe("locks/leaderelection-probe"));
/// ```
#[must_use]
pub fn is_object_of_probe(key: &str) -> bool {
    key.starts_with(FOLDER) || key.contains(&format!("/{FOLDER}"))
}

impl ProbeConfig {
    /// Creates the default settings: one round of races, of up to 64 writers.
    pub fn new() -> Self {
        Self {
            prefix: FOLDER.to_owned(),
            id: None,
            writers: 64,
            rounds: 1,
            request_timeout: Duration::from_secs(10),
            time_limit: Duration::from_secs(60),
            clock: Arc::new(SystemClock),
        }
    }

    /// Sets the beginning of the keys of the probe's objects; a folder's name ends with `/`. The default is
    /// `leaderelection-probe/`. Every probe adds an id of its own, so that several probes can run at once.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Puts the probe's objects into a folder beside the object `key`, so that one rule can allow an elector
    /// to write both.
    ///
    /// For `locks/scheduler` that is the prefix `locks/leaderelection-probe/`.
    pub fn beside(self, key: &str) -> Self {
        let folder = key.rfind('/').map_or("", |end| &key[..=end]);
        self.prefix(format!("{folder}{FOLDER}"))
    }

    /// Sets the largest number of writers that race for one object. 64 by default, at least 2. Most races are
    /// narrower: of 2, 4 and 16 writers.
    pub fn writers(mut self, writers: usize) -> Self {
        self.writers = writers.max(2);
        self
    }

    /// Sets the number of times that all races are run. Once by default. The more races, the rarer the fault that
    /// they find.
    pub fn rounds(mut self, rounds: usize) -> Self {
        self.rounds = rounds.max(1);
        self
    }

    /// Sets the time after which the outcome of a request counts as unknown. 10 s by default.
    pub fn request_timeout(mut self, request_timeout: Duration) -> Self {
        self.request_timeout = request_timeout;
        self
    }

    /// Sets the time limit for all checks together, after which the probe is inconclusive. 60 s by default.
    /// Cleaning up afterwards takes up to 10 s more.
    pub fn time_limit(mut self, time_limit: Duration) -> Self {
        self.time_limit = time_limit;
        self
    }

    /// Sets another clock than the machine's, for tests.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Sets the id to use instead of a random one. The id must be new.
    pub(crate) fn id(mut self, id: String) -> Self {
        self.id = Some(id);
        self
    }

    /// The numbers of writers of all races, in their order. `round` has the races of one round, as numbers of writers
    /// and of races.
    pub(super) fn races(&self, round: &[(usize, usize)]) -> Vec<usize> {
        let round = round.iter().flat_map(|&(writers, races)| repeat_n(writers.min(self.writers), races));
        (0..self.rounds).flat_map(|_| round.clone()).collect()
    }

    /// The folder for the objects of one probe.
    pub(super) fn folder(&self) -> String {
        let random = || format!("{:032x}", rand::make_rng::<Xoshiro256PlusPlus>().random::<u128>());
        format!("{}{}", self.prefix, self.id.clone().unwrap_or_else(random))
    }
}

impl Default for ProbeConfig {
    fn default() -> Self {
        Self::new()
    }
}
