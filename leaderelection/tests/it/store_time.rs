//! A store that goes back in time: restored from a backup, or crashed without its last writes.

use std::future::pending;

use leaderelection::{Elector, Majority, MemoryStore};
use tokio::time::sleep;
use tracing::Level;

use crate::support::{DEADLINE, Journal, LEASE, RETRY, TestLock, elector, logged, plant, record, spawn_run, stored};

/// The log of a leader whose store shows the record of `rounds` renewals ago.
fn errors_after_going_back() -> Vec<String> {
    logged(Level::ERROR, async || {
        let store = MemoryStore::new();
        let (_cancel, _running) = spawn_run(elector(TestLock::new(&store, "a"), Journal::default().callbacks()));
        sleep(RETRY * 2).await;
        let backup = stored(&store).await.record;
        sleep(DEADLINE).await;
        plant(&store, &backup).await;
        sleep(LEASE * 3).await;
    })
}

#[test]
fn our_own_earlier_write_is_no_duplicate_identity() {
    let errors = errors_after_going_back();
    assert_eq!(errors.len(), 1, "{errors:#?}");
    assert!(errors[0].contains("the store went back in time"), "{errors:#?}");
}

#[test]
fn one_of_two_locks_goes_back_and_is_no_duplicate_either() {
    let errors = logged(Level::ERROR, async || {
        let [old, new] = [MemoryStore::new(), MemoryStore::new()];
        let locks = Majority::both(TestLock::new(&old, "a"), TestLock::new(&new, "a")).unwrap();
        let (_cancel, _running) = spawn_run(elector(locks, Journal::default().callbacks()));
        sleep(RETRY * 2).await;
        let backup = stored(&old).await.record;
        sleep(DEADLINE).await;
        plant(&old, &backup).await;
        sleep(LEASE * 3).await;
    });
    assert_eq!(errors.len(), 1, "{errors:#?}");
    assert!(errors[0].contains("the store went back in time"), "{errors:#?}");
}

#[test]
fn a_candidate_of_later_reports_it_as_well() {
    let errors = logged(Level::ERROR, async || {
        let store = MemoryStore::new();
        let elector = elector(TestLock::new(&store, "a"), Journal::default().callbacks());
        let _campaign = tokio::spawn(async move { elector.campaign(pending()).await });
        sleep(RETRY * 2).await;
        let backup = stored(&store).await.record;
        sleep(DEADLINE).await;
        // Another leads in between, and then the backup comes back.
        plant(&store, &record("b", LEASE, 9)).await;
        sleep(LEASE / 2).await;
        plant(&store, &backup).await;
        sleep(LEASE / 2).await;
    });
    assert_eq!(errors.len(), 1, "{errors:#?}");
    assert!(errors[0].contains("the store went back in time"), "{errors:#?}");
}
