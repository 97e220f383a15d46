//! The threads that end a term: its elector, and its work.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};

use crate::config::work_outcome::Done;
use crate::election::{Input, WorkEnd};
use crate::explore;
use crate::handle::status::StatusWriter;
use crate::leadership::Leadership;
use crate::term::{OpenTerm, Prepared};

/// A term with work that ends by itself, and the number of calls of `on_stop_leading`.
struct Stage {
    term: OpenTerm,
    begun: Arc<AtomicUsize>,
    stops: Arc<AtomicUsize>,
}

impl Stage {
    fn new() -> Self {
        let (leadership, begun, stops) =
            (Leadership::new(), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (begins, stopped, view) = (Arc::clone(&begun), Arc::clone(&stops), leadership.clone());
        let work = Box::new(move |_| {
            begins.fetch_add(1, Ordering::SeqCst);
            Box::pin(async { Done { end: WorkEnd::Complete, error: None } }) as _
        });
        let on_stop = std::sync::Arc::new(move |_: &Leadership, _: Option<&str>| {
            assert!(!view.is_valid(), "on_stop_leading is called during the term");
            stopped.fetch_add(1, Ordering::SeqCst);
        });
        Self { term: OpenTerm::start(leadership, Prepared::Task(work), Some(on_stop), StatusWriter), begun, stops }
    }

    fn count(counter: &AtomicUsize) -> usize {
        counter.load(Ordering::SeqCst)
    }

    /// Asks as the elector does. `on_stop_leading` must have been called before the elector learns that the work has ended:
    /// it releases the lease then.
    fn asks(&self) -> bool {
        let Some(Input::WorkEnded(end)) = self.term.next_event() else { return false };
        let begun = usize::from(end == WorkEnd::Complete);
        assert_eq!(Self::count(&self.stops), begun, "the elector learns of {end:?} before on_stop_leading");
        true
    }
}

#[test]
fn the_elector_learns_of_the_end_of_the_work_after_on_stop_leading() {
    explore(|| {
        let stage = Stage::new();
        stage.term.stop();
        while !stage.asks() {
            loom::thread::yield_now();
        }
        assert!(stage.term.as_earlier().has_ended());
    });
}

#[test]
fn on_stop_leading_follows_ended_work_before_the_next_term() {
    explore(|| {
        let stage = Stage::new();
        let (work, begun, stops) = (stage.term.as_earlier(), Arc::clone(&stage.begun), Arc::clone(&stage.stops));
        // The elector is dropped in the middle of the term.
        drop(stage.term);
        while !work.has_ended() {
            loom::thread::yield_now();
        }
        assert_eq!(Stage::count(&stops), Stage::count(&begun));
    });
}

#[test]
fn abandoned_work_is_followed_by_one_on_stop_leading() {
    explore(|| {
        let stage = Stage::new();
        stage.term.stop();
        stage.term.drop_work();
        stage.term.abandon();
        while !stage.term.as_earlier().has_ended() {
            loom::thread::yield_now();
        }
        // Work that was given up before it began does not begin.
        assert_eq!(Stage::count(&stage.stops), Stage::count(&stage.begun));
        drop(stage.term);
        assert_eq!(Stage::count(&stage.stops), Stage::count(&stage.begun));
    });
}
