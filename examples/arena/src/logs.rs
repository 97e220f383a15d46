//! The logs of the programs.

use std::io::IsTerminal as _;

use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer as _, fmt};

/// Logs to standard error the events that `RUST_LOG` selects. The default is a selection for operators.
pub fn to_stderr() {
    let wanted = std::env::var("RUST_LOG").ok();
    let filter = wanted.and_then(|wanted| wanted.parse().ok());
    let filter = filter.unwrap_or_else(|| Targets::new().with_default(tracing::Level::INFO));
    tracing_subscriber::registry()
        .with(fmt::layer().with_ansi(std::io::stderr().is_terminal()).with_writer(std::io::stderr).with_filter(filter))
        .init();
}
