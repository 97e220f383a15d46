//! Somebody who writes something into the object that is no record, and puts the record back later.

use std::sync::Arc;

use bytes::Bytes;
use leaderelection::LeaderElectionRecord;
use leaderelection::lock::MAX_LEADER_TRANSITIONS;
use tokio::time::sleep;

use super::dice::Dice;
use super::world::World;

/// Returns what takes a record's place: no record, or one with a token that leaves none for the next term.
fn spoilt(mut record: LeaderElectionRecord, is_record: bool) -> Bytes {
    record.leader_transitions = MAX_LEADER_TRANSITIONS;
    if is_record { record.to_json().into() } else { Bytes::from_static(b"this is no record") }
}

/// Spoils the object at times, for a while each.
pub(super) async fn spoil_at_times(world: Arc<World>, mut dice: Dice) {
    let timings = world.scenario.timings;
    loop {
        world.until_calm(false).await;
        sleep(dice.up_to(timings.lease * 12)).await;
        let is_record = dice.pick(&[false, true]);
        if world.is_calm() || !world.objects[0].lock().unwrap().spoil(|record| spoilt(record, is_record)) {
            continue;
        }
        world.log(None, || format!("SOMEBODY REPLACES THE RECORD, by a record: {is_record}"));
        world.oracle().spoilt();
        tokio::select! {
            biased;
            () = world.until_calm(true) => {}
            () = sleep(timings.delay(&mut dice, timings.lease * 2)) => {}
        }
        if world.objects[0].lock().unwrap().repair() {
            world.oracle().repaired();
        }
    }
}
