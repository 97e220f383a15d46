//! The questions that are asked in every state.

use leaderelection_protocol::record::FIRST_TOKEN;

use super::node::Node;
use super::setup::Setup;
use super::step::{Action, Deed};
use super::world::World;
use crate::kit::{Cell, Goal, Model, Mover, Sight, Work};
use crate::model::Violation;

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
        world.take(self, &action);
    }

    fn is_within(&self, world: &World) -> bool {
        let tokens =
            world.locks.iter().flatten().all(|cell| cell.record.leader_transitions <= FIRST_TOKEN + self.last_token);
        tokens && world.nodes.iter().all(|node| node.opened <= self.sessions)
    }

    fn broken(&self, world: &World) -> Option<&'static str> {
        let is_shared = (0..self.locks).any(|lock| world.leaders(self, lock) > 1);
        is_shared.then_some("exclusion").or(world.violation.map(Violation::promise))
    }

    fn sights(&self) -> Vec<Option<Seen>> {
        vec![
            Seen::new("every lock has a leader", |setup, world| {
                (0..setup.locks).all(|lock| world.leaders(setup, lock) == 1)
            }),
            Seen::new("an ended session", |_, world| world.sessions.values().any(Cell::is_released)),
            Seen::only_if(self.last_token > 0, "another term", |setup, world| {
                (0..setup.locks).any(|lock| world.started[lock].count_ones() > 1)
            }),
            Seen::only_if(self.sessions > 1, "another session", |setup, world| {
                let leads = |node: &Node| (0..setup.locks).any(|lock| node.leading(setup, lock).is_some());
                world.nodes.iter().any(|node| node.opened > 1 && leads(node))
            }),
            Seen::only_if(self.delete_after.is_some(), "a deleted session", |_, world| world.deleted),
            Seen::only_if(self.late_writes > 0, "a late write", |_, world| !world.net.late.is_empty()),
            Seen::only_if(self.messages > 1, "a session whose messages put polls off", |_, world| {
                world.nodes.iter().any(|node| node.member.connected_sessions() > 0)
            }),
            Seen::only_if(self.late_work, "work that is given up", |_, world| {
                world.nodes.iter().flat_map(|node| &node.seats).any(|seat| seat.work == Work::Abandoned)
            }),
            Seen::only_if(self.step_downs && self.slow.locks, "a released lock", |_, world| {
                world.locks.iter().flatten().any(Cell::is_released)
            }),
        ]
    }

    fn goals(&self) -> Vec<Goal> {
        let locks = |node| (0..self.locks).map(move |lock| Goal { node, lock });
        (0..self.nodes.len()).flat_map(locks).collect()
    }

    fn is_reached(&self, world: &World, goal: Goal) -> bool {
        world.nodes[goal.node].leading(self, goal.lock).is_some()
    }

    fn mover(&self, action: &Action) -> Mover {
        match action {
            Action::Tick => Mover::Time,
            Action::Node(node, Deed::Poll | Deed::Arrive(_) | Deed::Answer(_) | Deed::WorkStopped(_)) => {
                Mover::Node(*node)
            }
            _ => Mover::Other,
        }
    }
}
