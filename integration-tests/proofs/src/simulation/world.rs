//! The state that the nodes of a run share.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use leaderelection::election::PeerMessage;
use leaderelection::implement::Precondition;
use leaderelection::{DefaultLeaderElector, LeaderElectionRecord};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::clock::{NodeClock, StoreClocks, TrueTime, stand_still};
use super::dice::Dice;
use super::faults::{Fate, Link, Outage};
use super::gate::Gate;
use super::names::{Client, LOCKS, ProcessId};
use super::object::Object;
use super::oracle::Oracle;
use super::scenario::{NODES, Scenario, Trouble};
use super::timings::Timings;
use crate::phase::OLD;

#[derive(Debug)]
pub(super) struct World {
    pub(super) scenario: Scenario,
    pub(super) nodes: Vec<Node>,
    /// The clock of a candidate of another library.
    pub(super) stranger: NodeClock,
    /// The lock's object; in a move, that of the old lock, and then those of the others.
    pub(super) objects: [Mutex<Object>; LOCKS],
    pub(super) peers: Channel,
    /// Tells the sweeper of a new object.
    pub(super) created: Notify,
    /// Tells whoever takes locks away of a new term.
    pub(super) led: Notify,
    origin: Instant,
    /// The choices of the requests' fates.
    fates: Mutex<Dice>,
    standstills: Mutex<Dice>,
    outage: Mutex<Option<Outage>>,
    /// The lock that is silent while all others answer.
    lost: Mutex<Option<usize>>,
    /// The moment of the last effect of all requests sent so far.
    last_straggler: Mutex<TrueTime>,
    oracle: Mutex<Oracle>,
    pub(super) is_broken: CancellationToken,
    calm: AtomicBool,
    /// The number of nights that have passed.
    pub(super) night: AtomicU64,
    /// A `Notify` wakes waiting tasks in the order in which they began to wait; a `watch` channel does not.
    calm_changed: Notify,
}

/// One machine, which survives a crash of its process.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) clock: NodeClock,
    pub(super) gate: Gate,
    pub(super) sends: Notify,
    pub(super) starts_work: Notify,
    link: Mutex<Link>,
    frozen: Mutex<Option<Freeze>>,
}

#[derive(Clone, Copy, Debug)]
struct Freeze {
    process: ProcessId,
    since: TrueTime,
    timers_too: bool,
}

impl World {
    pub(super) fn new(scenario: Scenario, (length, events): (Duration, usize), dice: &mut Dice) -> Arc<Self> {
        let origin = Instant::now();
        let node = |_| Node {
            clock: NodeClock::draw(origin, length, scenario.rates, dice),
            gate: Gate::default(),
            sends: Notify::new(),
            starts_work: Notify::new(),
            link: Mutex::default(),
            frozen: Mutex::default(),
        };
        let nodes = (0..NODES).map(node).collect();
        let stranger = NodeClock::draw(origin, length, scenario.rates, dice);
        let clocks = |dice: &mut Dice| {
            scenario.store_clock_slack.map(|slack| {
                let clock = NodeClock::draw(origin, length, scenario.rates, dice);
                StoreClocks::draw(clock, slack, dice)
            })
        };
        let mut objects = std::array::from_fn(|lock| {
            let is_there = lock < scenario.locks();
            Object::new(&scenario, is_there.then(|| clocks(dice)).flatten())
        });
        let mut oracle = Oracle::new(scenario.clone(), events);
        let has_lists = scenario.locks() > 2 && scenario.nights;
        if let Some(token) = scenario.first_token.or(has_lists.then_some(7)) {
            let mut record = LeaderElectionRecord::new("", Duration::from_secs(1));
            record.leader_transitions = token;
            // The locks that are in use before a move, and those that were in use long before.
            let first = scenario.rollouts.map_or(OLD, |rollouts| rollouts[0]);
            let one_is_enough = first.needs == first.parts.len() && scenario.hostile.is_none();
            let used = first.parts.iter().take(if one_is_enough { 1 } else { first.needs });
            let unused = (0..scenario.locks()).filter(|part| has_lists && !first.parts.contains(part));
            for (part, name) in used.map(|part| (*part, "before")).chain(unused.map(|part| (part, "other"))) {
                if has_lists {
                    let name = if name == "other" { format!("other-{part}") } else { name.to_owned() };
                    oracle.plants_jobs(&mut record, &name, name == "before");
                }
                objects[part].put(&record.to_json().into(), &Precondition::Absent, &record);
                oracle.planted(part, &record);
            }
        }
        Arc::new(Self {
            nodes,
            stranger,
            objects: objects.map(Mutex::new),
            peers: Channel::new(dice.fork()),
            created: Notify::new(),
            led: Notify::new(),
            origin,
            fates: Mutex::new(dice.fork()),
            standstills: Mutex::new(dice.fork()),
            outage: Mutex::default(),
            lost: Mutex::default(),
            last_straggler: Mutex::default(),
            is_broken: oracle.timeline.is_broken.clone(),
            oracle: Mutex::new(oracle),
            calm: AtomicBool::new(false),
            night: AtomicU64::new(0),
            calm_changed: Notify::new(),
            scenario,
        })
    }

