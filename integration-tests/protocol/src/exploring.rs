//! The common part of the programs that explore: their arguments, and their words about each setup.

use std::fmt::{self, Debug, Display, Formatter};
use std::hash::Hash;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use stateright::{Checker, Expectation, HasDiscoveries, Model};

use crate::reach::{Broken, Reach, explore};

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

    /// Explores every history of a setup, and says what was found. Returns `true` if every promise was kept.
    pub fn keeps_every_promise<M: Explored>(&self, question: &Question<M>) -> bool {
        let found = question.explore(self.states);
        for promise in &found.never {
            println!("{}: never {promise}", found.name);
        }
        match found.violated.first() {
            Some((promise, steps)) => println!("{}: {}\nviolated: {promise}", found.name, steps.join(", ")),
            None => println!("{found}"),
        }
        found.violated.is_empty()
    }
}

/// A model of which every history can be explored.
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

/// The histories of a setup.
#[derive(Clone, Debug)]
pub struct Histories {
    /// The name of the setup.
    pub name: &'static str,
    /// The number of states.
    pub states: usize,
    /// The number of steps of the longest history.
    pub depth: usize,
    /// The duration of the exploration.
    pub took: Duration,
    /// The broken promises, each with the steps of a shortest way to the breach. A breach ends the exploration.
    pub violated: Vec<(&'static str, Vec<String>)>,
    /// The situations that should be in some history, and are in none.
    pub never: Vec<&'static str>,
}

impl Display for Histories {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let Self { name, states, depth, took, .. } = self;
        write!(out, "{name}: {states} states, {depth} steps deep, {:.1} s", took.as_secs_f64())
    }
}

impl<M: Explored> Question<M> {
    /// Explores every history of the setup, or only so many states.
    #[must_use]
    pub fn explore(&self, states: Option<usize>) -> Histories {
        let began = Instant::now();
        let mut builder = self.setup.clone().checker().threads(2).finish_when(HasDiscoveries::AnyFailures);
        if let Some(states) = states {
            builder = builder.target_state_count(states);
        }
        let checker = builder.spawn_bfs().join();
        let (mut violated, mut never) = (Vec::new(), Vec::new());
        for property in checker.model().properties() {
            match (property.expectation, checker.discovery(property.name)) {
                (Expectation::Sometimes, None) => never.push(property.name),
                (Expectation::Sometimes, Some(_)) | (_, None) => {}
                (_, Some(path)) => {
                    let steps = path.into_actions().iter().map(|action| format!("{action:?}")).collect();
                    violated.push((property.name, steps));
                }
            }
        }
        let (states, depth) = (checker.unique_state_count(), checker.max_depth());
        Histories { name: self.name, states, depth, took: began.elapsed(), violated, never }
    }
}

/// Explores every history of a model and checks every promise.
#[derive(Parser)]
struct Args {
    #[command(flatten)]
    wanted: Wanted,
}

impl<M: Explored + Reach> Setups<M> {
    /// Explores all setups. Returns the status of the program.
    #[must_use]
    pub fn explore(&self, wanted: &Wanted) -> ExitCode {
        let kept = self.promises.iter().all(|question| wanted.keeps_every_promise(question));
        status(kept && self.electable.iter().all(is_always_electable))
    }
}

/// Carries out a program that explores a model without a question of who can come to lead.
#[must_use]
pub fn explore_histories<M: Explored>(usual: Vec<Question<M>>, larger: Vec<Question<M>>) -> ExitCode {
    let Args { wanted } = Args::parse();
    let of = |promises| Setups { promises, electable: Vec::new() };
    match wanted.choose(of(usual), of(larger)) {
        Ok(setups) => status(setups.promises.iter().all(|question| wanted.keeps_every_promise(question))),
        Err(unknown) => unknown,
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
