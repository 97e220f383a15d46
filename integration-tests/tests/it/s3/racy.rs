//! The probe on a server that checks a condition first and writes a moment later, with the real client.

use std::time::Duration;

use leaderelection_conformance::{ProbeConfig, Verdict, probe};
use leaderelection_integration_tests::servers::racy_s3::RacyS3;

use super::{config, store};

#[tokio::test(flavor = "multi_thread")]
async fn a_moment_between_check_and_write_is_found_by_twenty_probes_of_twenty() {
    for number in 1..=20 {
        // The sleep takes half as long again.
        let server = RacyS3::start(Duration::from_micros(100));
        let report = probe(store(config(&server.url())), &ProbeConfig::new()).await;
        assert_eq!(report.verdict(), Verdict::Unfit, "probe {number}: {report}");
    }
}