    pub(super) fn now(&self) -> TrueTime {
        self.origin.elapsed()
    }

    /// Returns the oracle, to which everything is reported at once.
    pub(super) fn oracle(&self) -> MutexGuard<'_, Oracle> {
        let mut oracle = self.oracle.lock().unwrap();
        oracle.timeline.now = self.now();
        oracle
    }

    pub(super) fn log(&self, process: Option<ProcessId>, event: impl FnOnce() -> String) {
        self.oracle().log(process, event);
    }

    pub(super) fn is_calm(&self) -> bool {
        self.calm.load(Ordering::Relaxed)
    }

    pub(super) async fn until_calm(&self, calm: bool) {
        loop {
            let changed = self.calm_changed.notified();
            if self.is_calm() == calm {
                return;
            }
            changed.await;
        }
    }

    /// Begins a period with faults, or a period without faults, which repairs all existing faults.
    pub(super) fn set_calm(&self, calm: bool) {
        let things = if calm { "nothing goes wrong" } else { "things go wrong" };
        self.log(None, || format!("{things} from here on"));
        if calm {
            self.set_outage(None);
            self.lose(None);
            for (number, node) in self.nodes.iter().enumerate() {
                *node.link.lock().unwrap() = Link::Up;
                let frozen = node.frozen.lock().unwrap().map(|freeze| freeze.process);
                if let Some(process) = frozen {
                    self.unfreeze(number, process);
                }
            }
        }
        self.calm.store(calm, Ordering::Relaxed);
        self.calm_changed.notify_waiters();
    }

    pub(super) fn fate(&self, client: Client) -> Fate {
        let share = match client {
            _ if self.is_calm() => 0.0,
            Client::Process { .. } => self.scenario.trouble.of_requests(),
            Client::Operator(_) | Client::Stranger | Client::Sweeper => Trouble::Much.of_requests(),
        };
        let fate = Fate::draw(share, &self.scenario, &mut self.fates.lock().unwrap());
        let fate = if self.link(client) == Link::Down { Fate { arrives: None, ..fate } } else { fate };
        if let Some(arrives) = fate.arrives {
            let last = self.now() + arrives + fate.again.unwrap_or_default();
            let mut last_straggler = self.last_straggler.lock().unwrap();
            *last_straggler = last.max(*last_straggler);
        }
        fate
    }

    pub(super) fn last_straggler(&self) -> TrueTime {
        *self.last_straggler.lock().unwrap()
    }

    pub(super) fn outage(&self) -> Option<Outage> {
        *self.outage.lock().unwrap()
    }

    pub(super) fn set_outage(&self, outage: Option<Outage>) {
        let before = std::mem::replace(&mut *self.outage.lock().unwrap(), outage);
        if before != outage {
            self.log(None, || match outage {
                None => "the store works again".to_owned(),
                Some(outage) => format!("THE STORE FAILS: {outage:?}"),
            });
        }
    }

    /// Returns `true` if no request to this lock is carried out.
    pub(super) fn is_lost(&self, lock: usize) -> bool {
        *self.lost.lock().unwrap() == Some(lock)
    }

    fn lose(&self, lock: Option<usize>) {
        let before = std::mem::replace(&mut *self.lost.lock().unwrap(), lock);
        if before != lock {
            self.log(None, || lock.map_or("all locks answer".to_owned(), |lock| format!("LOCK {lock} IS SILENT")));
        }
    }

    pub(super) fn link(&self, client: Client) -> Link {
        match client {
            Client::Process { node, .. } => *self.nodes[node].link.lock().unwrap(),
            Client::Operator(_) | Client::Stranger | Client::Sweeper => Link::Up,
        }
    }

    pub(super) fn set_link(&self, node: usize, process: ProcessId, link: Link) {
        *self.nodes[node].link.lock().unwrap() = link;
        self.log(Some(process), || format!("network {link:?}"));
    }

    /// Stops a process for a while. Its clock goes on, but its timers may stand still.
    pub(super) fn freeze(self: &Arc<Self>, node: usize, process: ProcessId, lasts: Duration, timers_too: bool) {
        let machine = &self.nodes[node];
        if !machine.gate.close() {
            return;
        }
        *machine.frozen.lock().unwrap() = Some(Freeze { process, since: self.now(), timers_too });
        self.oracle().frozen(process, lasts, timers_too);
        let world = Arc::clone(self);
        tokio::spawn(async move {
            sleep(lasts).await;
            world.unfreeze(node, process);
        });
    }

    /// Lets `process` continue, if it is the frozen process of this node.
    pub(super) fn unfreeze(&self, node: usize, process: ProcessId) {
        let machine = &self.nodes[node];
        let freeze = machine.frozen.lock().unwrap().take_if(|freeze| freeze.process == process);
        let Some(Freeze { since, timers_too, .. }) = freeze else { return };
        if timers_too {
            machine.clock.timers_stood_since(since);
        }
        self.oracle().went_on(process, timers_too);
        machine.gate.open();
    }

    /// Stops all nodes at times, during a step of `process`. The clocks of the nodes go on.
    pub(super) fn stand_still_at_times(&self, process: ProcessId) {
        self.stand_still(process, self.scenario.trouble.of_clock_reads());
    }

    /// Lets another task keep the only thread for a while at times, when a future of `process` is about to be polled.
    pub(super) fn let_another_task_run_at_times(&self, process: ProcessId) {
        if self.scenario.shares_thread {
            self.stand_still(process, self.scenario.trouble.of_polls());
        }
    }

    fn stand_still(&self, process: ProcessId, share: f64) {
        let mut dice = self.standstills.lock().unwrap();
        if self.is_calm() || !dice.chance(share) {
            return;
        }
        let timings = &self.scenario.timings;
        let lasts = timings.delay(&mut dice, timings.lease * 2);
        self.oracle().observe_window(process);
        stand_still(lasts);
        self.oracle().stood_still(process, lasts);
    }

    /// Takes the store down at times, until the end of the run.
    pub(super) async fn make_weather(self: Arc<Self>, mut dice: Dice) {
        let timings = self.scenario.timings;
        let usual_gap = match self.scenario.trouble {
            Trouble::None => return std::future::pending().await,
            Trouble::Little => timings.lease * 40,
            Trouble::Much => timings.lease * 12,
        };
        loop {
            sleep(dice.up_to(usual_gap)).await;
            self.until_calm(false).await;
            self.set_outage(Some(Outage::draw(&self.scenario, &mut dice)));
            sleep(timings.delay(&mut dice, timings.lease * 2)).await;
            self.set_outage(None);
        }
    }

    /// Takes one lock after the other away, until the end of the run: often soon after a term has begun. Between two of them, a leader has
    /// time to write the first again.
    pub(super) async fn lose_one_lock_at_a_time(self: Arc<Self>, mut dice: Dice) {
        let Timings { lease, deadline, retry, .. } = self.scenario.timings;
        loop {
            sleep(deadline).await;
            match dice.chance(0.7) {
                true => self.led.notified().await,
                false => sleep(dice.up_to(lease * 4)).await,
            }
            sleep(dice.up_to(retry)).await;
            self.until_calm(false).await;
            self.lose(Some(dice.pick(&[0, 1, 2])));
            sleep(dice.up_to(lease * 3)).await;
            self.lose(None);
        }
    }
}

