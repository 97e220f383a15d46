//! The span of each term, for traces.

use std::collections::BTreeSet;

use leaderelection::{Elector, LeaderCallbacks, MemoryStore, Session, StoreErrorKind};
use leaderelection_test_support::spans::{SeenSpan, spans_of};
use tokio::time::sleep;

use crate::support::{Fault, LEASE, RETRY, TestLock, elector, plant, record, spawn_run};

fn terms(spans: &[SeenSpan]) -> Vec<&SeenSpan> {
    spans.iter().filter(|span| span.name == "leader_election_term").collect()
}

fn field<'a>(span: &'a SeenSpan, name: &str) -> Option<&'a str> {
    span.fields.get(format!("leader_election.{name}").as_str()).map(String::as_str)
}

#[test]
fn each_term_is_a_span_with_its_failed_renewals() {
    let spans = spans_of(async || {
        let store = MemoryStore::new();
        plant(&store, &record("before", LEASE, 6)).await;
        let lock = TestLock::new(&store, "a");
        let elector = elector(lock.clone(), LeaderCallbacks::new());
        let (cancel, running) = spawn_run(elector);
        sleep(LEASE + RETRY * 2).await;
        lock.set_outage(Some(Fault::Refuse(StoreErrorKind::Rejected)));
        sleep(RETRY * 2).await;
        lock.set_outage(None);
        sleep(LEASE).await;
        cancel.cancel();
        running.await.unwrap();
    });
    let [term] = terms(&spans)[..] else { panic!("{spans:#?}") };
    assert_eq!((term.parent, term.closed), (Some("leader_election"), true), "{term:#?}");
    assert_eq!(field(term, "identity"), Some("a"));
    assert_eq!(field(term, "fencing_token"), Some("7"));
    assert_eq!(field(term, "begin"), Some(r#"the lease of "before" expired"#));
    assert_eq!(field(term, "end"), Some("cancelled"));
    assert!(field(term, "name").is_some_and(|name| !name.is_empty()), "{term:#?}");
    let (first, last) = (term.events.first().unwrap(), term.events.last().unwrap());
    assert!(first.contains("started leading") && last.contains("stopped leading"), "{term:#?}");
    let failed = term.events.iter().filter(|event| event.contains("request=update")).collect::<Vec<_>>();
    assert!(!failed.is_empty() && failed.iter().all(|event| event.contains("error=")), "{term:#?}");
    // Before the term, a failure is none of its events.
    assert_eq!(term.events.len(), failed.len() + 2, "{term:#?}");
}

#[test]
fn all_spans_and_their_fields_have_one_prefix() {
    let spans = spans_of(async || {
        let session = Session::builder(MemoryStore::new(), "session", "a").build().unwrap();
        let elector_of_the_session = session.elector("lock", LeaderCallbacks::new()).unwrap();
        let of_a_lock = elector(TestLock::new(&MemoryStore::new(), "a"), LeaderCallbacks::new());
        let (of_the_session, _) = (elector_of_the_session.spawn(sleep(LEASE)), of_a_lock.spawn(sleep(LEASE)));
        session.run(sleep(LEASE * 2)).await.unwrap();
        of_the_session.1.await.unwrap().unwrap();
    });
    let names: BTreeSet<_> = spans.iter().map(|span| span.name).collect();
    assert_eq!(names, BTreeSet::from(["leader_election", "leader_election_session", "leader_election_term"]));
    for field in spans.iter().flat_map(|span| span.fields.keys()) {
        assert!(field.starts_with("leader_election."), "{field}");
    }
}

#[test]
fn a_lost_term_has_its_reason_and_the_next_one_a_span_of_its_own() {
    let spans = spans_of(async || {
        let store = MemoryStore::new();
        let elector = elector(TestLock::new(&store, "a"), LeaderCallbacks::new());
        let (handle, cancel) = (elector.handle(), tokio_util::sync::CancellationToken::new());
        let running = tokio::spawn({
            let cancel = cancel.clone();
            async move { elector.campaign(cancel.cancelled_owned()).await }
        });
        sleep(RETRY).await;
        plant(&store, &record("usurper", LEASE, 8)).await;
        sleep(LEASE * 3).await;
        assert!(handle.is_leader());
        cancel.cancel();
        running.await.unwrap().unwrap();
    });
    let ends: Vec<_> =
        terms(&spans).into_iter().map(|term| (field(term, "fencing_token"), field(term, "end"), term.closed)).collect();
    assert_eq!(ends, [(Some("1"), Some("taken_over"), true), (Some("9"), Some("cancelled"), true)], "{spans:#?}");
}
