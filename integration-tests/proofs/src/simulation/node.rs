//! A machine, the processes that run on it one after the other, and their faults.

use std::pin::pin;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use leaderelection::clock::{Clock, LocalInstant};
use leaderelection::election::ElectionConfig;
use leaderelection::{
    DefaultLeaderElector, Elector, LeaderElectionConfig, LeaderElectionConfigBuilder, ObjectLock, ObjectStoreBasedLock,
    RunError,
};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::clock::NodeClock;
use super::dice::Dice;
use super::faults::Link;
use super::gate::gated;
use super::job::{Host, end_of};
use super::names::{Client, ProcessId};
use super::oracle::Newcomer;
use super::scenario::{NODES, Scenario, Trouble};
use super::store::Connection;
use super::timings::Timings;
use super::two_locks::TwoLocks;
use super::work::Worker;
use super::world::World;

/// The longest pause of a process between two terms, and between two lives when nothing goes wrong.
const SHORT: Duration = Duration::from_millis(400);

/// An event that happens to a process.
#[derive(Clone, Copy, Debug)]
enum Fortune {
    Cancel,
    StepDown,
    Transfer,
    Reconfigure(Timings),
    Crash,
    Freeze { lasts: Duration, timers_too: bool },
    Network { link: Link, lasts: Duration },
}

/// The time of the event.
#[derive(Clone, Copy, Debug)]
enum Due {
    After(Duration),
    AfterNextRequest(Duration),
    AfterNextStart(Duration),
}

/// The way in which a process uses its elector.
#[derive(Clone, Copy, Debug)]
enum Usage {
    Campaign,
    Run,
    RunWhileLeading,
    RunOnce,
}

/// Runs one process after the other until the end of the run.
pub(super) async fn live(world: Arc<World>, node: usize, mut dice: Dice) {
    let timings = world.scenario.timings;
    let mut lives = 0;
    sleep(dice.up_to(timings.retry)).await;
    loop {
        let process = Process::start(&world, node, lives, &mut dice);
        process.live(&mut dice).await;
        lives += 1;
        sleep(dice.up_to(SHORT)).await;
        if dice.chance(0.7) {
            let absent = timings.delay(&mut dice, timings.lease * 2);
            tokio::select! {
                biased;
                () = world.until_calm(true) => {}
                () = sleep(absent) => {}
            }
        }
    }
}

/// One process of a candidate.
struct Process {
    host: Host,
    usage: Usage,
}

impl Process {
    fn start(world: &Arc<World>, node: usize, lives: u32, dice: &mut Dice) -> Self {
        let (id, clock) = (world.oracle().next_process(), world.nodes[node].clock.clone());
        let identity = identity(&world.scenario, node, lives);
        let calls = Arc::default();
        let shared_dice = Arc::new(Mutex::new(dice.fork()));
        let worker =
            Worker { world: Arc::clone(world), node, process: id, dice: shared_dice, calls: Arc::clone(&calls) };
        let client = Client::Process { node, id };
        let locks = world.oracle().next_locks(dice);
        let lock: Arc<dyn ObjectStoreBasedLock> = match locks.parts {
            [_, ..] => Arc::new(TwoLocks::new(world, (locks, client), &identity)),
            [] => Arc::new(ObjectLock::new(Connection::new(world, client), "lock", identity.clone())),
        };
        let timings = world.scenario.timings_of_a_process(dice);
        let Timings { lease, deadline, retry, timeout, follower } = timings;
        let takes_back = world.scenario.has_ranks && dice.chance(0.7);
        let background_interval = world.scenario.peers.map(|peers| peers.background_interval);
        let config = LeaderElectionConfig::builder(lock, worker.callbacks())
            .lease_duration(lease)
            .renew_deadline(deadline)
            .retry_period(retry)
            .request_timeout(timeout)
            .release_on_cancel(dice.chance(0.5))
            .reclaim_own_identity(world.scenario.reclaim_own_identity)
            .clock(ProcessClock { world: Arc::downgrade(world), process: id, clock: clock.clone() })
            .name(id.to_string())
            .rank(world.scenario.rank_of(node))
            .failback(takes_back)
            .failback_doublings(world.scenario.failback_doublings)
            .background_interval(background_interval.unwrap_or(ElectionConfig::BACKGROUND_INTERVAL))
            .seed(dice.number());
        // Other timings need not suit the interval.
        let config =
            if follower > retry && !world.scenario.reconfigures { config.follower_interval(follower) } else { config };
        let trusted = world.scenario.store_clock_slack.filter(|_| dice.chance(0.8));
        let config = trusted
            .into_iter()
            .fold(config, LeaderElectionConfigBuilder::trust_store_clock)
            .build()
            .expect("scenarios have valid timings");
        let elector = Arc::new(DefaultLeaderElector::new(config));
        world.peers.listens(node, id, &elector);
        let handle = elector.handle();
        let twin = node < world.scenario.sharing_identity;
        let usage = match world.scenario.nights {
            true if dice.chance(0.85) => Usage::RunOnce,
            _ => dice.pick(&[Usage::Campaign, Usage::Run, Usage::RunWhileLeading]),
        };
        let campaigns = matches!(usage, Usage::Campaign) && !world.scenario.calls_twice;
        let newcomer = Newcomer { node, locks, identity, timings, twin, takes_back, campaigns, clock, handle, calls };
        world.oracle().began(newcomer);
        Self { host: Host { worker, elector, cancel: CancellationToken::new() }, usage }
    }

