//! The log, on standard error.

use std::fmt::Debug;

use anstyle::Style;
use tracing::Level;
use tracing::field::Field;
use tracing_subscriber::field::MakeExt as _;
use tracing_subscriber::filter::{FilterExt as _, Targets};
use tracing_subscriber::fmt::format::{Writer, debug_fn};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer as _, fmt};

use super::damping::Damping;
use super::stderr::Stderr;
use crate::plain::plain;

/// Installs the log of this process. RUST_LOG overrides `level`.
pub(super) fn install(level: Level, colour: bool, stderr: Stderr) {
    let wanted: Option<Targets> = std::env::var("RUST_LOG").ok().and_then(|wanted| wanted.parse().ok());
    // The names of the project's other crates begin with the same word.
    let ours = || Targets::new().with_targets([("leaderelection", level), ("leaderelect", level)]);
    let log = fmt::layer()
        .with_ansi(colour)
        .fmt_fields(debug_fn(field).delimited(" "))
        .log_internal_errors(false)
        .with_writer(stderr.clone())
        .with_filter(wanted.unwrap_or_else(ours).and(Damping::new(stderr)));
    tracing_subscriber::registry().with(log).init();
}

/// Writes a field as `tracing_subscriber` does, but with every control character escaped.
fn field(writer: &mut Writer<'_>, field: &Field, value: &dyn Debug) -> std::fmt::Result {
    let value = format!("{value:?}");
    if field.name() == "message" {
        return write!(writer, "{}", plain(value));
    }
    let style = if writer.has_ansi_escapes() { Style::new().italic() } else { Style::new() };
    write!(writer, "{style}{field}{style:#}={}", plain(value))
}
