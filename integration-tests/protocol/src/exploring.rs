//! The common part of the programs that explore: their arguments, and their words about each setup.

use std::fmt::Debug;
use std::hash::Hash;
use std::process::ExitCode;
use std::time::Instant;

use stateright::{Checker, Expectation, HasDiscoveries, Model};

use crate::reach::{Broken, Reach, explore};

/// A model that can be explored, with states and actions that can be told.
pub trait Explored:
    Model<State: Clone + Debug + Hash + PartialEq + Send + Sync, Action: Clone + Debug + PartialEq>
    + Clone
    + Send
    + Sync
    + 'static
{
}

impl<M> Explored for M where
    M: Model<State: Clone + Debug + Hash + PartialEq + Send + Sync, Action: Clone + Debug + PartialEq>
        + Clone
        + Send
        + Sync
        + 'static
{
}

/// A setup and its name.
#[derive(Clone, Debug)]
pub struct Question<S> {
    /// The name of the setup.
    pub name: &'static str,
    /// The setup.
    pub setup: S,
}

/// The arguments of a program that explores.
#[derive(Clone, Debug, clap::Args)]
pub struct Wanted {
    /// Explore the larger setups too. Takes minutes and gigabytes.
    #[arg(long)]
    larger: bool,
    /// Explore only the setup with this name.
    name: Option<String>,
    /// The largest number of states to explore.
    #[arg(long)]
    states: Option<usize>,
}

/// The setups of a model.
#[derive(Debug)]
pub struct Setups<S> {
    /// Every history of these keeps every promise.
    pub promises: Vec<Question<S>>,
    /// Every state of these leads to a leader.
    pub electable: Vec<Question<S>>,
}

impl<S> Setups<S> {
    /// All setups.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Question<S>> {
        self.promises.iter_mut().chain(&mut self.electable)
    }
}

impl Wanted {
    /// Chooses from the usual setups and the larger ones. The error is the status of a program that was asked for a
    /// setup which does not exist.
    ///
    /// # Errors
    ///
    /// If no setup has the name.
    pub fn choose<S>(&self, usual: Setups<S>, larger: Setups<S>) -> Result<Setups<S>, ExitCode> {
        let Setups { mut promises, mut electable } = usual;
        if self.larger || self.name.is_some() {
            promises.extend(larger.promises);
            electable.extend(larger.electable);
        }
        let is_wanted = |question: &Question<S>| self.name.as_ref().is_none_or(|name| name == question.name);
        if !promises.iter().chain(&electable).any(is_wanted) {
            eprintln!("no setup has that name; the names are:");
            promises.iter().chain(&electable).for_each(|question| eprintln!("  {}", question.name));
            return Err(ExitCode::from(2));
        }
        promises.retain(is_wanted);
        electable.retain(is_wanted);
        Ok(Setups { promises, electable })
    }

    /// Explores every history of the wanted setups of a model that asks about promises only. Returns the program's status.
    pub fn explore<M: Explored>(&self, usual: Vec<Question<M>>, larger: Vec<Question<M>>) -> ExitCode {
        let of = |promises| Setups { promises, electable: Vec::new() };
        match self.choose(of(usual), of(larger)) {
            Ok(setups) => status(setups.promises.iter().all(|question| self.keeps_every_promise(question))),
            Err(unknown) => unknown,
        }
    }

    /// Explores every history of a setup, and says what was found. Returns `true` if every promise was kept.
    pub fn keeps_every_promise<M: Explored>(&self, Question { name, setup }: &Question<M>) -> bool {
        let began = Instant::now();
        let mut builder = setup.clone().checker().threads(2).finish_when(HasDiscoveries::AnyFailures);
        if let Some(states) = self.states {
            builder = builder.target_state_count(states);
        }
        let checker = builder.spawn_bfs().join();
        for property in checker.model().properties() {
            match (property.expectation, checker.discovery(property.name)) {
                (Expectation::Always, Some(path)) => {
                    println!("{name}: {:?}\nviolated: {}", path.into_actions(), property.name);
                    return false;
                }
                (Expectation::Sometimes, None) => println!("{name}: never {}", property.name),
                _ => {}
            }
        }
        let took = began.elapsed().as_secs_f64();
        println!("{name}: {} states, {} steps deep, {took:.1} s", checker.unique_state_count(), checker.max_depth());
        true
    }
}

/// Explores a setup, and says what was found. Returns `true` if every state leads to a leader.
pub fn is_always_electable<M: Reach>(Question { name, setup }: &Question<M>) -> bool
where
    M::Action: Debug,
{
    let began = Instant::now();
    let explored = explore(setup);
    println!("{name}, {:.1} s: {explored}", began.elapsed().as_secs_f64());
    matches!(explored.found, None | Some(Broken::Never(_)))
}

/// The status of a program that has found this.
#[must_use]
pub fn status(all_kept: bool) -> ExitCode {
    if all_kept { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
