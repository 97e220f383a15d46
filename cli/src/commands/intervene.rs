//! The common part of `release` and `transfer`: the output before and after the change.

pub(crate) mod confirm;

use std::io::Write as _;
use std::time::Duration;

use leaderelection::LeaderElectionRecord;
use leaderelection::admin::{AdminError, Intervention, ObservedTarget, Target};
use leaderelection::causes::with_causes;
use leaderelection::lock::TimeLimit;
use serde_json::json;

use crate::exit::{Exit, Failure};
use crate::lock::OperatorLock;
use crate::lock::view::{SessionObject, View};
use crate::output::escape::escape;
use crate::output::{BOLD, Format, Output};

/// Limits an operation on the lock, all its attempts included, to this time.
pub(crate) async fn within<T, E: Into<Failure>>(
    lock: &impl ToString,
    operation: impl Future<Output = Result<T, E>>,
) -> Result<T, Failure> {
    const PATIENCE: Duration = Duration::from_secs(30);
    let limit = TimeLimit::new(PATIENCE).of_setting("for all attempts");
    match limit.answer(operation).await {
        Ok(result) => result.map_err(Into::into),
        Err(silence) => Err(silence.of(&lock.to_string()).into()),
    }
}

/// The state on which the operator decides.
#[derive(Debug)]
pub(crate) struct LockState {
    pub(crate) record: LeaderElectionRecord,
    pub(crate) observed: ObservedTarget,
}

impl LockState {
    /// The ID of the session that holds the lock; `None` if the lock has a lease of its own.
    pub(crate) fn session(&self) -> Option<&str> {
        self.observed.session.as_ref().map(|session| session.id.as_str())
    }

    /// The holder, if it writes no ids: a candidate of client-go or of another library. Such a leader knows neither requests
    /// to hand over nor forced releases.
    pub(crate) fn foreign_holder(&self) -> Option<&str> {
        self.observed.holder().filter(|_| self.record.write_id.is_none())
    }

    /// The lease on which the leader depends.
    pub(crate) fn lease(&self) -> Duration {
        let session = self.observed.session.as_ref().and_then(|session| session.found.as_ref());
        session.map_or(self.record.lease_duration, |found| found.record.lease_duration)
    }

    /// The view of a record of the lock, with what is known of the session that the record names.
    fn view_of(&self, lock: &OperatorLock, record: &LeaderElectionRecord) -> View {
        let view = View::of_record(lock, record).named(lock);
        match &self.observed.session {
            Some(session) if record.session.as_ref() == Some(&session.id) => {
                view.with_session(SessionObject::of(&lock.at(session.target.key()), session.found.as_ref()))
            }
            _ => view,
        }
    }
}

/// Reads the lock, and the session that holds it.
pub(crate) async fn read(url: &OperatorLock, target: &Target) -> Result<LockState, Failure> {
    let observed = within(url, target.read()).await?;
    match &observed.found {
        Some(found) => Ok(LockState { record: found.record.clone(), observed }),
        None => Err(AdminError::Missing { lock: url.to_string() }.into()),
    }
}

/// The time after which a leader through a session polls its locks, unless its program sets another.
pub(crate) const SCAN_INTERVAL: &str = "30s";

/// Prints the record before and after the change.
pub(crate) fn print(
    lock: &OperatorLock,
    seen: &LockState,
    intervention: &Intervention,
    next: &str,
    format: Format,
    output: &Output,
) -> Result<(), Failure> {
    let [before, after] = [&intervention.before, &intervention.after].map(|record| seen.view_of(lock, record));
    if format == Format::Json {
        return output.json(&json!({ "before": before, "after": after, "changed": before != after }));
    }
    let mut out = output.stdout();
    writeln!(out, "{BOLD}{lock}{BOLD:#}")?;
    writeln!(out, "  before  {}", escape(before.with_term()))?;
    writeln!(out, "  after   {}", escape(after.with_term()))?;
    writeln!(out, "{}", escape(if before == after { "nothing was changed" } else { next }))?;
    Ok(out.flush()?)
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
