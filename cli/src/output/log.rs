//! The log, on standard error.

use std::sync::{Arc, Mutex, PoisonError};

use leaderelection::clock::{Clock as _, SystemClock};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;

use super::line::{Fields, Line, Origin};
use super::log_dedup::LogDedup;
use super::stderr::Stderr;

/// The names of the project's crates begin with one of these words.
const OURS: [&str; 2] = ["leaderelection", "leaderelect"];

/// The log of this process.
#[derive(Clone, Debug)]
pub(super) struct Log {
    stderr: Stderr,
    damping: Arc<Mutex<LogDedup>>,
}

impl Log {
    /// Installs the log. RUST_LOG overrides `level`.
    pub(super) fn install(level: Level, stderr: Stderr) -> Self {
        let log = Self { stderr, damping: Arc::default() };
        let wanted: Option<Targets> = std::env::var("RUST_LOG").ok().and_then(|wanted| wanted.parse().ok());
        let ours = || Targets::new().with_targets(OURS.map(|name| (name, level)));
        let layer = log.clone().with_filter(wanted.unwrap_or_else(ours));
        tracing_subscriber::registry().with(layer).init();
        log
    }

    /// Writes the last counts of what has repeated.
    pub(super) fn end(&self) {
        let lines = self.with_damping(|damping| damping.forget_all(SystemClock.now()));
        self.write(&lines);
    }

    fn with_damping<T>(&self, work: impl FnOnce(&mut LogDedup) -> T) -> T {
        work(&mut self.damping.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn write(&self, lines: &[Line]) {
        lines.iter().for_each(|line| self.stderr.line(line));
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Log {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(fields);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<Fields>()
        {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let message = fields.take_message();
        let mut around = Fields::default();
        for span in context.event_scope(event).into_iter().flatten() {
            if let Some(fields) = span.extensions().get::<Fields>() {
                around.0.extend(fields.0.iter().cloned());
            }
        }
        let target = event.metadata().target();
        let target = (!OURS.iter().any(|name| target.starts_with(name))).then(|| target.to_owned());
        let level = *event.metadata().level();
        let line = Line { level, message, fields, origin: Origin::Log { target, around } };
        let now = SystemClock.now();
        let lines = self.with_damping(|damping| {
            if level <= Level::WARN {
                return damping.on(line, now);
            }
            let mut lines = damping.forget_old(now);
            lines.push(line);
            lines
        });
        self.write(&lines);
    }
}
