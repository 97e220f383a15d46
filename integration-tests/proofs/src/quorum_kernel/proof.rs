//! The questions that are asked in every state.

use super::action::Action;
use super::setup::Setup;
use super::world::{Call, Violation, World};
use crate::kit::{Model, Sight};

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
        let honest = world.parts.iter().take(self.parts - self.hostile).flatten();
        // A write that breaks a promise is often the first of the next term.
        world.violation.is_some() || honest.map(|cell| cell.record.token).all(|token| token <= self.last_token)
    }

    fn broken(&self, world: &World) -> Option<&'static str> {
        (world.leaders(self) > 1).then_some("one leader").or(world.violation.map(Violation::promise))
    }

    fn sights(&self) -> Vec<Option<Seen>> {
        vec![
            Seen::new("a leader", |setup, world| world.leaders(setup) == 1),
            Seen::only_if(self.last_token > 0, "another term", |_, world| world.started > 1),
            Seen::new("half a write", |_, world| {
                world.nodes.iter().any(|node| matches!(&node.call, Some(Call::Write(plan)) if plan.written().len() > 0))
            }),
            Seen::only_if(self.background, "a part that a write has not reached", |_, world| {
                world.nodes.iter().any(|node| node.rest.record.is_some() && !node.rest.puts.is_empty())
            }),
            Seen::only_if(self.forgeries > 0, "a leader beside forged records", |setup, world| {
                world.forgeries == setup.forgeries && world.leaders(setup) == 1
            }),
            Seen::only_if(self.job, "a job that is done", |_, world| world.is_marked),
        ]
    }
}
