//! A client for the S3 servers of the tests.

use aws_sdk_s3::Client;
use aws_sdk_s3::config::{
    BehaviorVersion, Config, Credentials, Region, RequestChecksumCalculation, ResponseChecksumValidation,
};

/// The region in which all S3 servers of the tests believe to be.
pub(super) const REGION: &str = "us-east-1";

/// Returns a client that connects to `url`.
pub(super) fn new(url: &str, credentials: Credentials) -> Client {
    Client::from_conf(
        Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new(REGION))
            .endpoint_url(url)
            .force_path_style(true)
            .request_checksum_calculation(RequestChecksumCalculation::WhenRequired)
            .response_checksum_validation(ResponseChecksumValidation::WhenRequired)
            .credentials_provider(credentials)
            .build(),
    )
}
