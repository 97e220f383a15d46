//! The program that explores: its arguments, and its report about each setup.

use std::process::ExitCode;
use std::sync::Mutex;
use std::thread;

use super::explore::Explored;
use super::question::{Ask, Asked};

/// Explores every history of a few processes in the models of the protocol, and checks every promise.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Explore only this model.
    model: Option<String>,
    /// Explore only the setup with this name.
    setup: Option<String>,
    /// Explore the larger setups too. Takes minutes and gigabytes.
    #[arg(long)]
    larger: bool,
    /// The largest number of states of a setup to explore.
    #[arg(long, default_value_t = usize::MAX, hide_default_value = true)]
    states: usize,
    /// The number of setups that are explored at a time.
    #[arg(long, default_value_t = 2)]
    threads: usize,
}

impl Args {
    /// Explores the setups that were asked for, and says what was found. Returns the status of the program.
    pub fn explore(&self, models: Vec<Asked>) -> ExitCode {
        let (mut asked, mut known) = (Vec::new(), String::new());
        for Asked { model, usual, larger } in models {
            let is_model = self.model.as_ref().is_none_or(|wanted| wanted == model);
            let both = usual.into_iter().map(|ask| (ask, true)).chain(larger.into_iter().map(|ask| (ask, self.larger)));
            for ((name, explore), is_wanted) in both {
                known += &format!("  {model} {name:?}\n");
                if is_model && self.setup.as_ref().map_or(is_wanted, |setup| setup == name) {
                    asked.push((name, explore));
                }
            }
        }
        if asked.is_empty() {
            eprint!("no such setup; these are the models and their setups:\n{known}");
            return ExitCode::from(2);
        }
        // A mutation may make a situation impossible, and is to be found by the promise that it breaks.
        let found = explore_all(asked, self.threads, self.states, |found| println!("{found}"));
        if found.iter().any(|found| found.broken.is_some()) { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }
}

/// Explores the setups in their order, some at a time, until a promise is found broken. Tells of each as soon as it is
/// explored.
pub fn explore_all(asked: Vec<Ask>, threads: usize, most: usize, tell: impl Fn(&Explored) + Sync) -> Vec<Explored> {
    let (asked, found) = (Mutex::new(asked.into_iter()), Mutex::new(Vec::new()));
    let explore_next = || {
        while !found.lock().expect("no panic").iter().any(|found: &Explored| found.broken.is_some()) {
            let Some((_, explore)) = asked.lock().expect("no panic").next() else { return };
            let explored = explore(most);
            let mut found = found.lock().expect("no panic");
            tell(&explored);
            found.push(explored);
        }
    };
    thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(explore_next))));
    found.into_inner().expect("no panic")
}
