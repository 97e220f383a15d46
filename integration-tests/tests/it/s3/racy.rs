//! The probe on a server that checks a condition first and writes a moment later, with the real client.

use std::time::Duration;

use leaderelection_conformance::{ProbeConfig, Verdict, probe};
use leaderelection_integration_tests::servers::racy_s3::RacyS3;

use super::{config, store};

/// On an idle machine, twenty probes of twenty find a moment of 0.1 ms. On a busy one, a second writer can be later.
const MOMENT: Duration = Duration::from_millis(2);

#[tokio::test(flavor = "multi_thread")]
async fn a_moment_between_check_and_write_is_found_by_each_probe() {
    for number in 1..=5 {
        let server = RacyS3::start(MOMENT);
        let report = probe(store(config(&server.url())), &ProbeConfig::new()).await;
        assert_eq!(report.verdict(), Verdict::Unfit, "probe {number}: {report}");
    }
}
