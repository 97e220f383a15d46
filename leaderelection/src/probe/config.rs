//! What a probe is told.

use std::sync::Arc;
use std::time::Duration;

use rand::RngExt;
use rand::rngs::Xoshiro256PlusPlus;

use crate::clock::{Clock, SystemClock};

/// How hard [`probe`](super::probe) tries, and where.
///
/// ```
/// use std::time::Duration;
/// use leaderelection::probe::ProbeConfig;
///
/// let config = ProbeConfig::new().prefix("scratch/").writers(32).rounds(4).time_limit(Duration::from_secs(20));
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct ProbeConfig {
    prefix: String,
    id: Option<String>,
    pub(super) writers: usize,
    pub(super) rounds: usize,
    pub(super) request_timeout: Duration,
    pub(super) time_limit: Duration,
    pub(super) clock: Arc<dyn Clock>,
}

const FOLDER: &str = "leaderelection-probe/";

impl ProbeConfig {
    /// The defaults: 8 rounds of 16 writers.
    pub fn new() -> Self {
        Self {
            prefix: FOLDER.to_owned(),
            id: None,
            writers: 16,
            rounds: 8,
            request_timeout: Duration::from_secs(10),
            time_limit: Duration::from_secs(60),
            clock: Arc::new(SystemClock),
        }
    }

    /// What the keys of the probe's objects begin with; a folder's name ends with `/`. By default
    /// `leaderelection-probe/`. Every probe adds an id of its own, so that several can run at once.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Puts the probe's objects into a folder beside the object `key`, so that whoever may write the one
    /// can be allowed to write the other by the same rule.
    ///
    /// For `locks/scheduler` that is the prefix `locks/leaderelection-probe/`.
    pub fn beside(self, key: &str) -> Self {
        let folder = key.rfind('/').map_or("", |end| &key[..=end]);
        self.prefix(format!("{folder}{FOLDER}"))
    }

    /// How many writers race for one object. 16 by default, at least 2.
    pub fn writers(mut self, writers: usize) -> Self {
        self.writers = writers.max(2);
        self
    }

    /// How often each race is run. 8 by default, at least once. The first opens the connections, so that
    /// the later ones are the closer.
    pub fn rounds(mut self, rounds: usize) -> Self {
        self.rounds = rounds.max(1);
        self
    }

    /// How long one request may take before its outcome counts as unknown. 10 s by default.
    pub fn request_timeout(mut self, request_timeout: Duration) -> Self {
        self.request_timeout = request_timeout;
        self
    }

    /// How long the checks may take together before the probe counts as inconclusive. 60 s by default.
    /// Cleaning up afterwards takes up to 10 s more.
    pub fn time_limit(mut self, time_limit: Duration) -> Self {
        self.time_limit = time_limit;
        self
    }

    /// Another clock than the machine's: for tests.
    pub fn clock(self, clock: impl Clock) -> Self {
        self.shared_clock(Arc::new(clock))
    }

    pub(crate) fn shared_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// The id to use in place of a random one. It must not have been used before.
    pub(crate) fn id(mut self, id: String) -> Self {
        self.id = Some(id);
        self
    }

    /// Where one probe keeps its objects.
    pub(super) fn folder(&self) -> String {
        let random = || {
            let bytes = rand::make_rng::<Xoshiro256PlusPlus>().random();
            uuid::Builder::from_random_bytes(bytes).into_uuid().to_string()
        };
        format!("{}{}", self.prefix, self.id.clone().unwrap_or_else(random))
    }
}

impl Default for ProbeConfig {
    fn default() -> Self {
        Self::new()
    }
}
