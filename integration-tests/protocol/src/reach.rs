//! The exploration of a model with one more question: can every goal still be reached from every state?
//!
//! The search runs backwards from the states in which a goal is reached, because the property `eventually` of
//! stateright does not detect loops. The promises that stateright checks are checked on the way.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::fmt::{Debug, Display, Formatter, Result};
use std::hash::{DefaultHasher, Hash, Hasher};

use stateright::{Expectation, Model, Property};

/// A model of candidates, each of which must always be able to come to lead.
pub trait Reach: Model<State: Hash, Action: Clone> {
    /// The goals.
    fn goals(&self) -> Vec<Goal>;

    /// Returns `true` if the goal is reached in this state.
    fn is_reached(&self, state: &Self::State, goal: Goal) -> bool;

    /// Says who takes this step.
    fn mover(&self, action: &Self::Action) -> Mover;
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

/// The result of an exploration.
#[derive(Debug)]
pub struct Exploration<A> {
    /// The number of states.
    pub states: usize,
    /// The first thing that should not be, if there is one.
    pub found: Option<Broken<A>>,
}

impl<A: Debug> Display for Exploration<A> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match &self.found {
            None => write!(f, "{} states", self.states),
            Some(Broken::Promise(promise, path)) => write!(f, "{path:?}\nviolated: {promise}"),
            Some(Broken::Never(event)) => write!(f, "never {event}"),
            Some(Broken::Stuck(Goal { node, lock }, path)) => {
                write!(f, "node {node} can never lead lock {lock} again: {path:?}\nviolated: always electable")
            }
        }
    }
}

/// Something that should not be.
#[derive(Debug)]
pub enum Broken<A> {
    /// A promise is broken after these steps.
    Promise(&'static str, Vec<A>),
    /// An event that must be possible never happens.
    Never(&'static str),
    /// The goal cannot be reached any more after these steps, even if all other candidates have died.
    Stuck(Goal, Vec<A>),
}

/// Visits every state. Checks every promise there, and then that every goal can be reached from there.
pub fn explore<M: Reach>(model: &M) -> Exploration<M::Action> {
    let (mut graph, mut frontier) = (Graph::default(), VecDeque::new());
    let goals = model.goals();
    let (mut steps, mut reached) = (Vec::new(), vec![Vec::new(); goals.len()]);
    let mut questions: Vec<_> = model.properties().into_iter().map(|property| (property, false)).collect();
    for state in model.init_states() {
        let (index, _) = graph.visit(&state, None);
        frontier.push_back((index, state));
    }
    let mut actions = Vec::new();
    while let Some((from, state)) = frontier.pop_front() {
        if let Some(promise) = first_broken(model, &mut questions, &state) {
            let found = Some(Broken::Promise(promise, graph.path_to(from)));
            return Exploration { states: graph.came_from.len(), found };
        }
        for (goal, reached) in goals.iter().zip(&mut reached) {
            if model.is_reached(&state, *goal) {
                reached.push(from);
            }
        }
        model.actions(&state, &mut actions);
        for action in actions.drain(..) {
            let mover = model.mover(&action);
            let Some(next) = model.next_state(&state, action.clone()) else { continue };
            if !model.within_boundary(&next) {
                // A candidate that goes on beyond what is explored has come far enough.
                let own = goals.iter().zip(&mut reached).filter(|(goal, _)| mover == Mover::Node(goal.node));
                own.for_each(|(_, reached)| reached.push(from));
                continue;
            }
            let (to, is_new) = graph.visit(&next, Some((from, action)));
            if mover != Mover::Other {
                steps.push(Step { mover, from, to });
            }
            if is_new {
                frontier.push_back((to, next));
            }
        }
    }
    let never = questions.iter().find(|(property, seen)| property.expectation == Expectation::Sometimes && !seen);
    let found = never.map(|(property, _)| Broken::Never(property.name)).or_else(|| {
        goals.into_iter().zip(reached).find_map(|(goal, reached)| {
            let index = first_stuck(goal, reached, &steps, graph.came_from.len())?;
            Some(Broken::Stuck(goal, graph.path_to(index)))
        })
    });
    Exploration { states: graph.came_from.len(), found }
}

/// Asks every question about a state. Returns the name of a promise that is broken, and remembers what was seen to happen.
fn first_broken<M: Model>(model: &M, questions: &mut [(Property<M>, bool)], state: &M::State) -> Option<&'static str> {
    for (property, seen) in questions {
        match property.expectation {
            Expectation::Always if !(property.condition)(model, state) => return Some(property.name),
            Expectation::Sometimes if !*seen => *seen = (property.condition)(model, state),
            _ => {}
        }
    }
    None
}

/// Returns the first state from which neither the candidate's own steps nor the passing of time lead to the goal.
fn first_stuck(goal: Goal, reached: Vec<u32>, steps: &[Step], states: usize) -> Option<u32> {
    let mut can = vec![false; states];
    reached.into_iter().for_each(|index| can[index as usize] = true);
    let mut has_changed = true;
    while has_changed {
        has_changed = false;
        // The loop runs backwards, because most successors of a state were found after that state.
        for Step { from, to, .. } in steps.iter().rev().filter(|step| step.is_for(goal)) {
            if can[*to as usize] && !can[*from as usize] {
                can[*from as usize] = true;
                has_changed = true;
            }
        }
    }
    (0..).zip(can).find_map(|(index, can)| (!can).then_some(index))
}

/// A step from one state to another.
struct Step {
    mover: Mover,
    from: u32,
    to: u32,
}

impl Step {
    fn is_for(&self, goal: Goal) -> bool {
        self.mover == Mover::Time || self.mover == Mover::Node(goal.node)
    }
}

/// The states that were visited, in the order in which they were found.
struct Graph<A> {
    index_of: HashMap<u64, u32>,
    came_from: Vec<Option<(u32, A)>>,
}

impl<A> Default for Graph<A> {
    fn default() -> Self {
        Self { index_of: HashMap::new(), came_from: Vec::new() }
    }
}

impl<A: Clone> Graph<A> {
    /// Returns the index of the state, and `true` if the state is new.
    fn visit(&mut self, state: &impl Hash, from: Option<(u32, A)>) -> (u32, bool) {
        let next = u32::try_from(self.came_from.len()).expect("fewer states than memory holds");
        match self.index_of.entry(fingerprint(state)) {
            Entry::Occupied(known) => (*known.get(), false),
            Entry::Vacant(new) => {
                new.insert(next);
                self.came_from.push(from);
                (next, true)
            }
        }
    }

    fn path_to(&self, mut index: u32) -> Vec<A> {
        let mut path = Vec::new();
        while let Some((from, action)) = &self.came_from[index as usize] {
            path.push(action.clone());
            index = *from;
        }
        path.reverse();
        path
    }
}

fn fingerprint(state: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    state.hash(&mut hasher);
    hasher.finish()
}
