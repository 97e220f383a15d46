//! Many seeds, on all cores.

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::oracle::Stats;
use super::world::{RUN_LENGTH, Run, run};

/// A number of runs with successive seeds.
#[derive(Clone, Copy, Debug)]
pub struct Campaign {
    /// The amount of time to simulate.
    pub simulated: Duration,
    /// The first seed.
    pub first_seed: u64,
    /// The number of threads; by default the number of cores.
    pub threads: Option<NonZeroUsize>,
}

/// The result of a campaign.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The number of seeds that were run.
    pub seeds: u64,
    /// The amount of simulated time.
    pub simulated: Duration,
    /// The duration of the campaign in real time.
    pub took: Duration,
    /// The statistics of all runs together.
    pub stats: Stats,
    /// The run that broke a promise, if there was one.
    pub failed: Option<Run>,
}

impl Campaign {
    /// Runs seeds until enough time was simulated or a promise was broken.
    #[must_use]
    pub fn run(&self) -> Outcome {
        let start = Instant::now();
        let cores = thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        let (next_seed, over) = (AtomicU64::new(self.first_seed), AtomicBool::new(false));
        let outcome = Mutex::new(Outcome::default());
        thread::scope(|scope| {
            for _ in 0..self.threads.unwrap_or(cores).get() {
                scope.spawn(|| {
                    while !over.load(Ordering::Relaxed) {
                        let run = run(next_seed.fetch_add(1, Ordering::Relaxed), 0);
                        let mut outcome = outcome.lock().unwrap();
                        outcome.seeds += 1;
                        outcome.simulated += RUN_LENGTH;
                        outcome.stats += run.stats;
                        if run.violation.is_some() && outcome.failed.as_ref().is_none_or(|old| old.seed > run.seed) {
                            outcome.failed = Some(run);
                        }
                        if outcome.simulated >= self.simulated || outcome.failed.is_some() {
                            over.store(true, Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        let mut outcome = outcome.into_inner().unwrap();
        outcome.took = start.elapsed();
        outcome
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hours = self.simulated.as_secs_f64() / 3600.0;
        let Stats {
            requests,
            writes,
            sessions,
            terms,
            ended_by_others,
            releases,
            hand_overs,
            crashes,
            freezes,
            stops,
            deletions,
            interventions,
            longest_gap,
        } = self.stats;
        write!(
            f,
            "{hours:.0} simulated hours in {:.1} s, {} seeds: {requests} requests, {writes} writes, {sessions} sessions \
             ({ended_by_others} ended by others, {deletions} deleted), {terms} terms, {releases} releases of single locks, \
             {hand_overs} hand-overs, {crashes} crashes, {freezes} freezes, {stops} stops, {interventions} interventions, \
             at most {:.0} s without a leader",
            self.took.as_secs_f64(),
            self.seeds,
            longest_gap.as_secs_f64()
        )?;
        let Some(Run { seed, violation: Some((property, what)), .. }) = &self.failed else { return Ok(()) };
        write!(f, "\nseed {seed} violates {property:?}: {what}")
    }
}