    /// Runs the process until it ends or crashes.
    async fn live(self, dice: &mut Dice) {
        let Worker { world, node, process: id, .. } = self.host.worker.clone();
        let candidate = self.compete(dice.fork());
        let (before, after) = (Arc::clone(&world), Arc::clone(&world));
        let mut candidate = gated(
            world.nodes[node].gate.clone(),
            candidate,
            move || before.let_another_task_run_at_times(id),
            move || after.oracle().check_term(id),
        );
        loop {
            tokio::select! {
                biased;
                () = &mut candidate => return world.oracle().ended(id),
                fortune = self.fortune(dice) => match fortune {
                    Fortune::Crash => break,
                    other => self.suffer(other, dice),
                },
            }
        }
        drop(candidate);
        drop(self.host);
        world.oracle().crashed(id);
        world.unfreeze(node, id);
        world.set_link(node, id, Link::Up);
    }

    /// Simulates the program around the elector.
    fn compete(&self, mut dice: Dice) -> impl Future<Output = ()> + use<> {
        let (usage, host) = (self.usage, self.host.clone());
        let Worker { world, process: id, .. } = host.worker.clone();
        let second = self.call_a_second_time(dice.fork());
        let main = async move {
            let Host { worker, elector, cancel } = &host;
            if let Usage::Campaign = usage {
                elector.campaign(cancel.clone().cancelled_owned()).await.expect("no check of the store is demanded");
                return;
            }
            while !cancel.is_cancelled() {
                let (token, reason) = if let Usage::Run = usage {
                    let Ok(outcome) = elector.run(cancel.clone().cancelled_owned()).await else {
                        // The second caller was first.
                        sleep(SHORT).await;
                        continue;
                    };
                    (outcome.fencing_token().map(u64::from), outcome.reason().cloned())
                } else if let Usage::RunOnce = usage {
                    host.compete(&mut dice).await
                } else {
                    let worker = worker.clone();
                    let work = move |leadership| worker.whole_term(leadership);
                    let result = elector.run_while_leading(cancel.clone().cancelled_owned(), work).await;
                    if let Err(RunError::Election(_)) = result {
                        sleep(SHORT).await;
                        continue;
                    }
                    world.oracle().output(id, &result);
                    end_of(result)
                };
                world.oracle().run_ended(id, token, reason);
                sleep(dice.up_to(SHORT)).await;
            }
        };
        async move {
            tokio::join!(main, second);
        }
    }

    /// Calls the elector at times while it is in use already, and cancels that call a while later.
    fn call_a_second_time(&self, mut dice: Dice) -> impl Future<Output = ()> + use<> {
        let (usage, host) = (self.usage, self.host.clone());
        let Worker { world, process: id, .. } = host.worker.clone();
        async move {
            if !world.scenario.calls_twice || matches!(usage, Usage::RunOnce) {
                return;
            }
            let Host { elector, cancel, .. } = &host;
            let timings = world.scenario.timings;
            while !cancel.is_cancelled() {
                let own = cancel.child_token();
                tokio::select! {
                    biased;
                    () = cancel.cancelled() => return,
                    () = sleep(dice.up_to(timings.lease * 8)) => {}
                }
                let mut call = pin!(elector.run(own.clone().cancelled_owned()));
                let ended = tokio::select! {
                    biased;
                    _ = &mut call => true,
                    () = sleep(timings.delay(&mut dice, timings.lease * 2)) => false,
                };
                if !ended {
                    world.oracle().caller_cancelled(id);
                    own.cancel();
                    let _ = call.await;
                    world.oracle().caller_returned(id);
                }
            }
        }
    }

    /// Waits for the next event of this process.
    async fn fortune(&self, dice: &mut Dice) -> Fortune {
        let Worker { world, node, .. } = &self.host.worker;
        let (machine, scenario) = (&world.nodes[*node], &world.scenario);
        loop {
            if scenario.operator_deletes {
                return std::future::pending().await;
            }
            let fortune = Fortune::draw(scenario, dice);
            let due = Due::draw(scenario, dice);
            world.until_calm(false).await;
            let happens = async {
                match due {
                    Due::After(gap) => sleep(gap).await,
                    Due::AfterNextRequest(gap) => {
                        sleep(scenario.timings.retry).await;
                        machine.sends.notified().await;
                        sleep(gap).await;
                    }
                    Due::AfterNextStart(gap) => {
                        machine.starts_work.notified().await;
                        sleep(gap).await;
                    }
                }
            };
            tokio::select! {
                biased;
                () = world.until_calm(true) => {}
                () = happens => return fortune,
            }
        }
    }

