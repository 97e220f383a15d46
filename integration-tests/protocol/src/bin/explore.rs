//! A program that explores the protocol's state machine and checks every promise in every history.

use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use leaderelection_protocol_tests::model::{Question, electable, electable_larger, larger, standard};
use leaderelection_protocol_tests::reach::{Broken, explore};
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
    let wanted = |question: &Question| args.name.as_ref().is_none_or(|name| name == question.name);
    let (mut promises, mut electable) = (standard(), electable());
    if args.larger || args.name.is_some() {
        promises.extend(larger());
        electable.extend(electable_larger());
    }
    if !promises.iter().chain(&electable).any(wanted) {
        eprintln!("no setup has that name; the names are:");
        promises.iter().chain(&electable).for_each(|question| eprintln!("  {}", question.name));
        return ExitCode::from(2);
    }
    promises.retain(wanted);
    electable.retain(wanted);
    if promises.iter().all(keeps_every_promise) && electable.iter().all(is_always_electable) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn keeps_every_promise(Question { name, setup }: &Question) -> bool {
    let (began, setup) = (Instant::now(), setup.clone());
    let checker = setup.checker().threads(2).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    for property in checker.model().properties() {
        if property.expectation == stateright::Expectation::Always
            && let Some(path) = checker.discovery(property.name)
        {
            println!("{name}: violated: {}\n{path:?}", property.name);
            return false;
        }
    }
    let took = began.elapsed().as_secs_f64();
    println!("{name}: {} states, {} steps deep, {took:.1} s", checker.unique_state_count(), checker.max_depth());
    true
}

fn is_always_electable(Question { name, setup }: &Question) -> bool {
    let began = Instant::now();
    let explored = explore(setup);
    println!("{name}, {:.1} s: {explored}", began.elapsed().as_secs_f64());
    matches!(explored.found, None | Some(Broken::Never(_)))
}
