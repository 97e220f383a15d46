//! Callbacks and work that panic, block or do not end.

use std::future::pending;
use std::sync::{Arc, Condvar, Mutex};

use leaderelection::{Elector, LeaderCallbacks, TermEndReason};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::Level;

use super::single::{builder, run, session};
use super::{BOUND, LEASE, campaigns, led, until};
use crate::support::{Faulty, Journal, logged};

#[tokio::test(start_paused = true)]
async fn panics_of_callbacks_end_one_term_and_nothing_else() {
    let store = Faulty::default();
    let session = session(&store, "a");
    let cancel = CancellationToken::new();
    let running = run(&session, &cancel);
    let (electors, tasks) = campaigns(&session, 3, &cancel, |lock| {
        let callbacks = LeaderCallbacks::new().on_stop_leading(|| panic!("on purpose"));
        callbacks.on_start_leading(move |leadership| {
            assert!(lock != 0 || leadership.fencing_token() > 1.into(), "on purpose");
            async move {
                assert!(lock != 1 || leadership.fencing_token() > 1.into(), "on purpose");
                leadership.lost().await;
            }
        })
    });
    until(|| electors.iter().all(|elector| elector.handle().fencing_token().is_some())).await;
    let tokens: Vec<_> = electors.iter().map(|elector| elector.handle().fencing_token().unwrap()).collect();
    assert_eq!(tokens, [2, 2, 1]);
    cancel.cancel();
    for task in tasks.into_iter().chain([running]) {
        timeout(BOUND, task).await.unwrap().unwrap();
    }
}

#[test]
fn a_panic_of_the_work_is_logged() {
    let lines = logged(Level::ERROR, async || {
        let session = session(&Faulty::default(), "a");
        let _running = run(&session, &CancellationToken::new());
        let callbacks = LeaderCallbacks::new().on_start_leading(|_| async { panic!("on purpose") });
        let elector = session.elector("x", callbacks).unwrap();
        let outcome = timeout(BOUND, elector.run(pending())).await.unwrap();
        assert_eq!(outcome.unwrap().reason(), Some(&TermEndReason::WorkPanicked));
    });
    assert!(lines.len() == 1 && lines[0].contains("panicked") && lines[0].contains('x'), "{lines:#?}");
}

#[tokio::test(start_paused = true)]
async fn callbacks_that_block_hold_a_bounded_number_of_threads() {
    let store = Faulty::default();
    let session = session(&store, "a");
    let _running = run(&session, &CancellationToken::new());
    let gate = Arc::new((Mutex::new((0, 0, 0, false)), Condvar::new()));
    let callbacks = |_| {
        let gate = Arc::clone(&gate);
        LeaderCallbacks::new().on_new_leader(move |_| {
            let (state, changed) = &*gate;
            let mut state = state.lock().unwrap();
            (state.0, state.2) = (state.0 + 1, state.2 + 1);
            state.1 = state.1.max(state.0);
            changed.notify_all();
            while !state.3 {
                state = changed.wait(state).unwrap();
            }
            state.0 -= 1;
            changed.notify_all();
        })
    };
    let (electors, _tasks) = campaigns(&session, 300, &CancellationToken::new(), callbacks);
    until(|| led(&electors) == 300).await;
    let (state, changed) = &*gate;
    // Every callback is called once the first ones return.
    state.lock().unwrap().3 = true;
    changed.notify_all();
    let state = state.lock().unwrap();
    let state = changed.wait_timeout_while(state, BOUND, |state| state.2 < 300).unwrap().0;
    assert_eq!(state.2, 300);
    assert!(state.1 <= 16, "{} threads", state.1);
}

#[tokio::test(start_paused = true)]
async fn work_that_ignores_the_end_is_dropped_before_another_leads() {
    let store = Faulty::default();
    let (first, second) = (session(&store, "a"), builder(&store, "b").build().unwrap());
    let cancel = CancellationToken::new();
    let running = run(&first, &cancel);
    let journal = Journal::default();
    let (begun, stopped) = (journal.clone(), journal.clone());
    let deaf = LeaderCallbacks::new()
        .on_start_leading(move |_| {
            begun.write("start");
            pending::<()>()
        })
        .on_stop_leading(move || stopped.write("stop"));
    let (electors, tasks) = campaigns(&first, 1, &cancel, |_| deaf.clone());
    until(|| led(&electors) == 1).await;
    let _other = run(&second, &CancellationToken::new());
    let (others, _others) = campaigns(&second, 1, &CancellationToken::new(), |_| {
        let journal = journal.clone();
        LeaderCallbacks::new().on_start_leading(move |_| {
            journal.write("other");
            pending::<()>()
        })
    });
    sleep(LEASE).await;
    cancel.cancel();
    until(|| led(&others) == 1).await;
    assert_eq!(journal.entries(), ["start", "stop", "other"]);
    timeout(BOUND, running).await.unwrap().unwrap();
    for task in tasks {
        timeout(BOUND, task).await.unwrap().unwrap();
    }
}
