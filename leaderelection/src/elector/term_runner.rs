//! Carries out a state machine's orders about one candidacy and its terms, in order.

use std::sync::Arc;

use super::listeners::Listeners;
use super::report::Report;
use super::term::{OpenTerm, PreviousWork};
use super::work::StartWork;
use crate::clock::LocalInstant;
use crate::election::{BeginReason, Effect, Input};
use crate::leadership::Leadership;
use crate::leadership::window::Window;

/// The terms of one candidacy, and where it is reported.
#[derive(Debug)]
pub(crate) struct TermRunner {
    pub(crate) report: Report,
    /// The last term, until the candidacy has ended.
    pub(crate) open: Option<OpenTerm>,
}

impl TermRunner {
    pub(crate) fn new(listeners: Arc<dyn Listeners>) -> Self {
        Self { report: Report::new(listeners), open: None }
    }

    /// Starts the work of a term. Returns a view of the work for later terms, because it may outlive its term and this runner.
    pub(crate) fn start(
        &mut self,
        fencing_token: u64,
        window: Window,
        reason: BeginReason,
        work: &StartWork,
    ) -> PreviousWork {
        let listeners = self.report.share_listeners();
        let (clock, on_stop) = (Arc::clone(&listeners.basics().clock), listeners.on_stop());
        let leadership = Leadership::new(fencing_token.into(), window, clock, listeners.term_listener());
        // The status shows the term before the work can ask for it.
        self.report.started(&leadership, reason);
        // Prepared for each term: if a term was missed, another one of the same candidacy follows (rule 12).
        let open = OpenTerm::start(leadership, work.prepare(), on_stop, self.report.status().clone());
        let work = open.work();
        self.open = Some(open);
        work
    }

    /// Carries out an order about the term, or passes a fact on.
    pub(crate) fn carry_out(&mut self, now: LocalInstant, effect: Effect, dropped_work: &mut DroppedWork) {
        match (effect, &self.open) {
            (Effect::Stop { reason, .. }, Some(open)) => {
                // Rule 8: leadership ends before anything is reported or sent. A machine orders the stop of a term before any
                // request of the same step.
                open.leadership().close(reason.clone());
                self.report.stopped(now, open.leadership(), reason);
                // The work may have ended before, and then `on_stop_leading` is called here: after the report.
                open.stop();
            }
            (Effect::DropWork, Some(open)) => {
                dropped_work.drop_work(open);
                self.report.dropped_work(open.leadership().fencing_token());
            }
            (Effect::Abandon, Some(open)) => {
                self.report.abandoned_work(open.leadership().fencing_token());
                open.abandon();
            }
            (Effect::Fact(fact), _) => self.report.fact(now, fact),
            _ => {}
        }
    }

    /// Returns the next event of the term, if there is one.
    pub(crate) fn next_event(&self) -> Option<Input> {
        let open = self.open.as_ref()?;
        let input = open.next_event()?;
        if let Input::WorkEnded(end) = input {
            // The log first shows what went wrong with the work, then the end of the term.
            self.report.work_ended(end, open.take_error().as_deref());
        }
        Some(input)
    }
}

/// Lets dropped work run once before anything else happens.
///
/// Dropped work that awaits is gone once the runtime has run its task again. If the process was frozen meanwhile, other input may already
/// be waiting; it must not abandon the work before that.
#[derive(Debug, Default)]
pub(crate) struct DroppedWork {
    is_due: bool,
}

impl DroppedWork {
    /// Drops the work of a term. This takes effect when the runtime next runs the work.
    pub(crate) fn drop_work(&mut self, open: &OpenTerm) {
        open.drop_work();
        self.is_due = true;
    }

    /// Waits until dropped work has run once.
    pub(crate) async fn wait_until_run(&mut self) {
        if std::mem::take(&mut self.is_due) {
            // A task that is spawned now runs after the work. A mere yield would end as soon as anything else wakes this task.
            let _ = tokio::spawn(std::future::ready(())).await;
        }
    }
}
