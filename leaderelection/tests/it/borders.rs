//! Numbers and durations at the ends of their ranges, wherever somebody else may write one.

use std::time::Duration;

use leaderelection::LeaderElectionRecord;
use leaderelection::timings::parse_duration;
use leaderelection_test_support::borders::{numbers, parts};

/// A record with every field in which a number stands.
const RECORD: &str = r#"{"holderIdentity":"a","leaseDuration":"1m30s","leaseDurationSeconds":90,"acquireTime":"2026-02-02T10:15:30.000000Z","leaderTransitions":7,"peer":{"url":"https://a","term":7,"retryPeriodMillis":2000},"rank":{"rank":1,"term":7},"takeBacks":2,"completedJobs":[7],"zone":[1]}"#;

#[test]
fn sums_of_durations_are_exact_or_refused() {
    let parts: Vec<_> = parts().map(|text| (parse_duration(&text).ok(), text)).collect();
    for (first, one) in &parts {
        for (second, other) in &parts {
            let text = format!("{one}{other}");
            let sum = first.zip(*second).and_then(|(first, second)| first.checked_add(second));
            assert_eq!(parse_duration(&text).ok(), sum, "{text}");
        }
    }
}

#[test]
fn numbers_in_a_record_are_kept_or_refused() {
    let is_digit = |at: usize| RECORD.as_bytes().get(at).is_some_and(u8::is_ascii_digit);
    let starts: Vec<usize> = (0..RECORD.len()).filter(|&at| is_digit(at) && !is_digit(at - 1)).collect();
    assert!(starts.len() > 15, "{starts:?}");
    let mut kept = 0;
    for start in starts {
        let end = (start..).find(|&at| !is_digit(at)).unwrap_or(RECORD.len());
        for number in numbers() {
            let body = format!("{}{number}{}", &RECORD[..start], &RECORD[end..]);
            let Ok(record) = LeaderElectionRecord::from_json(body.as_bytes(), Duration::MAX) else { continue };
            let _ = (record.completed_jobs(), record.leader_address(), record.leader_retry_period());
            let again = LeaderElectionRecord::from_json(&record.to_json(), Duration::MAX);
            assert_eq!(again, Ok(record), "{body}");
            kept += 1;
        }
    }
    assert!(kept > 100, "{kept} records were read");
}
