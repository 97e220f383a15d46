//! The server that a client would send its requests to, as the client resolves it.

use std::time::Duration;

use aws_sdk_s3::Client;
use aws_sdk_s3::config::{Builder, Credentials};
use aws_sdk_s3::error::SdkError;
use aws_sdk_s3::presigning::PresigningConfig;
use leaderelection::{StoreError, StoreErrorKind};
use leaderelection_store_support::request::{Words, failed};

use crate::environment;

const KEY: &str = "key";

/// Lets the client sign a request for somebody else, and takes the address from it. Nothing is sent.
pub(crate) async fn resolved(client: &Client, bucket: &str) -> Result<String, StoreError> {
    // The client looks for credentials before it resolves the address. Nobody gets what these sign.
    let credentials = Credentials::new("none", "none", None, None, "none");
    let without_session = Builder::new().credentials_provider(credentials).disable_s3_express_session_auth(true);
    let request = client.head_object().bucket(bucket).key(KEY).customize().config_override(without_session);
    let signed = match PresigningConfig::expires_in(Duration::from_secs(1)) {
        Ok(lifetime) => request.presigned(lifetime).await,
        Err(error) => Err(SdkError::construction_failure(error)),
    };
    let signed = signed.map_err(|error| {
        let advice = match client.config().region() {
            Some(_) => "the endpoint cannot be resolved; check region and endpoint".to_owned(),
            None => environment::no_region(),
        };
        failed(&format!("s3://{bucket}"), (StoreErrorKind::Fatal, advice), Words::of_error(&error))
    })?;
    let address = signed.uri().split('?').next().unwrap_or_default();
    Ok(address.trim_end_matches(KEY).trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod tests {
    use aws_sdk_s3::config::{BehaviorVersion, Config, Region};

    use super::*;

    fn client(change: impl FnOnce(Builder) -> Builder) -> Client {
        // No credentials, and no HTTP client that could send anything.
        let config = Config::builder().behavior_version(BehaviorVersion::latest()).region(Region::new("cn-north-1"));
        Client::from_conf(change(config).build())
    }

    #[tokio::test]
    async fn the_client_knows_where_it_sends_its_requests() {
        let addressed = |client| async move { resolved(&client, "bucket").await.unwrap() };
        assert_eq!(addressed(client(|config| config)).await, "https://bucket.s3.cn-north-1.amazonaws.com.cn");
        let other = client(|config| config.endpoint_url("http://127.0.0.1:1").force_path_style(true));
        assert_eq!(addressed(other).await, "http://127.0.0.1:1/bucket");
    }

    /// The SDK knows the hosts, and this store adds none.
    #[tokio::test]
    async fn other_clouds_and_other_networks_have_their_own_hosts() {
        type Change = fn(Builder) -> Builder;
        const DIRECTORY: &str = "locks--use1-az4--x-s3";
        let vpc: Change = |config| {
            config
                .region(Region::new("us-east-1"))
                .endpoint_url("https://bucket.vpce-1a2b-3c4d.s3.us-east-1.vpce.amazonaws.com")
        };
        let cases: [(&str, Change, &str); 9] = [
            ("bucket", |config| config.region(Region::new("us-gov-west-1")), "bucket.s3.us-gov-west-1.amazonaws.com"),
            ("bucket", |config| config.region(Region::new("eusc-de-east-1")), "bucket.s3.eusc-de-east-1.amazonaws.eu"),
            ("bucket", |config| config.region(Region::new("us-iso-east-1")), "bucket.s3.us-iso-east-1.c2s.ic.gov"),
            (
                "bucket",
                |config| config.region(Region::new("us-east-1")).use_fips(true),
                "bucket.s3-fips.us-east-1.amazonaws.com",
            ),
            (
                "bucket",
                |config| config.region(Region::new("eu-west-1")).use_dual_stack(true),
                "bucket.s3.dualstack.eu-west-1.amazonaws.com",
            ),
            (
                "bucket",
                |config| config.region(Region::new("us-east-1")).use_fips(true).use_dual_stack(true),
                "bucket.s3-fips.dualstack.us-east-1.amazonaws.com",
            ),
            ("locks", vpc, "locks.bucket.vpce-1a2b-3c4d.s3.us-east-1.vpce.amazonaws.com"),
            (
                DIRECTORY,
                |config| config.region(Region::new("us-east-1")),
                "locks--use1-az4--x-s3.s3express-use1-az4.us-east-1.amazonaws.com",
            ),
            (
                DIRECTORY,
                |config| config.region(Region::new("us-east-1")).use_fips(true).use_dual_stack(true),
                "locks--use1-az4--x-s3.s3express-fips-use1-az4.dualstack.us-east-1.amazonaws.com",
            ),
        ];
        for (bucket, change, host) in cases {
            assert_eq!(resolved(&client(change), bucket).await.unwrap(), format!("https://{host}"));
        }
    }

    #[tokio::test]
    async fn what_cannot_be_resolved_says_what_to_check() {
        let error = resolved(&client(|config| config.region(Region::new("a b"))), "bucket").await.unwrap_err();
        assert_eq!(error.to_string(), "s3://bucket: the endpoint cannot be resolved; check region and endpoint");
    }
}
