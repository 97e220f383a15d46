//! Whether a leader can always be reached. Asks for a way, not for its being taken: stateright's
//! `eventually` misses loops, so the graph is searched backwards from the states with a leader.

use std::collections::HashMap;
use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

use stateright::Model;

use super::step::Action;
use super::world::{Setup, World};

/// What a search of the whole graph found.
#[derive(Debug)]
pub struct Reachability {
    /// How many states there are.
    pub states: usize,
    /// How to get to a state from which no leader can be reached, if there is one.
    pub stuck: Option<Vec<Action>>,
}

/// Visits every state, and looks from which of them a leader can be reached.
pub fn explore(setup: &Setup) -> Reachability {
    let mut index_of: HashMap<u64, u32> = HashMap::new();
    let mut came_from: Vec<Option<(u32, Action)>> = Vec::new();
    let mut predecessors: Vec<Vec<u32>> = Vec::new();
    let mut good = VecDeque::new();
    let mut frontier = VecDeque::new();
    let mut visit = |world: World, from: Option<(u32, Action)>, frontier: &mut VecDeque<(u32, World)>| {
        let next = u32::try_from(came_from.len()).unwrap_or(u32::MAX);
        let index = *index_of.entry(fingerprint(&world)).or_insert(next);
        if index == next {
            came_from.push(from);
            predecessors.push(Vec::new());
            if world.leaders(setup) > 0 || world.is_at_the_last_token(setup) {
                good.push_back(index);
            }
            if setup.within_boundary(&world) {
                frontier.push_back((index, world));
            }
        }
        if let Some((from, _)) = from {
            predecessors[index as usize].push(from);
        }
    };
    for world in setup.init_states() {
        visit(world, None, &mut frontier);
    }
    let mut actions = Vec::new();
    while let Some((index, world)) = frontier.pop_front() {
        actions.clear();
        setup.actions(&world, &mut actions);
        for action in actions.drain(..) {
            if let Some(next) = setup.next_state(&world, action) {
                visit(next, Some((index, action)), &mut frontier);
            }
        }
    }
    let mut can_reach = vec![false; came_from.len()];
    while let Some(index) = good.pop_front() {
        if !std::mem::replace(&mut can_reach[index as usize], true) {
            good.extend(predecessors[index as usize].iter().copied());
        }
    }
    let stuck = can_reach.iter().position(|can| !can).map(|index| path_to(index, &came_from));
    Reachability { states: came_from.len(), stuck }
}

fn path_to(mut index: usize, came_from: &[Option<(u32, Action)>]) -> Vec<Action> {
    let mut path = Vec::new();
    while let Some((from, action)) = came_from[index] {
        path.push(action);
        index = from as usize;
    }
    path.reverse();
    path
}

fn fingerprint(world: &World) -> u64 {
    let mut hasher = DefaultHasher::new();
    world.hash(&mut hasher);
    hasher.finish()
}
