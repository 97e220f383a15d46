//! A simulation: many seeds, on all cores, or one seed and its history.

use std::fmt::{self, Debug, Display, Formatter};
use std::num::NonZeroUsize;
use std::ops::AddAssign;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;

use super::timeline::{Run, Violation};

/// Conditions that this many seeds in a row do not have are not in any.
const MOST_SKIPPED: u64 = 1_000_000;

/// A simulation, in which every seed has exactly one history.
pub trait Simulation: Sync {
    /// The numbers of a run.
    type Stats: AddAssign + Debug + Default + Display + Send;

    /// The number of hours of a test run.
    fn hours(&self) -> f64;

    /// The conditions that a seed determines.
    fn conditions(&self, seed: u64) -> impl Debug;

    /// Runs the history of a seed, and remembers its last events.
    fn run(&self, seed: u64, events: usize) -> Run<Self::Stats>;
}

/// The seeds to run.
#[derive(Args, Clone, Debug, Default)]
pub struct Campaign {
    /// The number of hours to simulate [default: those of a test run]
    #[arg(long)]
    pub hours: Option<f64>,
    /// The first seed
    #[arg(long, default_value_t = 0)]
    pub first_seed: u64,
    /// Leave out the seeds whose printed conditions do not have this text, such as `trouble: Much`
    #[arg(long)]
    pub condition: Vec<String>,
    /// The number of threads [default: one per core]
    #[arg(long)]
    pub threads: Option<NonZeroUsize>,
    /// Replay this seed only, and print its history
    #[arg(long)]
    pub seed: Option<u64>,
    /// The number of events of a history to print
    #[arg(long, default_value_t = 400)]
    pub lines: usize,
}

/// The result of many runs.
#[derive(Debug, Default)]
pub struct Outcome<S> {
    /// The number of seeds that were run.
    pub seeds: u64,
    /// The amount of simulated time.
    pub simulated: Duration,
    /// The duration in real time.
    pub took: Duration,
    /// The numbers of all runs together.
    pub stats: S,
    /// The smallest seed that broke a promise, if there was one.
    pub failed: Option<(u64, Violation)>,
}

impl Campaign {
    /// Runs seeds until enough time was simulated or a promise was broken.
    pub fn run<S: Simulation>(&self, simulation: &S) -> Outcome<S::Stats> {
        let start = Instant::now();
        let enough = Duration::from_secs_f64(self.hours.unwrap_or_else(|| simulation.hours()) * 3600.0);
        let cores = thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        let (next_seed, outcome) = (AtomicU64::new(self.first_seed), Mutex::new(Outcome::default()));
        let run_seeds = || loop {
            let seed = self.next_seed(simulation, &next_seed);
            let run = simulation.run(seed, 0);
            let mut outcome = outcome.lock().unwrap();
            outcome.add(seed, run);
            if outcome.simulated >= enough || outcome.failed.is_some() {
                return;
            }
        };
        thread::scope(|scope| (0..self.threads.unwrap_or(cores).get()).for_each(|_| drop(scope.spawn(run_seeds))));
        Outcome { took: start.elapsed(), ..outcome.into_inner().unwrap() }
    }

    fn next_seed(&self, simulation: &impl Simulation, next: &AtomicU64) -> u64 {
        let mut seeds = (0..MOST_SKIPPED).map(|_| next.fetch_add(1, Ordering::Relaxed));
        let is_wanted = |seed: &u64| {
            let has = |printed: &str| self.condition.iter().all(|condition| printed.contains(condition));
            self.condition.is_empty() || has(&format!("{:?}", simulation.conditions(*seed)))
        };
        seeds.find(is_wanted).unwrap_or_else(|| panic!("no seed has these conditions: {:?}", self.condition))
    }

    /// Runs the seeds that were asked for, and says what was found. Returns the status of the program.
    pub fn carry_out(&self, simulation: &impl Simulation) -> ExitCode {
        let failed = self.seed.or_else(|| {
            let outcome = self.run(simulation);
            println!("{outcome}");
            outcome.failed.map(|(seed, _)| seed)
        });
        let Some(seed) = failed else { return ExitCode::SUCCESS };
        let Run { story, violation, .. } = simulation.run(seed, self.lines);
        println!("{:#?}\n{story}", simulation.conditions(seed));
        let Some(violation) = violation else { return ExitCode::SUCCESS };
        println!("{violation}\nviolated: {} seed: {seed}", violation.property);
        ExitCode::FAILURE
    }
}

impl<S: AddAssign> Outcome<S> {
    fn add(&mut self, seed: u64, run: Run<S>) {
        self.seeds += 1;
        self.simulated += run.simulated;
        self.stats += run.stats;
        // Two threads may fail at the same time. Choosing the smaller seed makes the result reproducible.
        if self.failed.as_ref().is_none_or(|(failed, _)| seed < *failed) {
            self.failed = run.violation.map(|violation| (seed, violation)).or(self.failed.take());
        }
    }
}

impl<S: Display> Display for Outcome<S> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { seeds, simulated, took, stats, failed } = self;
        let (hours, took) = (simulated.as_secs_f64() / 3600.0, took.as_secs_f64());
        write!(f, "{hours:.0} simulated hours in {took:.1} s, {seeds} seeds: {stats}")?;
        failed.iter().try_for_each(|(seed, violation)| write!(f, "\nseed {seed} violates {violation}"))
    }
}
