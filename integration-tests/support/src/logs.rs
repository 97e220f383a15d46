//! The log of this thread.

use std::fmt::{Debug, Write};
use std::sync::{Arc, LazyLock, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Dispatch, Event, Level, Metadata, Subscriber};

/// Returns the warnings of `code`, each with its fields, and what it returned.
pub fn warnings_of<T>(code: impl FnOnce() -> T) -> (Vec<String>, T) {
    events_of(Some(Level::WARN), code)
}

/// Returns everything that `code` logs, at every level, with the fields of spans.
pub fn everything_of(code: impl FnOnce()) -> String {
    events_of(None, code).0.join("\n")
}

/// Returns the events that are logged at `level` while `scenario` runs in simulated time.
#[cfg(feature = "paused")]
pub fn logged(level: Level, scenario: impl AsyncFnOnce()) -> Vec<String> {
    let run = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(scenario());
    };
    let (events, ()) = events_of(Some(level), run);
    events.into_iter().map(|event| event.trim_end().to_owned()).collect()
}

/// The events of `code`, each with its fields, and what it returned. `None` is every level, and spans too.
fn events_of<T>(level: Option<Level>, code: impl FnOnce() -> T) -> (Vec<String>, T) {
    with_another_subscriber();
    let events = Arc::default();
    let output = tracing::subscriber::with_default(Events { level, events: Arc::clone(&events) }, code);
    let events = events.lock().unwrap().clone();
    (events, output)
}

/// Makes sure that there are two subscribers. While there is but one, whichever thread comes to an event first decides
/// for all threads whether anybody wants it, by its own subscriber, and other tests have none.
pub(crate) fn with_another_subscriber() {
    static ANOTHER: LazyLock<Dispatch> = LazyLock::new(|| Events { level: None, events: Arc::default() }.into());
    LazyLock::force(&ANOTHER);
}

struct Events {
    level: Option<Level>,
    events: Arc<Mutex<Vec<String>>>,
}

impl Events {
    fn note(&self, record: impl FnOnce(&mut Fields)) {
        let mut fields = Fields(String::new());
        record(&mut fields);
        self.events.lock().unwrap().push(fields.0);
    }
}

impl Subscriber for Events {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        // A span that is not enabled would hide what is in it.
        metadata.is_span() || self.level.is_none_or(|level| *metadata.level() == level)
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        if self.level.is_none() {
            self.note(|fields| span.record(fields));
        }
        Id::from_u64(1)
    }

    fn record(&self, _span: &Id, values: &Record<'_>) {
        if self.level.is_none() {
            self.note(|fields| values.record(fields));
        }
    }

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, event: &Event<'_>) {
        self.note(|fields| event.record(fields));
    }

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}
}

struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = write!(self.0, "{field}={value:?} ");
    }
}
