//! The conditions that a seed determines.

use std::time::Duration;

use leaderelection::lock::MAX_LEADER_TRANSITIONS;

use super::clock::Rate;
use super::dice::Dice;
use super::timings::Timings;
use crate::phase::{BACK, FORWARD, Rollouts, STAYS, STAYS_ALL, STAYS_FOUR, STAYS_THREE, TO_ONE, TO_THREE};

/// The number of candidates in every run.
pub(crate) const NODES: usize = 5;

/// The way in which the lock is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// One object, which is written on a condition.
    #[default]
    OneObject,
    /// One object per write, in a store that can only create.
    Sequenced,
    /// Two locks, each one object, in a move from one to the other.
    TwoLocks,
    /// Three locks, of which two decide. In some runs, the writer of a few locks is hostile.
    ThreeLocks,
}

/// The conditions of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scenario {
    pub(crate) timings: Timings,
    /// The timings of some candidates, because timings are changed at one candidate after the other.
    pub(crate) other_timings: Option<Timings>,
    /// Processes get the other timings while they run, again and again.
    pub(crate) reconfigures: bool,
    /// Candidates have unequal ranks, and most ask for the lease of a worse one.
    pub(crate) has_ranks: bool,
    /// The number of times that the wait before such a request doubles at most.
    pub(crate) failback_doublings: u8,
    /// A candidate of another library competes at times, whose records have no write id.
    pub(crate) has_stranger: bool,
    /// The slowest and the fastest rate of a clock.
    pub(crate) rates: (Rate, Rate),
    /// The ratio of the rates keeps to the bound under which leaders exclude each other.
    pub(crate) clocks_bounded: bool,
    pub(crate) trouble: Trouble,
    /// The number of nodes that share one identity.
    pub(crate) sharing_identity: usize,
    pub(crate) new_identity_on_restart: bool,
    pub(crate) reclaim_own_identity: bool,
    /// Versions are a hash of the content, like most ETags, instead of a counter.
    pub(crate) versions_by_content: bool,
    pub(crate) callbacks_panic: bool,
    /// Somebody replaces the record at times by something that is none, and puts it back later.
    pub(crate) is_spoilt: bool,
    /// Other tasks keep the only thread for a while at times, between the polls of candidates and their work.
    pub(crate) shares_thread: bool,
    /// A process calls its elector a second time at times, and cancels that call.
    pub(crate) calls_twice: bool,
    /// The object exists from the start, without a holder and with this token.
    pub(crate) first_token: Option<u64>,
    /// An operator deletes the object at times, and may create it anew. Deletion is outside the promise, but candidates that saw the lease
    /// must still wait for its expiry. In such a run there are therefore no other faults and no new candidates.
    pub(crate) operator_deletes: bool,
    /// An operator asks the leader at times to hand over to some node, which may be dead.
    pub(crate) operator_transfers: bool,
    /// An operator takes the lease away from its holder at times, dead or not.
    pub(crate) operator_releases: bool,
    /// The operator intervenes again and again, and goes on after the end of the faults.
    pub(crate) operator_insists: bool,
    /// Some candidates compete for jobs that have to succeed only once.
    pub(crate) nights: bool,
    /// The store tells how old the object is, and most candidates believe it with this slack.
    pub(crate) store_clock_slack: Option<Duration>,
    /// Leaders tell the other candidates of their writes.
    pub(crate) peers: Option<Peers>,
    /// The store can only create, and the lock has one object per write.
    pub(crate) sequenced: Option<Sequenced>,
    /// The one of three locks that is always slower than the others.
    pub(crate) slow_part: Option<usize>,
    /// The one of three locks that refuses every release, while nothing else goes wrong.
    pub(crate) refuses_releases: Option<usize>,
    /// One of three locks is silent at times, never two at a time, and nothing else goes wrong.
    pub(crate) loses_one_lock: bool,
    /// The service moves from one lock to another.
    pub(crate) rollouts: Option<Rollouts>,
    /// The locks whose writer is hostile: fewer than two sets of locks that suffice have in common.
    pub(crate) hostile: Option<&'static [usize]>,
}

/// A lock in a store that can only create.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sequenced {
    /// The number of newest objects that a write keeps.
    pub(crate) keep: u64,
    /// Somebody removes all objects but the newest as soon as there are any.
    pub(crate) sweeps: bool,
    /// A creation may be delivered twice. Then a read may show for a while what is older.
    pub(crate) repeats: bool,
}

