use std::process::Command;

use leaderelection::ObjectStoreBasedLock;
use leaderelection_backends::file::FileLock;
use leaderelection_integration_tests::program::Program;

#[tokio::test]
async fn four_lines_lead_and_release_the_lease_at_a_signal() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path().to_str().unwrap();
    let mut leader = Program::start(Command::new(env!("CARGO_BIN_EXE_leader")).args([directory, "scheduler"]));
    leader.wait_for_line("leading with fencing token 1");
    leader.terminate();
    assert!(leader.wait().success());
    let lock = FileLock::from_env(directory, "scheduler").await.unwrap();
    let record = lock.get().await.unwrap().unwrap().record;
    assert_eq!(record.holder_identity, "", "the lease is released");
}
