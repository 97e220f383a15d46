//! The questions that are asked in every state.

use leaderelection_protocol::record::FIRST_TOKEN;

use super::action::{Action, Deed};
use super::promise::Violation;
use super::setup::{Manner, Setup};
use super::world::{Spoilt, World};
use crate::kit::{Cell, Goal, Model, Mover, Sight, Work};

type Seen = Sight<Setup>;

impl Model for Setup {
    type World = World;
    type Action = Action;

    fn begin(&self) -> World {
        let mut world = World::new(self);
        (0..self.nodes.len()).for_each(|index| world.begin(self, index));
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
        self.least_image(world)
    }

    fn is_within(&self, world: &World) -> bool {
        world.cell.as_ref().is_none_or(|cell| cell.record.leader_transitions <= FIRST_TOKEN + self.last_token)
    }

    fn broken(&self, world: &World) -> Option<&'static str> {
        if self.deletion {
            return world.violation.filter(|violation| *violation == Violation::Haste).map(Violation::promise);
        }
        let is_shared = self.trusted_clocks && world.leaders(self) > 1;
        is_shared.then_some("exclusion").or(world.violation.map(Violation::promise))
    }

    fn sights(&self) -> Vec<Option<Seen>> {
        if self.only_exclusion {
            return Vec::new();
        }
        if self.deletion {
            let created_anew = |_: &Self, world: &World| world.deleted && world.cell.is_some();
            return vec![Seen::new("another record", created_anew)];
        }
        vec![
            Seen::new("a leader", |setup, world| world.leaders(setup) == 1),
            Seen::only_if(self.last_token > 0, "another term", |_, world| world.started > 1 << FIRST_TOKEN),
            Seen::only_if(self.work == Manner::EndsLate, "work that is dropped", |_, world| world.has(Work::Dropped)),
            Seen::only_if(self.work == Manner::EndsLate, "work that is given up", |_, world| {
                world.has(Work::Abandoned)
            }),
            Seen::only_if(self.stops, "a release", |_, world| world.is_released()),
            Seen::only_if(self.spoils, "a leader after a repair", |setup, world| {
                world.spoilt == Spoilt::Over && world.leaders(setup) == 1
            }),
            Seen::only_if(self.transfers > 0, "a request followed", |_, world| {
                let named = |cell: &Cell| cell.record.preferred_holder.is_some();
                world.is_released() && world.cell.as_ref().is_some_and(named)
            }),
            Seen::only_if(self.waits, "a leader that is asked to wait", |setup, world| {
                world.nodes.iter().any(|node| !node.silent.is_zero() && node.leading(setup).is_some())
            }),
            Seen::only_if(self.waits, "a leader that asks once more", |setup, world| {
                world.nodes.iter().any(|node| node.has_insisted && node.leading(setup).is_some())
            }),
            Seen::only_if(self.jobs > 0, "a job that is done", |_, world| world.job.marked),
            Seen::only_if(self.jobs > 0, "a job that is found done", |setup, world| {
                world.job.marked && world.nodes.iter().filter(|node| node.rests).count() == setup.jobs
            }),
            Seen::only_if(self.jobs > 0 && self.last_token > 0, "a job that is done again", |_, world| {
                world.job.marked && world.job.succeeded.count_ones() > 1
            }),
            Seen::only_if(self.messages > 0, "a message that counts", |_, world| {
                world.nodes.iter().any(|node| node.election.last_message().is_some())
            }),
            Seen::only_if(self.fails, "a release after a failure", |_, world| world.is_released()),
            Seen::only_if(self.takes_back, "a request of a better candidate", |_, world| {
                world.cell.as_ref().is_some_and(|cell| cell.record.failbacks > 0)
            }),
            Seen::only_if(self.late_writes > 0, "a late write", |_, world| !world.net.late.is_empty()),
        ]
    }

    fn goals(&self) -> Vec<Goal> {
        (0..self.nodes.len()).map(|node| Goal { node, lock: 0 }).collect()
    }

    fn is_reached(&self, world: &World, goal: Goal) -> bool {
        world.nodes[goal.node].leading(self).is_some()
    }

    fn mover(&self, action: &Action) -> Mover {
        match action {
            // Somebody puts a spoilt record back in the end.
            Action::Tick | Action::Repair => Mover::Time,
            Action::Node(node, Deed::Poll | Deed::Arrive | Deed::Answer | Deed::BeginWork | Deed::WorkStopped) => {
                Mover::Node(*node)
            }
            _ => Mover::Other,
        }
    }
}

impl World {
    fn has(&self, work: Work) -> bool {
        self.nodes.iter().any(|node| node.seat.work == work)
    }

    fn is_released(&self) -> bool {
        self.cell.as_ref().is_some_and(|cell| cell.record.is_released())
    }
}
