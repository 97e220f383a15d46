//! A build without a provider of TLS, in which the program makes the client of the AWS SDK.

use aws_sdk_s3::config::SharedHttpClient;
use leaderelection::{StoreError, StoreErrorKind};
use leaderelection_store_support::ca::Authorities;

/// Fails, because no client can be made.
pub(crate) fn http_client(_authorities: Option<&Authorities>) -> Result<Option<SharedHttpClient>, StoreError> {
    let advice = "TLS has no provider: enable the feature aws-lc-rs or ring of leaderelection-s3, or make the client of the AWS SDK \
                  yourself, and pass it to S3Store::new";
    Err(StoreError::new(StoreErrorKind::Fatal, advice))
}
