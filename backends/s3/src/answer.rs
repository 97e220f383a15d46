//! The edges of a request and its answer that the SDK leaves to its users.

use aws_sdk_s3::config::interceptors::{
    BeforeDeserializationInterceptorContextMut, BeforeTransmitInterceptorContextMut,
};
use aws_sdk_s3::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_s3::error::BoxError;
use aws_sdk_s3::primitives::SdkBody;
use futures_util::TryStreamExt as _;
use http_body::Frame;
use http_body_util::{BodyDataStream, StreamBody};
use leaderelection_store_support::request::{USER_AGENT, beginning};

/// An interceptor that names this library in requests, and that limits the bodies of answers.
#[derive(Debug)]
pub(crate) struct Edges;

impl Intercept for Edges {
    fn name(&self) -> &'static str {
        "Edges"
    }

    fn modify_before_transmit(
        &self,
        context: &mut BeforeTransmitInterceptorContextMut<'_>,
        _components: &RuntimeComponents,
        _config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        // No signature covers this header.
        let headers = context.request_mut().headers_mut();
        let others = headers.get("user-agent").unwrap_or_default();
        let all = format!("{others} {USER_AGENT}");
        headers.insert("user-agent", all.trim_start().to_owned());
        Ok(())
    }

    fn modify_before_deserialization(
        &self,
        context: &mut BeforeDeserializationInterceptorContextMut<'_>,
        _components: &RuntimeComponents,
        _config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let response = context.response_mut();
        let limit = beginning::limit(response.status().is_success());
        let body = response.body_mut();
        // The length that an answer announces is the most that is received of it.
        if body.content_length().is_none_or(|length| length > limit as u64) {
            let whole = BodyDataStream::new(std::mem::replace(body, SdkBody::taken()));
            *body = SdkBody::from_body_1_x(StreamBody::new(beginning::of(whole, limit).map_ok(Frame::data)));
        }
        Ok(())
    }
}
