//! A search for states from which a process can never come to lead a lock.

use std::collections::hash_map::{DefaultHasher, Entry};
use std::collections::{HashMap, VecDeque};
use std::hash::{Hash, Hasher};

use stateright::Model;

use super::step::{Action, Deed};
use super::world::{Setup, World};

/// The result of [`explore`].
#[derive(Debug)]
pub struct Reachability {
    /// The number of states that were visited.
    pub states: usize,
    /// A state from which a process can never lead, if there is one.
    pub stuck: Option<Stuck>,
}

/// A state from which one process can never come to lead one lock.
#[derive(Debug, PartialEq, Eq)]
pub struct Stuck {
    /// The process that can never lead from this state.
    pub node: usize,
    /// The lock that the process can never lead.
    pub lock: usize,
    /// The path to this state.
    pub path: Vec<Action>,
}

/// The steps that one process can take by itself, without a fault.
#[derive(Clone, Default)]
struct Alone {
    edges: Vec<(u32, u32)>,
    /// For each lock: the states in which the process leads, or from which it goes on beyond what is explored.
    leads: Vec<Vec<u32>>,
}

/// Visits every state, and checks that each process can come to lead each lock from there even if all other processes
/// have died.
pub fn explore(setup: &Setup) -> Reachability {
    let mut index_of: HashMap<u64, u32> = HashMap::new();
    let mut came_from: Vec<Option<(u32, Action)>> = Vec::new();
    let mut frontier = VecDeque::new();
    let mut alone = vec![Alone { edges: Vec::new(), leads: vec![Vec::new(); setup.locks] }; setup.nodes.len()];
    let mut ticks = Vec::new();
    for world in setup.init_states() {
        index_of.insert(fingerprint(&world), 0);
        came_from.push(None);
        frontier.push_back((0, world));
    }
    let mut actions = Vec::new();
    while let Some((from, world)) = frontier.pop_front() {
        for (node, alone) in alone.iter_mut().enumerate() {
            for (lock, leads) in alone.leads.iter_mut().enumerate() {
                if world.nodes[node].leading(setup, lock).is_some() {
                    leads.push(from);
                }
            }
        }
        actions.clear();
        world.possible(setup, &mut actions);
        for action in actions.drain(..) {
            let next = World { violation: None, ..world.after(setup, &action) };
            let by_itself = match &action {
                Action::Node(node, Deed::Poll | Deed::Arrive(_) | Deed::Answer(_) | Deed::WorkStopped(_)) => {
                    Some(*node)
                }
                _ => None,
            };
            if !setup.within_boundary(&next) {
                if let Some(node) = by_itself {
                    alone[node].leads.iter_mut().for_each(|leads| leads.push(from));
                }
                continue;
            }
            let index = u32::try_from(came_from.len()).expect("fewer states than memory holds");
            let (to, is_new) = match index_of.entry(fingerprint(&next)) {
                Entry::Occupied(known) => (*known.get(), false),
                Entry::Vacant(new) => (*new.insert(index), true),
            };
            match by_itself {
                Some(node) => alone[node].edges.push((from, to)),
                None if action == Action::Tick => ticks.push((from, to)),
                None => {}
            }
            if is_new {
                came_from.push(Some((from, action)));
                frontier.push_back((to, next));
            }
        }
    }
    let states = came_from.len();
    let stuck = alone.iter().enumerate().find_map(|(node, alone)| {
        (0..setup.locks).find_map(|lock| {
            let index = alone.first_stuck(lock, &ticks, states)?;
            Some(Stuck { node, lock, path: path_to(&came_from, index) })
        })
    });
    Reachability { states, stuck }
}

impl Alone {
    /// Returns the first state from which neither the process's own steps nor the passing of time lead to a state in which
    /// the process leads the lock.
    fn first_stuck(&self, lock: usize, ticks: &[(u32, u32)], states: usize) -> Option<usize> {
        let mut can_lead = vec![false; states];
        self.leads[lock].iter().for_each(|index| can_lead[*index as usize] = true);
        let mut has_changed = true;
        while has_changed {
            has_changed = false;
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

fn path_to(came_from: &[Option<(u32, Action)>], mut index: usize) -> Vec<Action> {
    let mut path = Vec::new();
    while let Some((from, action)) = &came_from[index] {
        path.push(action.clone());
        index = *from as usize;
    }
    path.reverse();
    path
}

fn fingerprint(world: &World) -> u64 {
    let mut hasher = DefaultHasher::new();
    world.hash(&mut hasher);
    hasher.finish()
}
