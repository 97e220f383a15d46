//! One more question to every state: can every goal still be reached from there?
//!
//! The search runs backwards from the states in which a goal is reached.

use super::model::{Goal, Mover};

/// The steps between all states that lead to a goal.
pub(super) struct Ways {
    goals: Vec<(Goal, Vec<u32>)>,
    steps: Vec<Step>,
}

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

impl Ways {
    pub(super) fn new(goals: Vec<Goal>) -> Self {
        Self { goals: goals.into_iter().map(|goal| (goal, Vec::new())).collect(), steps: Vec::new() }
    }

    pub(super) fn visit(&mut self, state: u32, is_reached: impl Fn(Goal) -> bool) {
        for (goal, reached) in &mut self.goals {
            if is_reached(*goal) {
                reached.push(state);
            }
        }
    }

    /// Remembers a step; `to` is `None` if the step leads beyond what is explored. A candidate that goes on there has come far
    /// enough.
    pub(super) fn step(&mut self, mover: Mover, from: u32, to: Option<u32>) {
        match to {
            _ if self.goals.is_empty() => {}
            None => {
                let own = self.goals.iter_mut().filter(|(goal, _)| mover == Mover::Node(goal.node));
                own.for_each(|(_, reached)| reached.push(from));
            }
            Some(to) if mover != Mover::Other && from != to => self.steps.push(Step { mover, from, to }),
            Some(_) => {}
        }
    }

    /// Returns the first state from which neither the candidate's own steps nor the passing of time lead to some goal.
    pub(super) fn first_stuck(&self, states: usize) -> Option<(Goal, u32)> {
        self.goals.iter().find_map(|(goal, reached)| {
            let mut can = vec![false; states];
            reached.iter().for_each(|index| can[*index as usize] = true);
            let mut has_changed = true;
            while has_changed {
                has_changed = false;
                // The loop runs backwards, because most successors of a state were found after that state.
                for Step { from, to, .. } in self.steps.iter().rev().filter(|step| step.is_for(*goal)) {
                    if can[*to as usize] && !can[*from as usize] {
                        can[*from as usize] = true;
                        has_changed = true;
                    }
                }
            }
            (0..).zip(can).find_map(|(index, can)| (!can).then_some((*goal, index)))
        })
    }
}
