//! The operator of the lock, who intervenes from outside by an unreliable network.

use std::sync::Arc;

use leaderelection::admin::{AdminError, Intervention, force_release, recreate, request_transfer};
use leaderelection::clock::TokioClock;
use leaderelection::lock::{Bounded, MAX_LEADER_TRANSITIONS, TimeLimit};
use leaderelection::{ObjectLock, ObjectStoreBasedLock as _};
use tokio::time::sleep;

use super::dice::Dice;
use super::names::{Client, PlanId};
use super::node;
use super::oracle::{Outcome, Plan};
use super::store::Connection;
use super::world::World;

/// The lock as the operator reaches it.
type Lock = Bounded<ObjectLock<Connection>>;

/// Intervenes at times.
pub(super) async fn intervene_at_times(world: Arc<World>, mut dice: Dice) {
    let scenario = &world.scenario;
    let (lease, insists) = (scenario.timings.lease, scenario.operator_insists);
    loop {
        if !insists {
            world.until_calm(false).await;
        }
        sleep(dice.up_to(if insists { lease / 2 } else { lease * 8 })).await;
        if insists || !world.is_calm() {
            intervene(&world, &mut dice).await;
        }
    }
}

async fn intervene(world: &Arc<World>, dice: &mut Dice) {
    let (scenario, plan) = (&world.scenario, world.oracle().next_plan());
    let lock = lock(world, plan);
    let Ok(found) = lock.get().await else { return };
    // The operator decides about what was read, however old it is by then.
    if dice.chance(0.3) {
        sleep(scenario.timings.delay(dice, scenario.timings.lease * 2)).await;
    }
    match found.map(|found| found.record) {
        // Somebody else puts such a record right.
        Some(seen) if seen.leader_transitions == MAX_LEADER_TRANSITIONS => {}
        None if scenario.operator_deletes => create_anew(world, &lock, plan).await,
        Some(seen) if scenario.operator_releases && (!scenario.operator_transfers || dice.chance(0.5)) => {
            let (of, holder) = (seen.leader_transitions, seen.holder_identity.clone());
            world.oracle().plans(plan, Plan::Release { of, holder });
            let is_reached = |done: Intervention| {
                done.before == done.after || done.after.leader_transitions > of || done.after.is_released()
            };
            operator_got(world, plan, force_release(&lock, &seen).await.map(is_reached));
        }
        Some(seen) if scenario.operator_transfers => {
            let to = node::any_identity(scenario, dice);
            let (of, holder) = (seen.leader_transitions, seen.holder_identity.clone());
            world.oracle().plans(plan, Plan::Transfer { of, holder, to: to.clone() });
            let is_reached = |done: Intervention| done.before == done.after || done.after.holder_identity == to;
            operator_got(world, plan, request_transfer(&lock, &seen, &to).await.map(is_reached));
        }
        _ => {}
    }
}

async fn create_anew(world: &World, lock: &Lock, plan: PlanId) {
    let token = world.oracle().highest_token();
    world.oracle().plans(plan, Plan::Recreate { token });
    operator_got(world, plan, recreate(lock, token).await.map(|record| record.leader_transitions > token));
}

fn lock(world: &Arc<World>, plan: PlanId) -> Lock {
    let connection = Connection::new(world, Client::Operator(plan));
    let limit = TimeLimit::new(world.scenario.timings.timeout).on_clock(TokioClock::new());
    Bounded::new(ObjectLock::new(connection, "lock", "operator"), limit)
}

/// Records the result as the operator understands it. `is_reached` tells that the aim was reached without a write.
fn operator_got(world: &World, plan: PlanId, result: Result<bool, AdminError>) {
    let outcome = match result {
        Ok(is_reached) => Outcome::Done { is_reached },
        Err(AdminError::Unknown { .. }) => Outcome::Unknown,
        Err(_) => Outcome::NotDone,
    };
    world.oracle().operator_got(plan, outcome);
}

/// Deletes the object at times, each time after all candidates have seen that it is held. Another operator may create it
/// anew soon.
pub(super) async fn delete_at_times(world: Arc<World>, mut dice: Dice) {
    loop {
        world.until_calm(false).await;
        sleep(world.scenario.longest_without_leader() + dice.up_to(world.scenario.timings.lease * 4)).await;
        if !world.is_calm() {
            world.objects[0].lock().unwrap().delete();
            world.oracle().deleted();
            if dice.chance(0.7) {
                sleep(dice.up_to(world.scenario.timings.lease)).await;
                let plan = world.oracle().next_plan();
                create_anew(&world, &lock(&world, plan), plan).await;
            }
        }
    }
}
