//! Many seeds, on all cores.

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::oracle::Stats;
use super::run::{Layout, Run, conditions, run};

/// Conditions that this many seeds in a row do not have are not in any.
const MOST_SKIPPED: u64 = 1_000_000;

/// A number of runs with successive seeds.
#[derive(Clone, Copy, Debug)]
pub struct Campaign<'a> {
    /// The way in which the lock is stored.
    pub layout: Layout,
    /// The amount of time to simulate.
    pub simulated: Duration,
    /// The limit in real time, after which the campaign stops.
    pub time_limit: Duration,
    /// The first seed.
    pub first_seed: u64,
    /// The texts that the printed conditions of a seed must have; other seeds are left out.
    pub conditions: &'a [String],
    /// The number of threads; by default the number of cores.
    pub threads: Option<NonZeroUsize>,
}

/// The result of a campaign.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The way in which the lock was stored.
    pub layout: Layout,
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

impl Campaign<'_> {
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
                        let run = run(self.layout, self.next_seed(&next_seed), None);
                        let mut outcome = outcome.lock().unwrap();
                        outcome.add(run);
                        let enough = outcome.simulated >= self.simulated || start.elapsed() >= self.time_limit;
                        if enough || outcome.failed.is_some() {
                            over.store(true, Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        let mut outcome = outcome.into_inner().unwrap();
        outcome.layout = self.layout;
        outcome.took = start.elapsed();
        outcome
    }

    fn next_seed(&self, next: &AtomicU64) -> u64 {
        let mut seeds = (0..MOST_SKIPPED).map(|_| next.fetch_add(1, Ordering::Relaxed));
        let is_wanted = |seed: &u64| {
            let has = |printed: &str| self.conditions.iter().all(|condition| printed.contains(condition));
            self.conditions.is_empty() || has(&conditions(self.layout, *seed))
        };
        seeds.find(is_wanted).unwrap_or_else(|| panic!("no seed has these conditions: {:?}", self.conditions))
    }
}

impl Outcome {
    fn add(&mut self, run: Run) {
        self.seeds += 1;
        self.simulated += run.simulated;
        self.stats += run.stats;
        if run.violation.is_some() {
            // Two threads may fail at the same time. Choosing the smaller seed makes the result reproducible.
            match &self.failed {
                Some(failed) if failed.seed < run.seed => {}
                _ => self.failed = Some(run),
            }
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hours = self.simulated.as_secs_f64() / 3600.0;
        let Stats {
            requests,
            writes,
            terms,
            deadlines,
            losses,
            releases,
            crashes,
            freezes,
            standstills,
            clashes,
            interventions,
            strangers,
            jobs,
            repetitions,
            words,
            late_creations,
            take_backs,
            forgiven,
        } = self.stats;
        write!(
            f,
            "{hours:.0} simulated hours in {:.1} s, {} seeds: {requests} requests, {writes} writes, {terms} terms \
             ({deadlines} ended at the deadline, {losses} found taken), {releases} releases, {crashes} crashes, \
             {freezes} freezes, {standstills} standstills, {clashes} clashes of identities, {interventions} interventions, \
             {strangers} writes of strangers, {jobs} jobs done, {repetitions} of them again, \
             {words} words of peers, {late_creations} late creations, {take_backs} requests of better candidates, \
              {forgiven} times forgotten",
            self.took.as_secs_f64(),
            self.seeds
        )?;
        let Some(Run { seed, violation: Some(violation), story, .. }) = &self.failed else { return Ok(()) };
        let layout = match self.layout {
            Layout::OneObject => "",
            Layout::Sequenced => " --sequenced",
            Layout::TwoLocks => " --two-locks",
        };
        write!(
            f,
            "\n\n{story}\nseed {seed} violates {violation}\nreplay it: cargo run --release -p \
             leaderelection-proofs --features check --bin simulate --{layout} --seed {seed}"
        )
    }
}
