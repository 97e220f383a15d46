//! The questions that are asked in every state.

use leaderelection_protocol::record::FIRST_TOKEN;

use super::action::Action;
use super::setup::Setup;
use super::world::{Scene, World};
use crate::kit::{Model, Sight, Work};
use crate::model::Violation;

type Seen = Sight<Setup>;

impl Model for Setup {
    type World = World;
    type Action = Action;

    fn begin(&self) -> World {
        let mut world = World::new(self);
        world.canonical(self);
        world
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        if world.violation.is_none() {
            world.possible(self, actions);
        }
    }

    fn act(&self, world: &mut World, action: Action) {
        world.take(self, action);
    }

    fn mirrored(&self, world: &World) -> u64 {
        world.least_image(self)
    }

    fn is_within(&self, world: &World) -> bool {
        // A write that breaks a promise is often the first of the next term.
        world.violation.is_some()
            || world.cell.as_ref().is_none_or(|cell| cell.found.record.token <= FIRST_TOKEN + self.last_token)
    }

    fn broken(&self, world: &World) -> Option<&'static str> {
        let is_shared = !self.lawless && !self.deletion && world.leaders(self) > 1;
        is_shared.then_some("exclusion").or(world.violation.map(Violation::promise))
    }

    fn sights(&self) -> Vec<Option<Seen>> {
        vec![
            Seen::new("a leader", |setup, world| world.leaders(setup) == 1),
            Seen::only_if(self.last_token > 0, "another term", |_, world| world.started > 1 << FIRST_TOKEN),
            Seen::only_if(self.late_writes > 0, "a late write", |_, world| world.scene == Some(Scene::LateWrite)),
            Seen::new("a late write of its own", |_, world| world.scene == Some(Scene::OwnLateWrite)),
            Seen::only_if(self.stops, "a release", |_, world| world.scene == Some(Scene::Released)),
            Seen::only_if(self.requests > 0, "a write that is committed", |_, world| {
                world.scene == Some(Scene::Requested)
            }),
            Seen::only_if(self.requests > 0 && self.stops, "a request that is followed", |_, world| {
                world
                    .cell
                    .as_ref()
                    .is_some_and(|cell| cell.found.record.holder.is_none() && cell.found.record.preferred.is_some())
            }),
            Seen::only_if(self.late_work, "work that is given up", |_, world| {
                world.nodes.iter().any(|node| node.seat.work == Work::Abandoned)
            }),
            Seen::only_if(self.jobs > 0, "a job that is done", |_, world| world.is_marked),
            Seen::only_if(self.jobs > 1, "a job that is found done", |_, world| {
                world.nodes.iter().any(|node| node.lease.is_job_done() && !node.has_succeeded)
            }),
        ]
    }
}
