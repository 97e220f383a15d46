//! Carries out the effects of a state machine on the terms of one candidacy, and reports them.

use std::sync::Arc;

use super::listeners::Listeners;
use super::report::Report;
use super::term::{OpenTerm, PreviousWork};
use super::work::StartWork;
use crate::clock::LocalInstant;
use crate::election::{BeginReason, Effect, Input};
use crate::leadership::Leadership;
use crate::leadership::window::Window;

/// The terms of one candidacy, and the reports about it.
#[derive(Debug)]
pub(crate) struct TermRunner {
    pub(crate) report: Report,
    /// The last term; `None` before the first one, and after the candidacy.
    pub(crate) open: Option<OpenTerm>,
    /// The moment at which the last term was stopped.
    stopped_at: LocalInstant,
}

impl TermRunner {
    pub(crate) fn new(listeners: Arc<dyn Listeners>) -> Self {
        Self { report: Report::new(listeners), open: None, stopped_at: LocalInstant::default() }
    }

    /// Starts a term and its work. Returns the work, which may outlive its term and this runner, so that later terms can wait for it.
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
        // Reported first, so that the status shows the term before the work can ask for it.
        self.report.started(&leadership, reason);
        // Prepared for each term: if the window closes before the work begins, the candidacy has another term (rule 12).
        let open = OpenTerm::start(leadership, work.prepare(), on_stop, self.report.status().clone());
        let work = open.as_earlier();
        self.open = Some(open);
        work
    }

    /// Carries out an effect on the term, or reports a fact.
    pub(crate) fn carry_out(&mut self, now: LocalInstant, effect: Effect, dropped_work: &mut DroppedWork) {
        match (effect, &self.open) {
            (Effect::Stop { reason, .. }, Some(open)) => {
                // Rule 8: leadership ends before anything is reported or sent. So a machine returns `Stop` before any
                // request of the same step.
                open.leadership().close(reason.clone());
                self.stopped_at = now;
                self.report.stopped(now, open.leadership(), reason);
                // After the report: if the work has already ended, this calls `on_stop_leading`.
                open.stop();
            }
            (Effect::DropWork, Some(open)) => {
                dropped_work.drop_work(open);
                // If the process was frozen for most of the time to stop, the work is not to blame.
                let late_by = self.stopped_at.saturating_since(open.leadership().valid_until());
                let was_frozen = late_by > now.saturating_since(self.stopped_at);
                self.report.dropped_work(open.leadership().fencing_token(), was_frozen);
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
            // Reported now, so that the log shows what went wrong with the work before it shows the end of the term.
            self.report.work_ended(end, open.error().as_deref());
        }
        Some(input)
    }
}

/// Lets the runtime run dropped work once before the driver's next event.
///
/// Work that awaits ends in this run. Without this run, the next event might abandon the work: after a freeze of the
/// process, the deadline for that may be over, too.
#[derive(Debug, Default)]
pub(crate) struct DroppedWork {
    has_to_run: bool,
}

impl DroppedWork {
    /// Drops the work of a term. The work ends when the runtime next runs it.
    pub(crate) fn drop_work(&mut self, open: &OpenTerm) {
        open.drop_work();
        self.has_to_run = true;
    }

    /// Waits until dropped work has run once.
    pub(crate) async fn wait_until_run(&mut self) {
        if std::mem::take(&mut self.has_to_run) {
            // A task that is spawned now runs after the dropped one. A yield could end earlier, if something else wakes this task.
            let _ = tokio::spawn(std::future::ready(())).await;
        }
    }
}
