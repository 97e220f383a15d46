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

    /// Explores every history, or so many states.
    pub fn explore(&self, most: usize) -> Explored {
        explore(self.name, &self.setup, self.is_electable, most)
    }
}

/// Lists questions: the way to ask, the name, the setup that is changed, and the fields that differ in it.
macro_rules! questions {
    ($($ask:ident $name:literal: $setup:expr $(, $field:ident: $value:expr)*;)*) => {
        vec![$($crate::kit::Question::$ask($name, Setup { $($field: $value,)* ..$setup })),*]
    };
}

/// Declares the promises of a model that one step breaks.
macro_rules! promises {
    ($($(#[$about:meta])* $promise:ident = $name:literal,)*) => {
        /// A promise that a step has broken.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub(crate) enum Violation {
            $($(#[$about])* $promise,)*
        }

        impl Violation {
            /// The name of the promise.
            pub(crate) fn promise(self) -> &'static str {
                match self {
                    $(Self::$promise => $name,)*
                }
            }
        }
    };
}

pub(crate) use {promises, questions};

/// A question about any model: the name of the setup, and the exploration of every history, or of so many states.
pub type Ask = (&'static str, Box<dyn FnOnce(usize) -> Explored + Send>);

/// The questions of a model.
#[allow(missing_debug_implementations, reason = "a question about any model has only a name")]
pub struct Asked {
    /// The name of the model.
    pub model: &'static str,
    /// The questions of every test run.
    pub usual: Vec<Ask>,
    /// The questions that take longer.
    pub larger: Vec<Ask>,
}

impl Asked {
    /// Takes the questions of one model.
    pub fn new<M: Model + 'static>(model: &'static str, usual: Vec<Question<M>>, larger: Vec<Question<M>>) -> Self {
        let ask = |question: Question<M>| -> Ask { (question.name, Box::new(move |most| question.explore(most))) };
        let [usual, larger] = [usual, larger].map(|questions| questions.into_iter().map(ask).collect());
        Self { model, usual, larger }
    }
}