/// The channel by which candidates get messages from leaders.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peers {
    pub(crate) background_interval: Duration,
    /// Leaders say nothing while nothing goes wrong.
    pub(crate) mute_in_calm: bool,
    pub(crate) liar: Option<Liar>,
}

/// A process that says what no leader says, without end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Liar {
    /// It says the last message of a leader again and again, as a leader does that cannot write any more.
    Repeats,
    /// It names writes that nobody has made.
    Invents,
    /// It says anything: old messages, messages with larger numbers, writes that are not committed, other terms, ends.
    Mixes,
}

/// The amount of faults in the periods with faults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// No faults, not even a crash. Candidates still stop, start and step down.
    #[default]
    None,
    /// A fault in every fiftieth request, and few other faults.
    Little,
    /// All kinds of faults.
    Much,
}

impl Trouble {
    /// The share of requests with a fault.
    pub(crate) fn of_requests(self) -> f64 {
        match self {
            Self::None => 0.0,
            Self::Little => 0.02,
            Self::Much => 0.25,
        }
    }

    /// The share of reads of the wall clock at which everything stands still.
    pub(crate) fn of_clock_reads(self) -> f64 {
        match self {
            Self::None => 0.0,
            Self::Little => 0.0002,
            Self::Much => 0.003,
        }
    }

    /// The share of polls before which another task keeps the thread.
    pub(crate) fn of_polls(self) -> f64 {
        self.of_clock_reads() / 2.0
    }
}

impl Scenario {
    pub(crate) fn draw(dice: &mut Dice) -> Self {
        let timings = Timings::draw(dice);
        let other_timings = dice.chance(0.25).then(|| Timings::draw(dice));
        let clocks_bounded = dice.chance(0.85);
        let rates = match other_timings {
            _ if !clocks_bounded => (200_000, 4_000_000),
            Some(other) if other.narrower_than(&timings) => other.bounded_rates(dice),
            _ => timings.bounded_rates(dice),
        };
        let sharing_identity = if dice.chance(0.2) { dice.pick(&[2, 3, NODES]) } else { 0 };
        let new_identity_on_restart = dice.chance(0.3);
        let trouble = dice.pick(&[Trouble::None, Trouble::Little, Trouble::Little, Trouble::Much, Trouble::Much]);
        let (operator_transfers, operator_releases) = (dice.chance(0.3), dice.chance(0.15));
        let operator_deletes =
            trouble == Trouble::None && other_timings.is_none() && timings.all_see_a_lease(rates) && dice.chance(0.3);
        let operator_insists = (operator_transfers || operator_releases) && !operator_deletes && dice.chance(0.3);
        let has_ranks = !operator_deletes && other_timings.is_none() && dice.chance(0.4);
        Self {
            timings,
            other_timings,
            has_ranks,
            failback_doublings: dice.pick(&[0, 1, 2, 6]),
            reconfigures: other_timings.is_some_and(|other| other.lease != timings.lease) && dice.chance(0.6),
            // Every request to hand over restarts a lease whose record has no write id, because it looks like a renewal.
            has_stranger: trouble != Trouble::None && !operator_insists && dice.chance(0.2),
            rates,
            clocks_bounded,
            trouble,
            sharing_identity,
            new_identity_on_restart,
            // This is client-go's behaviour, which is safe only for identities that are stable and unique.
            reclaim_own_identity: sharing_identity == 0 && dice.chance(0.2),
            versions_by_content: dice.chance(0.5),
            callbacks_panic: dice.chance(0.2),
            is_spoilt: trouble != Trouble::None && dice.chance(0.3),
            shares_thread: dice.chance(0.3),
            calls_twice: dice.chance(0.2),
            // There are tokens enough for a run.
            first_token: dice.chance(0.2).then_some(MAX_LEADER_TRANSITIONS - 100_000),
            operator_deletes,
            operator_transfers: !operator_deletes && operator_transfers,
            operator_releases: !operator_deletes && operator_releases,
            operator_insists,
            // All candidates must see a lease before the object is deleted.
            nights: !operator_deletes && dice.chance(0.3),
            // Candidates wait after a deletion from when the lease was written, if they know that moment.
            store_clock_slack: (!operator_deletes && dice.chance(0.4))
                .then(|| Duration::from_secs(dice.pick(&[1, 1, 2, 5, 20]))),
            // All candidates must read a lease before the object is deleted.
            peers: (!operator_deletes && dice.chance(0.4)).then(|| Peers::draw(&timings, dice)),
            ..Self::default()
        }
    }

