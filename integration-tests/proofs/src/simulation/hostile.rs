//! A hostile writer of some locks, who writes any record that it has seen or can make, whatever is there.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use leaderelection::LeaderElectionRecord;
use leaderelection::lock::{DEFAULT_MAX_LEASE_DURATION, LockParts, MAX_LEADER_TRANSITIONS};
use tokio::time::sleep;

use super::dice::Dice;
use super::faults::REMEMBERED_STATES;
use super::object::{Object, parse};
use super::world::World;

/// Forges a record again and again. A writer that can keep everybody from leading rests while nothing else goes wrong: where all
/// locks are needed, and where the other locks do not agree.
pub(super) async fn forge_without_end(world: Arc<World>, mut dice: Dice) {
    let (timings, locks) = (world.scenario.timings, world.scenario.hostile.unwrap_or_default());
    let rests = world.scenario.may_be_blocked();
    loop {
        if rests {
            world.until_calm(false).await;
        }
        sleep(timings.delay(&mut dice, timings.lease)).await;
        if world.is_calm() && (rests || !do_others_agree(&world)) {
            continue;
        }
        let lock = dice.pick(locks);
        let forged = Forger { world: &world, dice: &mut dice }.forge();
        forged.replace(&mut world.objects[lock].lock().unwrap());
        world.log(None, || format!("A HOSTILE WRITER FORGES lock {lock}: {forged:?}"));
        world.oracle().forged(lock, &forged);
    }
}

/// Returns `true` if the locks that are not hostile show one write, or nobody's.
fn do_others_agree(world: &World) -> bool {
    let others = (0..world.scenario.locks()).filter(|lock| !world.scenario.is_hostile(*lock));
    let shown = others.map(|lock| {
        let object = world.objects[lock].lock().unwrap();
        let record = object.earlier(0).map(|state| parse(&state.object.body));
        record.filter(|record| !record.is_released()).and_then(|record| record.write_id)
    });
    shown.collect::<BTreeSet<_>>().len() == 1
}

/// The content that takes the place of a record.
#[derive(Debug)]
pub(crate) enum Forged {
    Nothing,
    NoRecord,
    Record(Box<LeaderElectionRecord>),
}

impl Forged {
    /// Takes the place of what is there, without a condition.
    fn replace(&self, object: &mut Object) {
        let (body, holder) = match self {
            Self::Nothing => return object.delete(),
            Self::NoRecord => (Bytes::from_static(b"this is no record"), String::new()),
            Self::Record(record) => (record.to_json().into(), record.holder_identity.clone()),
        };
        object.replace(body, holder);
    }
}

/// The hostile writer, for one record.
struct Forger<'a> {
    world: &'a World,
    dice: &'a mut Dice,
}

impl Forger<'_> {
    fn forge(&mut self) -> Forged {
        match self.dice.below(20) {
            0 => return Forged::Nothing,
            // Nobody leads before this is put right, if all locks are needed.
            1 if !self.world.scenario.may_be_blocked() => return Forged::NoRecord,
            _ => {}
        }
        let mut record = self.seen().unwrap_or_else(|| LeaderElectionRecord::new("hostile", Duration::from_secs(1)));
        for _ in 0..self.dice.below(4) {
            self.change(&mut record);
        }
        Forged::Record(Box::new(record))
    }

    /// Returns a record of any lock, of now or before.
    fn seen(&mut self) -> Option<LeaderElectionRecord> {
        let lock = self.dice.below(self.world.scenario.locks() as u64);
        let age = if self.dice.chance(0.6) { 0 } else { self.dice.below(REMEMBERED_STATES as u64) };
        let object = self.world.objects[usize::try_from(lock).ok()?].lock().unwrap();
        let state = object.earlier(usize::try_from(age).ok()?)?;
        LeaderElectionRecord::from_json(&state.object.body, DEFAULT_MAX_LEASE_DURATION).ok()
    }

    fn change(&mut self, record: &mut LeaderElectionRecord) {
        let (world, lease) = (self.world, self.world.scenario.timings.lease);
        let token = record.leader_transitions;
        match self.dice.below(if world.scenario.may_be_blocked() { 8 } else { 11 }) {
            0 => record.holder_identity.clear(),
            1 => record.holder_identity = self.holder(),
            // A token just below the largest would use up those of all locks while another lock is silent.
            2 | 3 if token == MAX_LEADER_TRANSITIONS => {}
            2 => record.leader_transitions = token + self.dice.within(1, 3),
            3 => record.leader_transitions = token.saturating_sub(1),
            4 => record.write_id = Some(format!("forged-{}", self.dice.number())),
            5 => record.lease_duration = self.dice.pick(&[Duration::from_secs(1), lease / 2, lease]),
            6 => record.preferred_holder = Some(self.holder()),
            7 => {
                let mut jobs = record.completed_jobs();
                jobs.insert(0, format!("night-{}", world.night.load(Ordering::Relaxed)));
                record.unknown.set("completedJobs", &jobs);
            }
            // The same holds for these.
            8 => record.unknown.set("purpose", &"another"),
            9 => record.parts = Some(LockParts::new(1, vec!["another".to_owned()], record.leader_transitions)),
            _ => record.leader_transitions = MAX_LEADER_TRANSITIONS,
        }
    }

    /// Returns the holder of any record, or the hostile writer.
    fn holder(&mut self) -> String {
        let seen = self.seen().map(|record| record.holder_identity);
        seen.filter(|holder| !holder.is_empty()).unwrap_or_else(|| "hostile".to_owned())
    }
}
