//! The states that were visited.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasherDefault, Hasher};

use super::model::Model;

/// The states that were visited, in the order in which they were found.
#[derive(Default)]
pub(super) struct Graph {
    index_of: HashMap<u64, u32, BuildHasherDefault<Same>>,
    /// The state before each state, and the number of the step among the possible ones.
    came_from: Vec<(u32, u16)>,
}

impl Graph {
    pub(super) fn len(&self) -> usize {
        self.came_from.len()
    }

    /// Returns the index of the state with this fingerprint, and `true` if the state is new.
    pub(super) fn visit(&mut self, fingerprint: u64, from: u32, step: usize) -> (u32, bool) {
        match self.index_of.entry(fingerprint) {
            Entry::Occupied(known) => (*known.get(), false),
            Entry::Vacant(new) => {
                let index = u32::try_from(self.came_from.len()).expect("fewer states than memory holds");
                new.insert(index);
                self.came_from.push((from, u16::try_from(step).expect("few steps")));
                (index, true)
            }
        }
    }

    /// The steps of a shortest way to a state, which begins with the state at 0.
    pub(super) fn steps_to<M: Model>(&self, model: &M, mut index: u32) -> Vec<String> {
        let mut numbers = Vec::new();
        while index > 0 {
            let (from, step) = self.came_from[index as usize];
            numbers.push(step.into());
            index = from;
        }
        let (mut world, mut actions, mut steps) = (model.begin(), Vec::new(), Vec::new());
        for number in numbers.into_iter().rev() {
            model.actions(&world, &mut actions);
            let action = actions.swap_remove(number);
            steps.push(format!("{action:?}"));
            world = model.after(&world, action);
            actions.clear();
        }
        steps
    }
}

/// A hash of what is a hash already.
#[derive(Default)]
struct Same(u64);

impl Hasher for Same {
    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("a fingerprint is a number");
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