    /// Draws conditions for a lock that is stored in this way. In a move from one lock to another, operators, other libraries and
    /// peers do nothing: what they do with one lock, they do there.
    pub(crate) fn draw_for(layout: Layout, seed: u64, dice: &mut Dice) -> Self {
        let scenario = Self::draw(dice);
        match layout {
            Layout::OneObject => scenario,
            Layout::Sequenced => {
                let (keep, sweeps) = (dice.pick(&[1, 1, 2, 2, 5, 40]), dice.chance(0.8));
                Self { sequenced: Some(Sequenced { keep, sweeps, repeats: dice.chance(0.5) }), ..scenario }
            }
            Layout::TwoLocks => scenario.with_rollouts(dice.pick(&[FORWARD, BACK, STAYS])),
            Layout::ThreeLocks => {
                let rollouts = dice.pick(&[TO_THREE, TO_ONE, STAYS_THREE, STAYS_THREE]);
                let slow_part = dice.pick(&[None, Some(0), Some(1), Some(2)]);
                let scenario = Self { has_ranks: false, slow_part, ..scenario.with_rollouts(rollouts) };
                // These choices are of their own, so that all other runs have the histories that they had without them.
                match seed % 8 {
                    2 | 6 => scenario.beside_a_hostile_writer(&mut Dice::new(!seed)),
                    5 => Self::with_a_slow_lock_alone(&mut Dice::new(!seed)),
                    4 => Self::with_one_lock_lost_at_a_time(&mut Dice::new(!seed)),
                    _ => scenario,
                }
            }
        }
    }

    /// Adds a hostile writer of some locks. Whoever takes a lease of its own identity at once believes every writer.
    fn beside_a_hostile_writer(self, dice: &mut Dice) -> Self {
        let (rollouts, hostile) = dice.pick::<(_, &[usize])>(&[
            (STAYS_ALL, &[0, 1]),
            (STAYS_ALL, &[0, 2]),
            (STAYS_ALL, &[1, 2]),
            (STAYS_FOUR, &[0]),
            (STAYS_FOUR, &[1]),
            (STAYS_FOUR, &[3]),
        ]);
        Self { rollouts: Some(rollouts), hostile: Some(hostile), reclaim_own_identity: false, ..self }
    }

