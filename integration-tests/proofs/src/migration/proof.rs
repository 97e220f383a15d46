//! The questions that are asked in every state.

use super::phase::{Direction, Phase};
use super::promise::Violation;
use super::setup::Setup;
use super::step::Action;
use super::world::{Call, Stored, World};
use crate::kit::{Model, Sight};

type Seen = Sight<Setup>;

impl Model for Setup {
    type World = World;
    type Action = Action;

    fn begin(&self) -> World {
        World::new(self)
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        world.possible(self, actions);
    }

    fn act(&self, world: &mut World, action: Action) {
        world.take(self, action);
    }

    fn is_within(&self, world: &World) -> bool {
        world.now <= self.horizon()
    }

    fn broken(&self, world: &World) -> Option<&'static str> {
        let is_shared = (world.leaders() > 1).then_some("one leader");
        let is_long = self.gap.is_some_and(|gap| world.idle > gap);
        is_shared.or(world.violation.map(Violation::promise)).or(is_long.then_some("no long gap"))
    }

    fn sights(&self) -> Vec<Option<Seen>> {
        let moves = self.rolls.is_some() && !self.hasty && !self.all_at_once;
        let asks = self.takes_back && self.phases.iter().all(|phase| *phase == Phase::Both);
        vec![
            Seen::new("half a write", |_, world| {
                world.nodes.iter().any(|node| {
                    matches!(&node.call, Some(Call::Write { left, .. }) if node.phase == Phase::Both && left.len() == 1)
                })
            }),
            Seen::only_if(self.job, "half a mark", |_, world| {
                let [old, new] = &world.locks;
                new.as_ref().is_some_and(Stored::is_done) && !old.as_ref().is_some_and(Stored::is_done)
            }),
            Seen::only_if(!self.is_refused && self.gap.is_some(), "a second term", |setup, world| {
                world.highest.unwrap_or(0) >= setup.first_token().map_or(1, |token| token + 2)
            }),
            Seen::only_if(self.is_refused, "half a write that is given back", |_, world| {
                world.nodes.iter().any(|node| matches!(node.call, Some(Call::Return(..))))
            }),
            Seen::only_if(asks, "a request for the lease", |_, world| {
                world.locks.iter().flatten().any(|stored| stored.record.preferred_holder.is_some())
            }),
            Seen::only_if(moves, "the end of the move", |setup, world| {
                let end = if setup.rolls == Some(Direction::Forward) { Phase::New } else { Phase::Old };
                world.led == Some(end) && world.nodes.iter().all(|node| node.phase == end)
            }),
        ]
    }
}
