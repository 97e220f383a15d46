//! A model: its states, its steps, and its questions.

use std::fmt::Debug;
use std::hash::Hash;

use super::fingerprint::fingerprint;

/// A setup of a model, of which every history is explored.
pub trait Model: Send + Sync + Sized {
    /// A state.
    type World: Clone + Hash;
    /// A step.
    type Action: Debug;

    /// The first state.
    fn begin(&self) -> Self::World;

    /// Lists the steps that are possible in a state.
    fn actions(&self, world: &Self::World, actions: &mut Vec<Self::Action>);

    /// Takes a step.
    fn act(&self, world: &mut Self::World, action: Self::Action);

    /// A number that is the same for states with the same future. States that differ in more than their ids have one only if
    /// they are mirror images of each other: a goal of one is another goal of the other.
    fn mirrored(&self, world: &Self::World) -> u64 {
        fingerprint(world)
    }

    /// Returns `false` if a state is beyond what is explored.
    fn is_within(&self, world: &Self::World) -> bool;

    /// The name of a promise that is broken in this state.
    fn broken(&self, world: &Self::World) -> Option<&'static str>;

    /// The situations that some history must show, because an empty exploration would keep every promise.
    fn sights(&self) -> Vec<Option<Sight<Self>>>;

    /// The goals, each of which can always be reached in an [electable](super::Question::electable) setup.
    fn goals(&self) -> Vec<Goal> {
        Vec::new()
    }

    /// Returns `true` if a goal is reached in this state.
    fn is_reached(&self, _world: &Self::World, _goal: Goal) -> bool {
        false
    }

    /// Says what causes a step.
    fn mover(&self, _action: &Self::Action) -> Mover {
        Mover::Other
    }
}

/// Takes the steps of a history that begins in the middle. Returns `true` if each was possible, has changed something, and has broken no
/// promise: then the state in which they end is one that the model can reach.
pub fn takes<M: Model>(model: &M, world: &mut M::World, steps: &[M::Action]) -> bool
where
    M::Action: Copy + PartialEq,
{
    steps.iter().all(|step| {
        let (mut possible, before) = (Vec::new(), fingerprint(world));
        model.actions(world, &mut possible);
        model.act(world, *step);
        let is_possible = possible.contains(step) && model.is_within(world) && model.broken(world).is_none();
        is_possible && fingerprint(world) != before
    })
}

/// A situation that some history must show.
#[derive(Debug)]
pub struct Sight<M: Model> {
    /// The name of the situation.
    pub name: &'static str,
    /// Returns `true` in such a situation.
    pub is_seen: fn(&M, &M::World) -> bool,
}

impl<M: Model> Sight<M> {
    /// Creates a situation that every setup has.
    pub fn new(name: &'static str, is_seen: fn(&M, &M::World) -> bool) -> Option<Self> {
        Some(Self { name, is_seen })
    }

    /// Creates a situation that only some setups have.
    pub fn only_if(applies: bool, name: &'static str, is_seen: fn(&M, &M::World) -> bool) -> Option<Self> {
        applies.then_some(Self { name, is_seen })
    }
}

/// One candidate leads one lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Goal {
    /// The candidate.
    pub node: usize,
    /// The lock.
    pub lock: usize,
}

/// The cause of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mover {
    /// One candidate by itself, without a fault. A crash and an order to stop are no such steps: a restarted candidate is
    /// like a new one.
    Node(usize),
    /// The passing of time, or a repair that somebody makes in the end.
    Time,
    /// A fault, or somebody who need not do anything.
    Other,
}
