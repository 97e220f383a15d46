use std::process::Command;
use std::time::{Duration, Instant};

use leaderelection_integration_tests::program::Program;

const SHARDS: usize = 100;
const TIMING: [&str; 6] = [
    "--leader-elect-lease-duration",
    "3s",
    "--leader-elect-renew-deadline",
    "2500ms",
    "--leader-elect-retry-period",
    "250ms",
];
/// The shares of the members `a`, `b` and `c`: a hash of the names decides about each shard.
const SHARES: [usize; 3] = [24, 44, 32];

struct Member {
    program: Program,
    name: &'static str,
    holds: usize,
}

impl Member {
    fn start(prefix: &str, name: &'static str) -> Self {
        let args = [&[prefix, "--member", name], TIMING.as_slice()].concat();
        let program = Program::start(Command::new(env!("CARGO_BIN_EXE_shards")).args(&args));
        Self { program, name, holds: 0 }
    }
}

/// Returns the number in a line such as `a holds 36 of 100`.
fn number(line: &str) -> usize {
    line.split(' ').nth(2).unwrap().parse().unwrap()
}

fn wait_until(what: &str, members: &mut [Member], is_so: impl Fn(&[usize]) -> bool) -> Vec<usize> {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let held: Vec<_> = members.iter().map(|member| member.holds).collect();
        if is_so(&held) {
            return held;
        }
        assert!(Instant::now() < deadline, "waited in vain until {what}: {held:?}");
        for member in members.iter_mut() {
            if let Some(line) = member.program.latest_line() {
                member.holds = number(&line);
            }
        }
    }
}

fn is_all(held: &[usize]) -> bool {
    held.iter().sum::<usize>() == SHARDS
}

#[test]
fn a_hundred_shards_are_spread_over_three_processes() {
    let directory = tempfile::tempdir().unwrap();
    let prefix = format!("file://{}/shards", directory.path().display());
    let mut members = vec![Member::start(&prefix, "a")];
    wait_until("the first one holds all", &mut members, |held| held == [SHARDS]);

    members.push(Member::start(&prefix, "b"));
    members.push(Member::start(&prefix, "c"));
    wait_until("everybody has a share", &mut members, |held| held == SHARES);

    // The others keep their own shards, and share those of the dead member, unless a busy machine stops one of them for too long.
    let keep_their_own = (0..3).any(|_| {
        members[0].program.kill();
        members[0].holds = 0;
        let after = wait_until("the others hold all", &mut members, |held| is_all(held) && held[0] == 0);

        // The same name has the same share.
        members[0] = Member::start(&prefix, "a");
        wait_until("the member that came back has its share", &mut members, |held| held == SHARES);
        after[1] >= SHARES[1] && after[2] >= SHARES[2]
    });
    assert!(keep_their_own, "the others do not just share the shards of the dead member");

    // A member that stops gracefully leaves at once.
    members[2].program.terminate();
    assert!(members[2].program.wait().success(), "{} failed", members[2].name);
    members[2].holds = 0;
    wait_until("two members hold all", &mut members, |held| is_all(held) && held[2] == 0);
    for member in &mut members[..2] {
        member.program.terminate();
        assert!(member.program.wait().success(), "{} failed", member.name);
    }
}
