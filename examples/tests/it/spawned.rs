use std::process::Command;

use leaderelection_integration_tests::program::Program;

#[test]
fn a_frozen_replica_ends_with_the_controllers_that_its_work_has_spawned() {
    let directory = tempfile::tempdir().unwrap();
    let replica = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_spawned"));
        Program::start(command.args([directory.path().to_str().unwrap(), "operator"]))
    };
    let mut first = replica();
    first.wait_for_line("users reconciled under token ");
    let mut second = replica();
    first.freeze();
    second.wait_for_line("users reconciled under token ");
    // What the first one has printed before is read, so that every further line is newer.
    while first.latest_line().is_some() {}
    first.resume();
    assert_eq!(first.wait().code(), Some(1), "the process ends, and the orchestrator starts it again");
    assert_eq!(first.latest_line(), None, "nothing was reconciled beside the next leader");
    second.terminate();
    assert!(second.wait().success(), "an ordered stop is no loss");
}
