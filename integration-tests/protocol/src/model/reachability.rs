//! Whether every candidate can always come to lead. Asks for a way, not for its being taken: stateright's
//! `eventually` misses loops, so the graph is searched backwards from the states with a leader.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use stateright::Model;

use super::step::{Action, Deed};
use super::world::{Setup, World};

/// What a search of the whole graph found.
#[derive(Debug)]
pub struct Reachability {
    /// How many states there are.
    pub states: usize,
    /// A state from which a candidate cannot come to lead, if there is one.
    pub stuck: Option<Stuck>,
}

/// A state in which something is stuck.
#[derive(Debug, PartialEq, Eq)]
pub struct Stuck {
    /// The candidate that can never lead from here.
    pub node: usize,
    /// How to get here.
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

/// What one candidate can do by itself when nothing goes wrong: neither a crash, after which it would be
/// as good as new, nor a fault, nor an order to stop may help it.
#[derive(Clone, Default)]
struct Alone {
    edges: Vec<Edge>,
    /// The states in which it leads, or next begins a term that is not explored any more.
    leads: Vec<u32>,
}

/// Visits every state, and looks from which of them each candidate can come to lead although the others
/// have all died. Whether a promise is broken on the way is not asked.
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
                Action::Tick => ticks.push((from, to)),
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
    /// The state's index, and whether it is new.
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
    /// The first state from which neither its own steps nor those of time lead to one in which it leads.
    fn first_stuck(&self, ticks: &[Edge], states: usize) -> Option<usize> {
        let mut can_lead = vec![false; states];
        self.leads.iter().for_each(|index| can_lead[*index as usize] = true);
        let mut has_changed = true;
        while has_changed {
            has_changed = false;
            // Backwards: what follows a state was mostly found after it.
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
