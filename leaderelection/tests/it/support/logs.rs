//! The log of this thread.

use std::fmt::{Debug, Write};
use std::sync::{Arc, LazyLock, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Dispatch, Event, Level, Metadata, Subscriber};

/// The warnings of `code`, each with its fields, and what it returned.
pub(crate) fn warnings_of<T>(code: impl FnOnce() -> T) -> (Vec<String>, T) {
    events_of(Level::WARN, code)
}

/// The events of `code` at `level`, each with its fields, and what it returned.
fn events_of<T>(level: Level, code: impl FnOnce() -> T) -> (Vec<String>, T) {
    // While there is but one subscriber, whichever thread comes to an event first decides for all threads
    // whether anybody wants it, by its own subscriber, and other tests have none.
    static ANOTHER: LazyLock<Dispatch> =
        LazyLock::new(|| Events { level: Level::TRACE, events: Arc::default() }.into());
    LazyLock::force(&ANOTHER);
    let events = Arc::default();
    let output = tracing::subscriber::with_default(Events { level, events: Arc::clone(&events) }, code);
    let events = events.lock().unwrap().clone();
    (events, output)
}

/// Returns the events that are logged at `level` while `scenario` runs on paused time.
pub(crate) fn logged(level: Level, scenario: impl AsyncFnOnce()) -> Vec<String> {
    let run = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(scenario());
    };
    let (events, ()) = events_of(level, run);
    events.into_iter().map(|event| event.trim_end().to_owned()).collect()
}

struct Events {
    level: Level,
    events: Arc<Mutex<Vec<String>>>,
}

impl Subscriber for Events {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        // A span that is not enabled would hide what is in it.
        metadata.is_span() || *metadata.level() == self.level
    }

    fn new_span(&self, _span: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields(String::new());
        event.record(&mut fields);
        self.events.lock().unwrap().push(fields.0);
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
