use std::process::Command;
use std::time::{Duration, Instant};

use leaderelection_integration_tests::program::{Program, TIMING};

const SHARDS: usize = 100;

struct Member {
    program: Program,
    owns: usize,
    holds: usize,
}

impl Member {
    fn start(locks: &str, name: &str) -> Self {
        let args = [&[locks, "--member", name, "--members", "a,b,c"], TIMING.as_slice()].concat();
        let mut program = Program::start(Command::new(env!("CARGO_BIN_EXE_shards")).args(&args));
        let owns = number(&program.wait_for_line(&format!("{name} owns ")));
        Self { program, owns, holds: 0 }
    }
}

/// Returns the number in a line such as `a owns 36 of 100`.
fn number(line: &str) -> usize {
    line.split(' ').nth(2).unwrap().parse().unwrap()
}

fn wait_until(what: &str, members: &mut [Member], is_so: impl Fn(&[Member]) -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_so(members) {
        let held: Vec<_> = members.iter().map(|member| member.holds).collect();
        assert!(Instant::now() < deadline, "waited in vain until {what}: {held:?}");
        for member in members.iter_mut() {
            if let Some(line) = member.program.latest_line() {
                member.holds = number(&line);
            }
        }
    }
}

#[test]
fn a_hundred_elections_are_spread_over_three_processes() {
    let directory = tempfile::tempdir().unwrap();
    let locks = format!("file://{}/shards", directory.path().display());
    let mut members: Vec<_> = ["a", "b", "c"].into_iter().map(|name| Member::start(&locks, name)).collect();
    let everybody_has_its_own = |members: &[Member]| members.iter().all(|member| member.holds == member.owns);
    assert_eq!(members.iter().map(|member| member.owns).sum::<usize>(), SHARDS);
    wait_until("everybody holds its own", &mut members, everybody_has_its_own);

    members[0].program.kill();
    members[0].holds = 0;
    wait_until("the others hold all", &mut members, |members| members[1].holds + members[2].holds == SHARDS);

    members[0] = Member::start(&locks, "a");
    wait_until("it has its own again", &mut members, everybody_has_its_own);

    for member in &mut members {
        member.program.terminate();
        assert!(member.program.wait().success());
    }
}
