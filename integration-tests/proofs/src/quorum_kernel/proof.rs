//! The questions that are asked in every state.

use leaderelection_protocol::quorum::Put;

use leaderelection_protocol::record::FIRST_TOKEN;

use super::action::Action;
use super::half::Half;
use super::setup::Setup;
use super::world::{Call, Violation, World};
use crate::kit::{Model, Sight, takes};

type Seen = Sight<Setup>;

impl Model for Setup {
    type World = World;
    type Action = Action;

    fn begin(&self) -> World {
        let mut world = World::new(self);
        world.canonical(self);
        world.has_begun = takes(self, &mut world, &self.beginning);
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

    /// A term is cut off when its write is committed, and not before: then it is known what the write has replaced.
    fn is_within(&self, world: &World) -> bool {
        let beyond = |token: u64| world.showing(|record| record.token > token);
        world.violation.is_some()
            || beyond(FIRST_TOKEN + self.last_token) < self.needed.max(self.hostile + 1)
                && beyond(FIRST_TOKEN + self.last_token + 1) <= self.hostile
    }

    fn broken(&self, world: &World) -> Option<&'static str> {
        (world.leaders(self) > 1).then_some("one leader").or(world.violation.map(Violation::promise))
    }

    fn sights(&self) -> Vec<Option<Seen>> {
        vec![
            Seen::new("each step of the beginning", |_, world| world.has_begun),
            Seen::new("a leader", |setup, world| world.leaders(setup) == 1),
            Seen::only_if(self.last_token > 0, "another term", |_, world| world.started > 1 << FIRST_TOKEN),
            Seen::new("half a write", |_, world| {
                world.nodes.iter().any(|node| matches!(&node.call, Some(Call::Write(plan)) if plan.written().len() > 0))
            }),
            Seen::only_if(self.background, "a part that a write has not reached", |_, world| {
                world.nodes.iter().flat_map(|node| &node.background.puts).any(|put| put.record().holder.is_some())
            }),
            Seen::only_if(
                self.background && self.tokens.is_empty(),
                "a part that a write before the last has not reached",
                |setup, world| {
                    let is_renewed = |put: &Put<Half>| {
                        let before = &**put.record();
                        let is_later = |half: &Half| {
                            half.holder == before.holder
                                && half.token == before.token
                                && half.write_id != before.write_id
                        };
                        before.holder.is_some() && world.showing(is_later) >= setup.needed
                    };
                    world.nodes.iter().flat_map(|node| &node.background.puts).any(is_renewed)
                },
            ),
            Seen::only_if(self.forgeries > 0, "a leader beside forged records", |setup, world| {
                world.forgeries == setup.forgeries && world.leaders(setup) == 1
            }),
            Seen::only_if(self.crashes > 0, "a leader after a crash", |setup, world| {
                world.crashes == setup.crashes && world.leaders(setup) == 1
            }),
            Seen::only_if(self.requests > 0, "a leader that was asked", |setup, world| {
                world.requests == setup.requests && world.leaders(setup) == 1
            }),
            Seen::only_if(self.job, "a job that is done", |_, world| world.is_marked),
        ]
    }
}
