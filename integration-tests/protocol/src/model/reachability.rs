//! The proof that every candidate can always come to lead: a path to leadership exists from every state.
//!
//! The search runs backwards from the states with a leader, because the property `eventually` of stateright does
//! not detect loops.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use stateright::Model;

use super::action::{Action, Deed};
use super::world::{Setup, World};

/// The result of a search of the whole graph.
#[derive(Debug)]
pub struct Reachability {
    /// The number of states.
    pub states: usize,
    /// A state from which a candidate cannot come to lead, if there is one.
    pub stuck: Option<Stuck>,
}

/// A state from which one candidate can never come to lead.
#[derive(Debug, PartialEq, Eq)]
pub struct Stuck {
    /// The candidate that can never lead from this state.
    pub node: usize,
    /// The path to this state.
    pub path: Vec<Action>,
}

/// A step of a graph, from one state to another.
type Edge = (u32, u32);

/// The states that were visited, in the order in which they were found.
#[derive(Default)]
struct Graph {
    index_of: HashMap<u64, u32>,
    came_from: Vec<Option<(u32, Action)>>,
}

/// The steps that one candidate can take by itself, without a fault.
///
/// A crash is no such step, because a restarted candidate is like a new candidate. An order to stop is none
/// either.
#[derive(Clone, Default)]
struct Alone {
    edges: Vec<Edge>,
    /// The states in which the candidate leads, or from which it begins a term beyond the explored terms.
    leads: Vec<u32>,
}

/// Visits every state, and checks that each candidate can come to lead from there even if all other candidates
/// have died. A promise that is broken on the way does not count.
pub fn explore(setup: &Setup) -> Reachability {
    let (mut graph, mut frontier) = (Graph::default(), VecDeque::new());
    let mut alone = vec![Alone::default(); setup.nodes.len()];
    let mut ticks = Vec::new();
    for world in setup.init_states() {
        let (index, _) = graph.visit(&world, None);
        frontier.push_back((index, world));
    }
    let mut actions = Vec::new();
    while let Some((from, world)) = frontier.pop_front() {
        for (node, alone) in alone.iter_mut().enumerate() {
            if world.nodes[node].leading(setup).is_some() {
                alone.leads.push(from);
            }
        }
        actions.clear();
        world.possible(setup, &mut actions);
        for action in actions.drain(..) {
            let next = World { violation: None, ..world.after(setup, action) };
            if !setup.within_boundary(&next) {
                if let Action::Node(node, Deed::Arrive) = action {
                    alone[node].leads.push(from);
                }
                continue;
            }
            let (to, is_new) = graph.visit(&next, Some((from, action)));
            match action {
                // Somebody puts a spoilt record back in the end.
                Action::Tick | Action::Repair => ticks.push((from, to)),
                Action::Node(node, Deed::Poll | Deed::Arrive | Deed::Answer | Deed::BeginWork | Deed::WorkStopped) => {
                    alone[node].edges.push((from, to));
                }
                _ => {}
            }
            if is_new {
                frontier.push_back((to, next));
            }
        }
    }
    let states = graph.came_from.len();
    let stuck = alone.iter().enumerate().find_map(|(node, alone)| {
        let index = alone.first_stuck(&ticks, states)?;
        Some(Stuck { node, path: graph.path_to(index) })
    });
    Reachability { states, stuck }
}

impl Graph {
    /// Returns the index of the state, and `true` if the state is new.
    fn visit(&mut self, world: &World, from: Option<(u32, Action)>) -> (u32, bool) {
        let next = u32::try_from(self.came_from.len()).expect("fewer states than memory holds");
        match self.index_of.entry(fingerprint(world)) {
            Entry::Occupied(known) => (*known.get(), false),
            Entry::Vacant(new) => {
                new.insert(next);
                self.came_from.push(from);
                (next, true)
            }
        }
    }

    fn path_to(&self, mut index: usize) -> Vec<Action> {
        let mut path = Vec::new();
        while let Some((from, action)) = self.came_from[index] {
            path.push(action);
            index = from as usize;
        }
        path.reverse();
        path
    }
}

impl Alone {
    /// Returns the first state from which neither the candidate's own steps nor the passing of time lead to a state in
    /// which the candidate leads.
    fn first_stuck(&self, ticks: &[Edge], states: usize) -> Option<usize> {
        let mut can_lead = vec![false; states];
        self.leads.iter().for_each(|index| can_lead[*index as usize] = true);
        let mut has_changed = true;
        while has_changed {
            has_changed = false;
            // The loop runs backwards, because most successors of a state were found after that state.
            for (from, to) in self.edges.iter().rev().chain(ticks.iter().rev()) {
                if can_lead[*to as usize] && !can_lead[*from as usize] {
                    can_lead[*from as usize] = true;
                    has_changed = true;
                }
            }
        }
        can_lead.iter().position(|can| !can)
    }
}

fn fingerprint(world: &World) -> u64 {
    let mut hasher = DefaultHasher::new();
    world.hash(&mut hasher);
    hasher.finish()
}
