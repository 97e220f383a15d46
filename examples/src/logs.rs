//! Where the examples' logs go.

use tracing_subscriber::EnvFilter;

/// Logs to standard error what `RUST_LOG` asks for; by default what an operator wants to know.
pub fn to_stderr() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
}
