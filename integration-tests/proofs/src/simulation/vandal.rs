//! Somebody who writes something into the object that is no record, and puts the record back later.

use std::sync::Arc;

use bytes::Bytes;
use leaderelection::LeaderElectionRecord;
use leaderelection::lock::MAX_LEADER_TRANSITIONS;
use tokio::time::sleep;

use super::dice::Dice;
use super::world::World;

/// The content that takes the record's place.
#[derive(Clone, Copy, Debug)]
enum Spoilt {
    /// The content is no record.
    Unreadable,
    /// The record has a token that leaves none for the next term.
    Exhausted,
}

impl Spoilt {
    fn draw(dice: &mut Dice) -> Self {
        dice.pick(&[Self::Unreadable, Self::Exhausted])
    }

    fn body(self, record: LeaderElectionRecord) -> Bytes {
        match self {
            Self::Unreadable => Bytes::from_static(b"this is no record"),
            Self::Exhausted => {
                let mut record = record;
                record.leader_transitions = MAX_LEADER_TRANSITIONS;
                record.to_json().into()
            }
        }
    }
}

/// Spoils the object at times, for a while each.
pub(super) async fn spoil_at_times(world: Arc<World>, mut dice: Dice) {
    let timings = world.scenario.timings;
    loop {
        world.until_calm(false).await;
        sleep(dice.up_to(timings.lease * 12)).await;
        let spoilt = Spoilt::draw(&mut dice);
        if world.is_calm() || !world.object.lock().unwrap().spoil(|record| spoilt.body(record)) {
            continue;
        }
        world.log(None, || format!("SOMEBODY REPLACES THE RECORD: {spoilt:?}"));
        world.oracle().spoilt();
        tokio::select! {
            biased;
            () = world.until_calm(true) => {}
            () = sleep(timings.delay(&mut dice, timings.lease * 2)) => {}
        }
        if world.object.lock().unwrap().repair() {
            world.oracle().repaired();
        }
    }
}
