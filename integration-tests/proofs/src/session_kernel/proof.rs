//! The questions that are asked in every state.

use leaderelection_protocol::record::FIRST_TOKEN;

use super::action::Action;
use super::setup::Setup;
use super::world::{Scene, World};
use crate::kit::{Model, Sight, Work, takes};
use crate::model::Violation;

type Seen = Sight<Setup>;

impl Model for Setup {
    type World = World;
    type Action = Action;

    fn begin(&self) -> World {
        let mut world = World::new(self);
        world.canonical(self);
        world.has_begun = takes(&self.with_all_deeds(), &mut world, &self.beginning);
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
        let is_later = |lock: &super::world::Object| {
            lock.found.as_ref().is_some_and(|found| found.record.token > FIRST_TOKEN + self.last_token)
        };
        world.violation.is_some() || !world.locks.iter().any(is_later)
    }

    fn broken(&self, world: &World) -> Option<&'static str> {
        let is_shared = |lock| world.leaders(self, lock) > 1 && !world.is_free_for_all[lock as usize];
        let are_shared = !self.lawless && (0..self.locks).any(is_shared);
        are_shared.then_some("exclusion").or(world.violation.map(Violation::promise))
    }

    fn sights(&self) -> Vec<Option<Seen>> {
        vec![
            Seen::new("each step of the beginning", |_, world| world.has_begun),
            Seen::new("a leader", |setup, world| world.leaders(setup, 0) == 1),
            Seen::only_if(self.locks > 1 && self.rates.len() > 1, "two leaders of two locks", |setup, world| {
                let leads = |index: usize, lock| world.nodes[index].leading(setup, lock).is_some();
                leads(0, 0) && leads(1, 1)
            }),
            Seen::only_if(self.last_token > 0, "another term", |_, world| world.started[0] > 1 << FIRST_TOKEN),
            Seen::only_if(self.rates.len() > 1, "a session that is ended", |_, world| {
                world.scene == Some(Scene::Ended)
            }),
            Seen::only_if(self.late_writes > 0, "a late write", |_, world| world.scene == Some(Scene::LateWrite)),
            Seen::only_if(self.stops, "a release", |_, world| world.scene == Some(Scene::Released)),
            Seen::only_if(self.deletes, "a deleted session", |_, world| world.scene == Some(Scene::Deleted)),
            Seen::only_if(self.deletes, "a creation delivered again", |_, world| world.has_delivered_again),
            Seen::only_if(self.late_work, "work that is given up", |_, world| {
                world.nodes.iter().any(|node| node.seats[0].work == Work::Abandoned)
            }),
        ]
    }
}
