use std::time::Duration;

use leaderelection::{DefaultLeaderElector, Elector, LeaderCallbacks, LeaderElectionConfig, MemoryLock, MemoryStore};
use tokio_util::sync::CancellationToken;

use super::*;

/// Elects `identity`, and returns the transitions of its term and of the time after it.
async fn elect(store: &MemoryStore, identity: &str) -> Vec<Transition> {
    let shutdown = CancellationToken::new();
    let done = shutdown.clone();
    let callbacks = LeaderCallbacks::new().on_start_leading(move |leadership| {
        done.cancel();
        async move { leadership.lost().await }
    });
    let config = LeaderElectionConfig::builder(MemoryLock::new(store.clone(), "lock", identity), callbacks);
    let elector = DefaultLeaderElector::new(config.build().unwrap());
    elector.run(shutdown.cancelled_owned()).await.unwrap();
    elector.handle().transitions()
}

#[tokio::test]
async fn a_local_term_has_its_token_and_the_reason_for_its_end() {
    let store = MemoryStore::new();
    for token in 1..3 {
        let terms = of(&elect(&store, "alpha").await, "alpha");
        let seen: Vec<_> = terms
            .iter()
            .map(|term| (term.holder.as_str(), term.fencing_token, term.ended.as_ref().map(ToString::to_string)))
            .collect();
        assert_eq!(seen.len(), 1, "{terms:?}");
        assert_eq!((seen[0].0, seen[0].1), ("alpha", Some(token.into())), "{terms:?}");
        assert!(seen[0].2.as_ref().is_some_and(|reason| reason.contains("told to stop")), "{terms:?}");
        assert!(terms[0].until().is_some());
    }
}

#[tokio::test]
async fn the_terms_of_others_end_when_the_leader_changes() {
    let mut seen = elect(&MemoryStore::new(), "alpha").await;
    // `Transition` cannot be made outside of its crate.
    let example = seen.remove(0);
    let change = |second: u64, from: Option<&str>, to: Option<&str>| {
        let mut transition = example.clone();
        transition.at = DateTime::UNIX_EPOCH + Duration::from_secs(second);
        transition.change = Change::LeaderChanged { from: from.map(str::to_owned), to: to.map(str::to_owned) };
        transition
    };
    let transitions = [
        change(0, None, Some("beta")),
        change(10, Some("beta"), Some("gamma")),
        change(20, Some("gamma"), None),
        change(30, None, Some("beta")),
    ];
    let terms = of(&transitions, "alpha");
    let seconds = |at: DateTime<Utc>| at.timestamp();
    let seen: Vec<_> = terms
        .iter()
        .map(|term| {
            (
                term.holder.as_str(),
                term.since.map(seconds),
                term.until().map(seconds),
                term.ended.as_ref().map(ToString::to_string),
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            ("beta", Some(0), Some(10), Some("the lease was taken over by \"gamma\"".to_owned())),
            ("gamma", Some(10), Some(20), Some("the lease was released".to_owned())),
            ("beta", Some(30), None, None),
        ]
    );
}
