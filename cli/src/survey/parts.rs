//! The parts of a lock that is made of several, each by itself.

use std::fmt;
use std::time::Duration;

use futures_util::future::join_all;
use serde::Serialize;

use crate::args::timing::request_limit;
use crate::cause::Cause;
use crate::exit::Failure;
use crate::lock::status::LockStatus;
use crate::lock::view::View;
use crate::lock::{LockUrl, OperatorLock};

/// A part, as one read showed it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Part {
    #[serde(flatten)]
    pub(crate) view: View,
    /// `true` if the part shows the holder and the token of the whole lock.
    pub(crate) agrees: bool,
}

/// The next step if a part is away.
pub(crate) const AWAY: &str =
    "bring this part back, and do not change the URLs of the lock: without most of its parts, nobody can lead";

impl Part {
    pub(crate) fn is_away(&self) -> bool {
        matches!(self.view.status, LockStatus::Unknown(cause) if cause != Cause::NotARecord)
    }
}

/// Reads each part of a lock that was seen as a whole; none if the lock is not made of several.
pub(crate) async fn of(lock: &OperatorLock, whole: &View, request_timeout: Duration) -> Vec<Part> {
    let parts = lock.parts().iter().filter(|_| lock.parts().len() > 1);
    join_all(parts.map(async |part| {
        let view = read(part, request_timeout).await.unwrap_or_else(|failure| View::unreachable(part, &failure));
        let term = |view: &View| (view.status.names().0, view.holder.clone(), view.fencing_token);
        Part { agrees: term(&view) == term(whole), view }
    }))
    .await
}

/// Says in words how many parts may have hostile writers.
pub(crate) fn hostile(parts: usize) -> String {
    match parts {
        0 => "none: anyone who can write one part can cause two leaders".to_owned(),
        1 => "1 cannot cause a second leader".to_owned(),
        _ => format!("{parts} cannot cause a second leader"),
    }
}

async fn read(part: &LockUrl, request_timeout: Duration) -> Result<View, Failure> {
    let target = part.target(Some(request_limit(request_timeout))).await?;
    View::of_target(part, target.read().await)
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { view, agrees } = self;
        match agrees {
            true => write!(f, "{} agrees", view.lock),
            false if self.is_away() => write!(f, "{}: {}; {AWAY}", view.lock, view.with_problem()),
            false => write!(f, "{}: {}", view.lock, view.with_term()),
        }
    }
}