/// The number of messages that liars know.
pub(super) const REMEMBERED: usize = 24;

/// A process, and the elector of it that gets messages.
type Ear = (ProcessId, Weak<DefaultLeaderElector>);

/// The way between processes.
#[derive(Debug)]
pub(super) struct Channel {
    /// The processes that get the messages to their nodes.
    pub(super) ears: Mutex<[Option<Ear>; NODES]>,
    pub(super) dice: Mutex<Dice>,
    /// The last messages about writes, whether they are committed or not.
    pub(super) writes: Mutex<VecDeque<PeerMessage>>,
    /// The last message of a leader.
    pub(super) last: Mutex<Option<PeerMessage>>,
    numbers: AtomicU64,
}

impl Channel {
    pub(super) fn new(dice: Dice) -> Self {
        Self {
            ears: Mutex::default(),
            dice: Mutex::new(dice),
            writes: Mutex::default(),
            last: Mutex::default(),
            numbers: AtomicU64::default(),
        }
    }

    /// Gives the process of a node the messages from now on. A crashed process gets no more.
    pub(super) fn listens(&self, node: usize, process: ProcessId, elector: &Arc<DefaultLeaderElector>) {
        self.ears.lock().unwrap()[node] = Some((process, Arc::downgrade(elector)));
    }

    pub(super) fn next_number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }
}
