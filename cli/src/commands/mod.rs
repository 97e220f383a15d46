//! The subcommands: each has a file of its own, with its arguments, or a folder beside it.

pub(crate) mod completions;
pub(crate) mod dashboard;
pub(crate) mod health;
pub(crate) mod history;
pub(crate) mod intervene;
#[cfg(feature = "lease-api")]
pub(crate) mod lease_api;
pub(crate) mod list;
pub(crate) mod man;
#[cfg(unix)]
pub(crate) mod notify;
pub(crate) mod probe;
pub(crate) mod release;
#[cfg(unix)]
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod status;
pub(crate) mod transfer;
pub(crate) mod version;
pub(crate) mod watch;
