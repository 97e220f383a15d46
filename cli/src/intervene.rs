//! The common part of `release` and `transfer`: the output before and after the change.

use std::io::Write as _;
use std::time::Duration;

use leaderelection::admin::{AdminError, Intervention};
use leaderelection::{LeaderElectionRecord, ObjectStoreBasedLock, TimeLimit, with_causes};
use serde_json::json;

use crate::exit::{Exit, Failure};
use crate::lock::LockUrl;
use crate::output::{BOLD, Format, Output};
use crate::plain::plain;
use crate::view::View;

/// Limits an operation on the lock, all its attempts included, to this time.
pub(crate) async fn within<T, E: Into<Failure>>(
    lock: &LockUrl,
    operation: impl Future<Output = Result<T, E>>,
) -> Result<T, Failure> {
    const PATIENCE: Duration = Duration::from_secs(30);
    let limit = TimeLimit::new(PATIENCE).of_setting("for all attempts together");
    match limit.answer(operation).await {
        Ok(result) => result.map_err(Into::into),
        Err(silence) => Err(silence.of(&lock.to_string()).into()),
    }
}

/// Reads the record on which the operator decides.
pub(crate) async fn look(url: &LockUrl, lock: &impl ObjectStoreBasedLock) -> Result<LeaderElectionRecord, Failure> {
    match within(url, lock.get()).await? {
        Some(found) => Ok(found.record),
        None => Err(AdminError::Missing { lock: url.to_string() }.into()),
    }
}

/// Prints the record before and after the change.
pub(crate) fn print(
    lock: &LockUrl,
    intervention: &Intervention,
    next: &str,
    format: Format,
    output: &Output,
) -> Result<(), Failure> {
    let [before, after] = [&intervention.before, &intervention.after].map(|record| View::of_record(lock, record));
    if format == Format::Json {
        return output.json(&json!({ "before": before, "after": after, "changed": before != after }));
    }
    let mut out = output.stdout();
    writeln!(out, "{BOLD}{lock}{BOLD:#}")?;
    writeln!(out, "  before  {}", plain(in_short(&before)))?;
    writeln!(out, "  after   {}", plain(in_short(&after)))?;
    writeln!(out, "{}", plain(if before == after { "nothing was changed" } else { next }))?;
    Ok(out.flush()?)
}

fn in_short(view: &View) -> String {
    let token = view.fencing_token.unwrap_or_default();
    let leader = match &view.holder {
        Some(holder) => format!("{holder} leads, fencing token {token}"),
        None => format!("nobody leads, last fencing token {token}"),
    };
    match &view.preferred_holder {
        Some(next) => format!("{leader}, to be handed over to {next}"),
        None => leader,
    }
}

impl From<AdminError> for Failure {
    fn from(error: AdminError) -> Self {
        match error {
            AdminError::Lock(error) => error.into(),
            AdminError::Contended { .. } | AdminError::MovedOn { .. } => Self::new(Exit::Held, with_causes(&error)),
            AdminError::Unknown { .. } => Self::new(Exit::Unavailable, with_causes(&error)),
            _ => Self::usage(with_causes(&error)),
        }
    }
}
