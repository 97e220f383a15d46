//! The questions that are asked in every state.

use super::action::Action;
use super::setup::Setup;
use super::world::{Client, Violation, World};
use crate::kit::{Model, Sight};

type Seen = Sight<Setup>;

impl Model for Setup {
    type World = World;
    type Action = Action;

    fn begin(&self) -> World {
        World { clients: vec![Client::default(); self.writes.len()], ..World::default() }
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        world.possible(self, actions);
    }

    fn act(&self, world: &mut World, action: Action) {
        world.take(self, action);
    }

    fn is_within(&self, world: &World) -> bool {
        world.highest() <= self.last_number
    }

    fn broken(&self, world: &World) -> Option<&'static str> {
        // A second delivery of a creation may hide for a few reads that a place is gone.
        let is_asked = |violation: &Violation| !self.duplicates || *violation != Violation::StaleRead;
        world.violation.filter(is_asked).map(Violation::promise)
    }

    fn sights(&self) -> Vec<Option<Seen>> {
        vec![
            Seen::new("the last number", |setup, world| world.highest() == setup.last_number),
            Seen::new("a sweep", |_, world| world.highest() > 0 && !world.objects.contains_key(&1)),
            Seen::new("a late creation below the highest", |_, world| world.has_stray()),
            Seen::only_if(self.deletions, "a write after a deletion", |_, world| {
                world.history.windows(2).any(|pair| pair[0].content.len() == 1 && pair[1].content.len() > 1)
            }),
        ]
    }
}
