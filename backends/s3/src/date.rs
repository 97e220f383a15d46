//! The `Date` of an answer, which the SDK's outputs leave out.

use std::sync::{Arc, OnceLock};

use aws_sdk_s3::config::interceptors::BeforeDeserializationInterceptorContextRef;
use aws_sdk_s3::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_s3::error::BoxError;

/// An interceptor that keeps the `Date` of the one answer to its request.
#[derive(Clone, Debug, Default)]
pub(crate) struct AnswerDate(Arc<OnceLock<String>>);

impl AnswerDate {
    /// The header; `None` before the answer, or if the answer has no such header.
    pub(crate) fn header(&self) -> Option<&String> {
        self.0.get()
    }
}

impl Intercept for AnswerDate {
    fn name(&self) -> &'static str {
        "AnswerDate"
    }

    fn read_before_deserialization(
        &self,
        context: &BeforeDeserializationInterceptorContextRef<'_>,
        _components: &RuntimeComponents,
        _config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        if let Some(date) = context.response().headers().get("date") {
            // A request has one answer, because the client's retries are off.
            let _ = self.0.set(date.to_owned());
        }
        Ok(())
    }
}
