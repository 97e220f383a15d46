//! All sequences of a number of choices, one after the other.

/// An iterator over all sequences of choices, depth first.
#[derive(Debug, Default)]
pub(super) struct Schedules {
    /// The choices of this run: the chosen alternative, and the number of alternatives.
    choices: Vec<(usize, usize)>,
    made: usize,
}

impl Schedules {
    /// Chooses one of `of` alternatives. The choices of the last run are repeated up to the last one with an
    /// alternative left.
    pub(super) fn choose(&mut self, of: usize) -> usize {
        if self.made == self.choices.len() {
            self.choices.push((0, of));
        }
        let (taken, _) = self.choices[self.made];
        self.made += 1;
        taken
    }

    /// Continues with the next run; `false` if this run was the last.
    pub(super) fn advance(&mut self) -> bool {
        self.made = 0;
        while let Some((taken, of)) = self.choices.pop() {
            if taken + 1 < of {
                self.choices.push((taken + 1, of));
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_comes_once() {
        let (mut schedules, mut runs) = (Schedules::default(), Vec::new());
        loop {
            let first = schedules.choose(2);
            // The second choice depends on the first.
            runs.push((first, schedules.choose(if first == 0 { 3 } else { 1 })));
            if !schedules.advance() {
                break;
            }
        }
        assert_eq!(runs, [(0, 0), (0, 1), (0, 2), (1, 0)]);
    }
}
