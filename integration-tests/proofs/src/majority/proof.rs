//! The questions that are asked in every state.

use super::action::Action;
use super::setup::Setup;
use super::world::{Call, Stored, Violation, World};
use crate::kit::{Model, Sight};
use crate::phase::BOTH;

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
        let asks = self.takes_back && self.phases.iter().all(|phase| *phase == BOTH);
        vec![
            Seen::new("half a write", |_, world| {
                world.nodes.iter().any(|node| matches!(&node.call, Some(Call::Write(_, plan, _)) if plan.is_half()))
            }),
            Seen::only_if(self.job, "half a mark", |_, world| {
                let mut done = world.locks.iter().map(|lock| lock.as_ref().is_some_and(Stored::is_done));
                done.next() == Some(false) && done.any(|is_done| is_done)
            }),
            Seen::only_if(!self.is_refused && self.gap.is_some(), "a second term", |setup, world| {
                world.highest.unwrap_or(0) >= setup.first_token().map_or(2, |token| token + 2)
            }),
            Seen::only_if(self.forgeries > 0, "a leader beside forged records", |setup, world| {
                world.forgeries == setup.forgeries && world.leaders() == 1
            }),
            Seen::only_if(self.restores.is_some(), "a lock that is restored", |_, world| world.is_restored),
            Seen::only_if(self.stops.is_some(), "a leader without the lock that stops", |_, world| {
                world.gone.is_some() && world.leaders() == 1
            }),
            Seen::only_if(self.has_minorities(), "a lock that catches up", |_, world| {
                world.nodes.iter().any(|node| !node.background.reads.is_empty())
            }),
            Seen::only_if(self.is_refused, "half a write that is rolled back", |_, world| {
                world.nodes.iter().any(|node| matches!(node.call, Some(Call::Return(..))))
            }),
            Seen::only_if(asks, "a request for the lease", |_, world| {
                world.locks.iter().flatten().any(|stored| stored.record.preferred_holder.is_some())
            }),
            Seen::only_if(moves, "the end of the move", |setup, world| {
                let end = setup.rolls.map(|[.., end]| end);
                world.led == end && world.nodes.iter().all(|node| Some(node.phase) == end)
            }),
        ]
    }
}
