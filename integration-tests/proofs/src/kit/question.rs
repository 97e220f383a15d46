//! A setup with its name, and the questions of a model.

use super::explore::{Explored, explore};
use super::model::Model;

/// A setup and its name.
#[derive(Clone, Debug)]
pub struct Question<M> {
    /// The name of the setup.
    pub name: &'static str,
    /// The setup.
    pub setup: M,
    /// `true` if every goal must be in reach of every state.
    pub is_electable: bool,
}

impl<M: Model> Question<M> {
    /// Asks about the promises of a setup.
    pub fn new(name: &'static str, setup: M) -> Self {
        Self { name, setup, is_electable: false }
    }

    /// Asks besides whether every candidate can always come to lead.
    pub fn electable(name: &'static str, setup: M) -> Self {
        Self { name, setup, is_electable: true }
    }
}

/// Lists questions: the way to ask, the name, the setup that is changed, and the fields that differ in it.
macro_rules! questions {
    ($($ask:ident $name:literal: $setup:expr $(, $field:ident: $value:expr)*;)*) => {
        vec![$($crate::kit::Question::$ask($name, Setup { $($field: $value,)* ..$setup })),*]
    };
}

pub(crate) use questions;

/// A question about any model.
pub trait Ask: Send + Sync {
    /// The name of the setup.
    fn name(&self) -> &'static str;

    /// Explores every history, or so many states.
    fn explore(&self, most: usize) -> Explored;
}

impl<M: Model> Ask for Question<M> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn explore(&self, most: usize) -> Explored {
        explore(self.name, &self.setup, self.is_electable, most)
    }
}

/// The questions of a model.
#[allow(missing_debug_implementations, reason = "a question about any model has only a name")]
pub struct Asked {
    /// The name of the model.
    pub model: &'static str,
    /// The questions of every test run.
    pub usual: Vec<Box<dyn Ask>>,
    /// The questions that take longer.
    pub larger: Vec<Box<dyn Ask>>,
}

impl Asked {
    /// Takes the questions of one model.
    pub fn new<M: Model + 'static>(model: &'static str, usual: Vec<Question<M>>, larger: Vec<Question<M>>) -> Self {
        let boxed =
            |questions: Vec<Question<M>>| questions.into_iter().map(|question| Box::new(question) as _).collect();
        Self { model, usual: boxed(usual), larger: boxed(larger) }
    }
}
