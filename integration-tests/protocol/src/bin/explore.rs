//! Explores the protocol's state machine, and says whether every history keeps every promise.

use std::process::ExitCode;

use clap::Parser;
use leaderelection_protocol_tests::model::{Question, larger, standard};
use stateright::{Checker, HasDiscoveries, Model};

/// Explores every history of a few candidates.
#[derive(Parser)]
struct Args {
    /// Explore the larger setups too. Takes minutes and gigabytes.
    #[arg(long)]
    larger: bool,
    /// Explore only the setup with this name.
    name: Option<String>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let mut questions = standard();
    if args.larger || args.name.is_some() {
        questions.extend(larger());
    }
    questions.retain(|question| args.name.as_ref().is_none_or(|name| name == question.name));
    if questions.is_empty() {
        eprintln!("no setup has that name; the names are:");
        standard().iter().chain(&larger()).for_each(|question| eprintln!("  {}", question.name));
        return ExitCode::from(2);
    }
    for Question { name, setup } in questions {
        let checker = setup.checker().threads(2).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
        for property in checker.model().properties() {
            if property.expectation == stateright::Expectation::Always
                && let Some(path) = checker.discovery(property.name)
            {
                println!("{name}: violated: {}\n{path:?}", property.name);
                return ExitCode::FAILURE;
            }
        }
        println!("{name}: {} states, {} steps deep", checker.unique_state_count(), checker.max_depth());
    }
    ExitCode::SUCCESS
}
