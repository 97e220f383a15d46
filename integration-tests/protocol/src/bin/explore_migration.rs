//! A program that explores the move from one lock to another and checks every promise in every history.

use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use leaderelection_protocol_tests::migration::{Question, standard};
use stateright::{Checker, Expectation, HasDiscoveries, Model};

/// Explores every history of a few processes that move from one lock to another.
#[derive(Parser)]
struct Args {
    /// Explore only the setup with this name
    name: Option<String>,
    /// The largest number of states to explore
    #[arg(long)]
    states: Option<usize>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let mut questions = standard();
    questions.retain(|question| args.name.as_ref().is_none_or(|name| name == question.name));
    if questions.is_empty() {
        eprintln!("no setup has that name; the names are:");
        standard().iter().for_each(|question| eprintln!("  {}", question.name));
        return ExitCode::from(2);
    }
    let all_keep = questions.iter().all(|question| keeps_every_promise(question, args.states));
    if all_keep { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn keeps_every_promise(Question { name, setup }: &Question, states: Option<usize>) -> bool {
    let (began, setup) = (Instant::now(), setup.clone());
    let mut builder = setup.checker().threads(2).finish_when(HasDiscoveries::AnyFailures);
    if let Some(states) = states {
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
