//! A program that explores the state machine of sessions and checks every promise in every history.

use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use leaderelection_protocol_tests::reach::{Broken, explore};
use leaderelection_protocol_tests::sessions::model::{Question, electable, larger, standard};
use stateright::{Checker, Expectation, HasDiscoveries, Model};

/// Explores every history of a few processes that lead locks through sessions.
#[derive(Parser)]
struct Args {
    /// Explore the larger setups too
    #[arg(long)]
    larger: bool,
    /// Explore only the setup with this name
    name: Option<String>,
    /// The setting to change, such as `locks=1`, and its value
    #[arg(long, value_parser = setting)]
    set: Vec<(String, u64)>,
    /// The largest number of states to explore
    #[arg(long)]
    states: Option<usize>,
}

fn setting(text: &str) -> Result<(String, u64), String> {
    let (name, value) = text.split_once('=').ok_or("write name=value")?;
    Ok((name.to_owned(), value.parse().map_err(|error| format!("{error}"))?))
}

fn main() -> ExitCode {
    let args = Args::parse();
    let wanted = |question: &Question| args.name.as_ref().is_none_or(|name| name == question.name);
    let (mut promises, mut electable) = (standard(), electable());
    if args.larger || args.name.is_some() {
        promises.extend(larger());
    }
    if !promises.iter().chain(&electable).any(wanted) {
        eprintln!("no setup has that name; the names are:");
        promises.iter().chain(&electable).for_each(|question| eprintln!("  {}", question.name));
        return ExitCode::from(2);
    }
    promises.retain(wanted);
    electable.retain(wanted);
    for Question { setup, .. } in promises.iter_mut().chain(&mut electable) {
        args.set.iter().for_each(|(name, value)| setup.set(name, *value));
    }
    if promises.iter().all(|question| keeps_every_promise(question, args.states))
        && electable.iter().all(is_always_electable)
    {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
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

fn is_always_electable(Question { name, setup }: &Question) -> bool {
    let began = Instant::now();
    let explored = explore(setup);
    println!("{name}, {:.1} s: {explored}", began.elapsed().as_secs_f64());
    matches!(explored.found, None | Some(Broken::Never(_)))
}
