//! A run: the one history of a seed.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use metrics::set_default_local_recorder;
use tokio::runtime::Builder;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use super::dice::Dice;
use super::hostile;
use super::job;
use super::listener::Listener;
use super::node;
use super::operator;
use super::oracle::{Property, Stats};
use super::peers;
use super::scenario::{Layout, NODES, Scenario};
use super::sequenced;
use super::stranger;
use super::vandal;
use super::world::World;
use crate::kit::{Run, Simulation};

/// The shortest duration of a run, in simulated time.
const RUN_LENGTH: Duration = Duration::from_secs(30 * 60);

impl Simulation for Layout {
    type Stats = Stats;

    fn hours(&self) -> f64 {
        if *self == Self::OneObject { 40.0 } else { 10.0 }
    }

    fn conditions(&self, seed: u64) -> impl Debug {
        Scenario::draw_for(*self, seed, &mut Dice::new(seed))
    }

    fn run(&self, seed: u64, events: usize) -> Run<Stats> {
        // A multi-threaded runtime or a running clock would allow several histories.
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
        runtime.block_on(history(*self, seed, events))
    }
}

async fn history(layout: Layout, seed: u64, events: usize) -> Run<Stats> {
    let mut dice = Dice::new(seed);
    let scenario = Scenario::draw_for(layout, seed, &mut dice);
    let world = World::new(scenario, (RUN_LENGTH, events), &mut dice);
    let listener = Listener(Arc::clone(&world));
    let _listening = set_default_local_recorder(&listener);
    let mut tasks = JoinSet::new();
    for node in 0..NODES {
        tasks.spawn(node::live(Arc::clone(&world), node, dice.fork()));
    }
    tasks.spawn(Arc::clone(&world).make_weather(dice.fork()));
    let (shared, scenario) = (|| Arc::clone(&world), &world.scenario);
    let intervenes = scenario.operator_transfers || scenario.operator_releases || scenario.operator_deletes;
    let sweeps = scenario.sequenced.is_some_and(|sequenced| sequenced.sweeps);
    // Every part has choices of its own, whether it acts or not.
    acts(&mut tasks, scenario.operator_deletes, operator::delete_at_times(shared(), dice.fork()));
    acts(&mut tasks, intervenes, operator::intervene_at_times(shared(), dice.fork()));
    acts(&mut tasks, scenario.has_stranger, stranger::compete_at_times(shared(), dice.fork()));
    acts(&mut tasks, scenario.nights, job::let_nights_pass(shared(), dice.fork()));
    acts(&mut tasks, scenario.liar().is_some(), peers::lie_without_end(shared(), dice.fork()));
    acts(&mut tasks, sweeps, sequenced::sweep_without_end(shared(), dice.fork()));
    if scenario.loses_one_lock {
        tasks.spawn(shared().lose_one_lock_at_a_time(dice.fork()));
    }
    if scenario.hostile.is_some() {
        tasks.spawn(hostile::forge_without_end(shared(), dice.fork()));
    }
    acts(&mut tasks, scenario.is_spoilt, vandal::spoil_at_times(shared(), dice.fork()));
    tokio::select! {
        biased;
        () = world.is_broken.cancelled() => {}
        ended = tasks.join_next() => {
            let what = ended.and_then(Result::err).map_or("a node ended".to_owned(), |error| error.to_string());
            world.oracle().timeline.violated(Property::NoPanic, what);
        }
        () = alternate(&world, &mut dice) => end(&world, tasks).await,
    }
    let mut oracle = world.oracle();
    std::mem::take(&mut oracle.timeline).end(oracle.stats)
}

/// Begins a part of the world, if the conditions have it.
fn acts(tasks: &mut JoinSet<()>, is_there: bool, part: impl Future<Output = ()> + Send + 'static) {
    if is_there {
        tasks.spawn(part);
    }
}

/// Alternates between a period of faults and a period without faults, after which a leader must exist.
async fn alternate(world: &World, dice: &mut Dice) {
    let lease = world.scenario.timings.lease;
    while world.now() < RUN_LENGTH {
        world.set_calm(false);
        sleep(dice.between(lease * 8, lease * 40)).await;
        world.set_calm(true);
        let straggling = world.last_straggler().saturating_sub(world.now());
        let calm_since = world.now() + straggling;
        sleep_until(Instant::now() + straggling + world.scenario.longest_without_leader()).await;
        world.oracle().check_has_leader();
        world.oracle().check_cancelled_are_gone();
        sleep(dice.between(lease * 2, lease * 4)).await;
        world.oracle().check_has_leader();
        world.oracle().check_all_know_the_leader();
        world.oracle().check_best_leads(calm_since);
    }
}

/// Ends all tasks, and checks that every process has ended.
async fn end(world: &World, mut tasks: JoinSet<()>) {
    tasks.shutdown().await;
    // Time passes only when no task can run.
    sleep(Duration::from_millis(1)).await;
    world.oracle().check_all_stopped();
}