    /// One of three locks is slower than the pauses of some candidates between two reads, and another refuses every release.
    /// Nothing else goes wrong, so every candidate knows in time that the slow lock is not silent.
    fn with_a_slow_lock_alone(dice: &mut Dice) -> Self {
        let timings = |retry| Timings {
            lease: Duration::from_secs(60),
            deadline: Duration::from_secs(50),
            retry,
            timeout: Duration::from_secs(12),
            follower: retry,
        };
        let (slow_part, refusing) = dice.pick(&[(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]);
        Self {
            timings: timings(Duration::from_secs(2)),
            other_timings: Some(timings(Duration::from_millis(500))),
            rates: (1_000_000, 1_000_000),
            clocks_bounded: true,
            slow_part: Some(slow_part),
            refuses_releases: Some(refusing),
            rollouts: Some(STAYS_THREE),
            ..Self::default()
        }
    }

    /// One lock after the other is silent for a while. A term that can do without one of three survives that.
    fn with_one_lock_lost_at_a_time(dice: &mut Dice) -> Self {
        let timings = |[lease, deadline, retry, timeout]: [u64; 4]| {
            let [lease, deadline, retry, timeout] = [lease, deadline, retry, timeout].map(Duration::from_millis);
            Timings { lease, deadline, retry, timeout, follower: retry }
        };
        let drawn = [[15_000, 10_000, 2_000, 2_500], [60_000, 40_000, 5_000, 10_000], [6_000, 4_000, 600, 1_000]];
        Self {
            timings: timings(dice.pick(&drawn)),
            rates: (1_000_000, 1_000_000),
            clocks_bounded: true,
            loses_one_lock: true,
            rollouts: Some(STAYS_THREE),
            first_token: dice.chance(0.5).then_some(7),
            ..Self::default()
        }
    }

    fn with_rollouts(self, rollouts: Rollouts) -> Self {
        Self {
            rollouts: Some(rollouts),
            // Nobody of both locks asks a leader of one of them.
            has_ranks: self.has_ranks && rollouts == STAYS,
            has_stranger: false,
            is_spoilt: false,
            operator_deletes: false,
            operator_transfers: false,
            operator_releases: false,
            operator_insists: false,
            peers: None,
            ..self
        }
    }

    /// The number of locks that the service uses.
    pub(crate) fn locks(&self) -> usize {
        self.rollouts.map_or(1, |[_, joint, _]| joint.parts.len())
    }

    /// Returns `true` if a lock's writer is hostile.
    pub(crate) fn is_hostile(&self, lock: usize) -> bool {
        self.hostile.is_some_and(|hostile| hostile.contains(&lock))
    }

    /// Returns `true` if a hostile writer can keep every candidate from leading.
    pub(crate) fn may_be_blocked(&self) -> bool {
        self.hostile.is_some() && self.rollouts.is_some_and(|[_, joint, _]| joint.needs == joint.parts.len())
    }

    pub(crate) fn liar(&self) -> Option<Liar> {
        self.peers.and_then(|peers| peers.liar)
    }

    /// The number of requests of a call, each of which may take its part of a call's time.
    pub(crate) fn parts(&self) -> u32 {
        match (self.sequenced, self.rollouts) {
            (Some(_), _) => 16,
            // The parts of a write, and those that are rolled back.
            (None, _) => [1, 3, 5, 7][self.locks() - 1],
        }
    }

    /// The longest of a duration in all timings.
    pub(crate) fn longest(&self, of: fn(Timings) -> Duration) -> Duration {
        self.all_timings().map(of).max().unwrap_or_default()
    }

    pub(crate) fn all_timings(&self) -> impl Iterator<Item = Timings> {
        std::iter::once(self.timings).chain(self.other_timings)
    }

    /// The timings with this lease, if processes get other timings while they run. No two of them have the same lease.
    pub(crate) fn timings_of_lease(&self, lease: Duration) -> Option<Timings> {
        self.all_timings().find(|timings| self.reconfigures && timings.lease == lease)
    }

    /// The rank of the processes of a node.
    pub(crate) fn rank_of(&self, node: usize) -> u8 {
        if self.has_ranks { [0, 1, 3, 1, 0][node % NODES] } else { 0 }
    }

    /// Draws the timings of a new process.
    pub(crate) fn timings_of_a_process(&self, dice: &mut Dice) -> Timings {
        self.other_timings.filter(|_| dice.chance(0.5)).unwrap_or(self.timings)
    }

    /// The longest time without a leader after the last fault and the last late write.
    ///
    /// This is the worst case, by a candidate's own clock. Just before the end of the faults, the candidate got the command to leave the
    /// store alone (for a lease, or for the eleven retry periods of a refused candidate) or to stand back after a step-down (a lease). The
    /// candidate waits for a request in flight (a timeout). Its next read is due after at most a follower interval and 1.2 retry periods,
    /// and shows a write that the candidate did not know (a timeout). The candidate waits for the expiry of that lease, plus the spread of
    /// a twentieth of a retry period. One write wins (a timeout): the candidate's write or the one with which it collides. If the preferred
    /// candidate does not come, the wait is one lease longer, and it is longer by the worst rank. A candidate believes a liar for two
    /// background intervals at most. The time is longest by the slowest clock. A restart and the grain of the timers take less than a
    /// second.
    pub(crate) fn longest_without_leader(&self) -> Duration {
        let (lease, retry) = (self.longest(|timings| timings.lease), self.longest(|timings| timings.retry));
        let (timeout, follower) = (self.longest(|timings| timings.timeout), self.longest(|timings| timings.follower));
        let told_to_wait = lease.max(retry * 11);
        let ranks = retry * (0..NODES).map(|node| self.rank_of(node)).max().unwrap_or_default().into();
        let lied_to = self.peers.filter(|peers| peers.liar.is_some()).map(|peers| peers.background_interval);
        let believes = lied_to.map_or(Duration::ZERO, |interval| interval * 2 + follower + retry.mul_f64(3.4));
        let poll = follower + retry.mul_f64(1.2);
        let local = told_to_wait + poll + believes + lease * 2 + retry / 20 + ranks + timeout * 3;
        self.by_the_slowest_clock(local) + Duration::from_secs(1)
    }

    /// The time in which the slowest clock advances by a duration.
    pub(crate) fn by_the_slowest_clock(&self, local: Duration) -> Duration {
        local.mul_f64(1e6 / self.rates.0 as f64)
    }
}

impl Peers {
    fn draw(timings: &Timings, dice: &mut Dice) -> Self {
        let lease = timings.lease;
        Self {
            background_interval: dice.pick(&[lease / 2, lease * 2, lease * 2, lease * 10]),
            mute_in_calm: dice.chance(0.5),
            liar: dice.pick(&[None, None, Some(Liar::Repeats), Some(Liar::Invents), Some(Liar::Mixes)]),
        }
    }
}