    fn suffer(&self, fortune: Fortune, dice: &mut Dice) {
        let (&Worker { ref world, node, process: id, .. }, handle) = (&self.host.worker, self.host.elector.handle());
        let is_frozen = world.nodes[node].gate.is_closed();
        match fortune {
            // These events need a running process.
            Fortune::Cancel | Fortune::StepDown | Fortune::Transfer | Fortune::Reconfigure(_) if is_frozen => {}
            Fortune::Reconfigure(timings) => {
                world.oracle().reconfigured(id, timings);
                handle.reconfigure(timings.checked()).expect("scenarios have valid timings");
            }
            Fortune::Cancel => {
                world.oracle().cancelled(id);
                self.host.cancel.cancel();
            }
            Fortune::StepDown => {
                world.oracle().gives_up(id);
                let led = handle.step_down();
                world.oracle().stepped_down(id, led);
            }
            Fortune::Transfer => {
                let to = any_identity(&world.scenario, dice);
                world.oracle().gives_up(id);
                let led = handle.transfer_to(&to).is_ok();
                world.oracle().handed_over(id, &to, led);
            }
            Fortune::Freeze { lasts, timers_too } => world.freeze(node, id, lasts, timers_too),
            Fortune::Network { link, lasts } => {
                world.set_link(node, id, link);
                let world = Arc::clone(world);
                tokio::spawn(async move {
                    sleep(lasts).await;
                    world.set_link(node, id, Link::Up);
                });
            }
            Fortune::Crash => {}
        }
    }
}

impl Fortune {
    fn draw(scenario: &Scenario, dice: &mut Dice) -> Self {
        let timings = &scenario.timings;
        let lasts = timings.delay(dice, timings.lease * 2);
        if scenario.reconfigures && dice.chance(0.4) {
            return Self::Reconfigure(scenario.timings_of_a_process(dice));
        }
        let kinds = if scenario.trouble == Trouble::None { 3 } else { 9 };
        match dice.below(kinds) {
            0 => Self::Cancel,
            1 => Self::StepDown,
            2 => Self::Transfer,
            3 | 4 => Self::Crash,
            5 | 6 => Self::Freeze { lasts, timers_too: dice.chance(0.3) },
            7 => Self::Network { link: Link::Down, lasts },
            _ => Self::Network { link: Link::Deaf, lasts },
        }
    }
}

impl Due {
    fn draw(scenario: &Scenario, dice: &mut Dice) -> Self {
        let timings = &scenario.timings;
        let usual_gap = timings.lease * if scenario.trouble == Trouble::Much { 6 } else { 40 };
        match dice.below(4) {
            0 | 1 => Self::After(dice.up_to(usual_gap)),
            2 => Self::AfterNextRequest(timings.delay(dice, timings.timeout)),
            _ => Self::AfterNextStart(timings.delay(dice, timings.lease * 2)),
        }
    }
}

/// The clock of a node, as one process reads it.
///
/// An elector asks for the wall time within its steps: when it makes a write, when a term starts and when its work is
/// about to be polled. Time passes at some of these moments, for all nodes, as if the machine under all nodes had been
/// suspended. The same happens when an elector reports the answer to its
/// write, and when it reports that its work is to be dropped.
#[derive(Clone, Debug)]
struct ProcessClock {
    /// The world has handles of electors, which have this clock.
    world: Weak<World>,
    process: ProcessId,
    clock: NodeClock,
}

#[async_trait]
impl Clock for ProcessClock {
    fn now(&self) -> LocalInstant {
        self.clock.now()
    }

    fn wall_time(&self) -> DateTime<Utc> {
        if let Some(world) = self.world.upgrade() {
            world.stand_still_at_times(self.process);
        }
        self.clock.wall_time()
    }

    async fn sleep_until(&self, deadline: LocalInstant) -> LocalInstant {
        self.clock.sleep_until(deadline).await
    }
}

/// The first identity of some node. The node's process may have another identity by now, or be dead.
pub(super) fn any_identity(scenario: &Scenario, dice: &mut Dice) -> String {
    let nodes: Vec<_> = (0..NODES).collect();
    identity(scenario, dice.pick(&nodes), 0)
}

fn identity(scenario: &Scenario, node: usize, lives: u32) -> String {
    if node < scenario.sharing_identity {
        "twin".to_owned()
    } else if scenario.new_identity_on_restart {
        format!("node-{node}-{lives}")
    } else {
        format!("node-{node}")
    }
}
