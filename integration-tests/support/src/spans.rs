//! The spans of this thread.

use std::collections::BTreeMap;
use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// A span that was opened.
#[derive(Clone, Debug, Default)]
pub struct SeenSpan {
    /// The name of the span.
    pub name: &'static str,
    /// The name of the span that was current.
    pub parent: Option<&'static str>,
    /// The fields, with those that were recorded later.
    pub fields: BTreeMap<&'static str, String>,
    /// The events in the span, each with its fields.
    pub events: Vec<String>,
    /// No handle of the span is left.
    pub closed: bool,
}

/// Returns the spans that `scenario` opens while it runs in simulated time, in their order.
pub fn spans_of(scenario: impl AsyncFnOnce()) -> Vec<SeenSpan> {
    super::logs::with_another_subscriber();
    let seen = Arc::new(Mutex::new(Seen::default()));
    tracing::subscriber::with_default(Spans(Arc::clone(&seen)), || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(scenario());
    });
    let seen = seen.lock().unwrap();
    seen.spans.clone()
}

#[derive(Default)]
struct Seen {
    spans: Vec<SeenSpan>,
    /// The number of handles of each span.
    handles: Vec<u32>,
    entered: Vec<usize>,
}

struct Spans(Arc<Mutex<Seen>>);

fn index(id: &Id) -> usize {
    usize::try_from(id.into_u64()).unwrap() - 1
}

impl Subscriber for Spans {
    fn enabled(&self, _metadata: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut seen = self.0.lock().unwrap();
        let parent = seen.entered.last().map(|parent| seen.spans[*parent].name);
        let mut new = SeenSpan { name: span.metadata().name(), parent, ..SeenSpan::default() };
        span.record(&mut Fields(&mut new.fields));
        seen.spans.push(new);
        seen.handles.push(1);
        Id::from_u64(seen.spans.len() as u64)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        values.record(&mut Fields(&mut self.0.lock().unwrap().spans[index(span)].fields));
    }

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut seen = self.0.lock().unwrap();
        let Some(current) = seen.entered.last().copied() else { return };
        let mut fields = BTreeMap::new();
        event.record(&mut Fields(&mut fields));
        let text = fields.iter().fold(String::new(), |mut text, (name, value)| {
            let _ = write!(text, "{name}={value} ");
            text
        });
        seen.spans[current].events.push(text);
    }

    fn enter(&self, span: &Id) {
        self.0.lock().unwrap().entered.push(index(span));
    }

    fn exit(&self, span: &Id) {
        let mut seen = self.0.lock().unwrap();
        let last = seen.entered.iter().rposition(|entered| *entered == index(span));
        if let Some(last) = last {
            seen.entered.remove(last);
        }
    }

    fn clone_span(&self, span: &Id) -> Id {
        self.0.lock().unwrap().handles[index(span)] += 1;
        span.clone()
    }

    fn try_close(&self, span: Id) -> bool {
        let (mut seen, index) = (self.0.lock().unwrap(), index(&span));
        seen.handles[index] -= 1;
        seen.spans[index].closed = seen.handles[index] == 0;
        seen.spans[index].closed
    }
}

struct Fields<'a>(&'a mut BTreeMap<&'static str, String>);

impl Visit for Fields<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}
