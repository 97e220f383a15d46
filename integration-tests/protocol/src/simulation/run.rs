//! One seed, one history.

use std::sync::Arc;
use std::time::Duration;

use metrics::set_default_local_recorder;
use tokio::runtime::Builder;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use super::dice::Dice;
use super::listener::Listener;
use super::node;
use super::oracle::{Property, Stats, Violation};
use super::scenario::{NODES, Scenario};
use super::world::World;

/// How long a run lasts, at the least, in its own time.
pub const RUN_LENGTH: Duration = Duration::from_secs(30 * 60);

/// What became of a run.
#[derive(Clone, Debug)]
pub struct Run {
    /// What it was drawn from.
    pub seed: u64,
    /// How much time passed in it.
    pub simulated: Duration,
    /// The promise that was broken, if any was.
    pub violation: Option<Violation>,
    /// What happened how often.
    pub stats: Stats,
    /// The same for runs with the same history.
    pub fingerprint: u64,
    /// The conditions and the last events, for people; empty unless asked for, or a promise was broken.
    pub story: String,
}

/// Runs the history of `seed`, and tells its last `lines` events even if nothing is wrong.
#[must_use]
pub fn run(seed: u64, lines: Option<usize>) -> Run {
    // Multi-threaded runtimes and running clocks have no single history.
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
    runtime.block_on(history(seed, lines))
}

async fn history(seed: u64, lines: Option<usize>) -> Run {
    const LINES_OF_A_FAILURE: usize = 120;

    let mut dice = Dice::new(seed);
    let scenario = Scenario::draw(&mut dice);
    let conditions = format!("{scenario:#?}\n");
    let world = World::new(scenario, RUN_LENGTH, &mut dice);
    let listener = Listener::new(&world);
    let _listening = set_default_local_recorder(&listener);
    let mut tasks = JoinSet::new();
    for node in 0..NODES {
        tasks.spawn(node::live(Arc::clone(&world), node, dice.fork()));
    }
    tasks.spawn(Arc::clone(&world).make_weather(dice.fork()));
    tasks.spawn(Arc::clone(&world).delete_at_times(dice.fork()));
    tasks.spawn(Arc::clone(&world).request_transfers(dice.fork()));
    tokio::select! {
        biased;
        () = world.violated() => {}
        ended = tasks.join_next() => {
            let what = ended.and_then(Result::err).map_or("a node ended".to_owned(), |error| error.to_string());
            world.oracle(|oracle, now| oracle.violated(now, Property::NoPanic, what));
        }
        () = alternate(&world, &mut dice) => end(&world, tasks).await,
    }
    world.oracle(|oracle, now| {
        let violation = oracle.violation().cloned();
        let lines = lines.or(violation.is_some().then_some(LINES_OF_A_FAILURE));
        Run {
            seed,
            simulated: now,
            violation,
            stats: oracle.stats,
            fingerprint: oracle.timeline.fingerprint(),
            story: lines.map(|lines| conditions + &oracle.story(lines)).unwrap_or_default(),
        }
    })
}

/// Lets things go wrong for a while, then nothing until there must be a leader, and so on.
async fn alternate(world: &World, dice: &mut Dice) {
    let lease = world.scenario.timings.lease;
    while world.now() < RUN_LENGTH {
        world.set_calm(false);
        sleep(dice.between(lease * 8, lease * 40)).await;
        world.set_calm(true);
        let straggling = world.last_straggler().saturating_sub(world.now());
        sleep_until(Instant::now() + straggling + world.scenario.longest_without_leader()).await;
        world.oracle(|oracle, now| oracle.check_has_leader(now));
        sleep(dice.between(lease * 2, lease * 4)).await;
        world.oracle(|oracle, now| {
            oracle.check_has_leader(now);
            oracle.check_all_know_the_leader(now);
        });
    }
}

/// Ends everything, and looks whether everything has ended.
async fn end(world: &World, mut tasks: JoinSet<()>) {
    tasks.shutdown().await;
    // Time passes only when nothing is left to run, on this thread or on those that may block.
    sleep(Duration::from_millis(1)).await;
    world.oracle(|oracle, now| oracle.check_all_stopped(now));
}
