//! Warnings about settings that are allowed but may cause harm.

use std::time::Duration;

/// A setting that is allowed but may cause harm. An elector logs each warning once, when it first runs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigWarning {
    /// The pause between renewals is shorter than the store accepts between two writes.
    #[error(
        "retry_period ({retry_period:?}) is shorter than the store's min_write_interval ({min_write_interval:?}), and \
         the store refuses writes this close together; use a longer retry_period"
    )]
    WritesTooClose {
        /// The pause between two renewals.
        retry_period: Duration,
        /// The shortest pause between two writes that the store accepts.
        min_write_interval: Duration,
    },
    /// A single slow renewal ends a term, because the renew deadline leaves no time for another.
    #[error(
        "retry_period ({retry_period:?}) and request_timeout ({request_timeout:?}) together are not less than \
         renew_deadline ({renew_deadline:?}), so that a single slow request would end a term; use a longer \
         renew_deadline, or a shorter retry_period or request_timeout"
    )]
    SingleTry {
        /// The pause between two renewals.
        retry_period: Duration,
        /// The longest time that one request may take.
        request_timeout: Duration,
        /// How long one renewal keeps leadership.
        renew_deadline: Duration,
    },
}

impl ConfigWarning {
    pub(crate) fn log(&self) {
        match self {
            Self::WritesTooClose { retry_period, min_write_interval } => tracing::warn!(
                ?retry_period,
                ?min_write_interval,
                "the store refuses writes this close together; use a longer retry_period"
            ),
            Self::SingleTry { retry_period, request_timeout, renew_deadline } => tracing::warn!(
                ?retry_period,
                ?request_timeout,
                ?renew_deadline,
                "a single slow request would end a term, because renew_deadline leaves no time for another; use a \
                 longer renew_deadline, or a shorter retry_period or request_timeout"
            ),
        }
    }
}
