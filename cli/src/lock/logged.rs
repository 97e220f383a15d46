//! The log of every request to a store. An elector logs its own requests.

use leaderelection::StoreErrorKind;
use leaderelection::causes::with_causes;

use super::observed::{Moment, Observer, Request};

#[derive(Debug)]
pub(super) struct Logged;

impl Observer for Logged {
    fn see(&self, request: &Request<'_>, moment: Moment<'_>) {
        let (took, Request { kind: request, object, .. }) = (request.took(), request);
        match moment {
            Moment::Sent => tracing::debug!(request, object, "sending a request"),
            Moment::Answered(Ok(())) => tracing::debug!(request, object, ?took, "the store answered"),
            Moment::Answered(Err(error)) if error.kind() == StoreErrorKind::Conflict => {
                tracing::debug!(request, object, ?took, error = with_causes(error), "the condition does not hold");
            }
            Moment::Answered(Err(error)) => {
                tracing::info!(request, object, ?took, error = with_causes(error), "a request failed");
            }
            Moment::GivenUp => tracing::info!(request, object, ?took, "a request was abandoned without an answer"),
        }
    }
}
