//! Timings as a value, and as text in a configuration file.

use std::time::Duration;

use leaderelection::{LeaderCallbacks, LeaderElectionConfig, MemoryLock, MemoryStore, Timings};

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn read(text: &str) -> Result<Timings, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

#[test]
fn the_default_is_client_gos() {
    let timings = Timings::default();
    assert_eq!(Timings::new(millis(15_000), millis(10_000), millis(2_000)), Ok(timings));
    assert_eq!(timings.request_timeout(), millis(2_500));
    let lock = MemoryLock::new(MemoryStore::new(), "lock", "a");
    let config = LeaderElectionConfig::builder(lock, LeaderCallbacks::new());
    assert_eq!(config.clone().build().unwrap().timings(), timings);
    let other = Timings::new(millis(900), millis(600), millis(100)).unwrap();
    assert_eq!(config.timings(other).build().unwrap().timings(), other);
}

#[test]
fn a_value_cannot_be_wrong() {
    let error = Timings::new(millis(5_000), millis(10_000), millis(2_000)).unwrap_err();
    assert_eq!(error.to_string(), "lease_duration (5s) must be greater than renew_deadline (10s)");
    let error = Timings::default().with_request_timeout(millis(5_000)).unwrap_err();
    assert_eq!(error.to_string(), "request_timeout (5s) must be less than half of renew_deadline (10s)");
    assert_eq!(error.field(), "request_timeout");
}

#[test]
fn what_is_written_is_read_back() {
    let timings = Timings::new(millis(90_000), millis(60_500), millis(400)).unwrap();
    let text = serde_json::to_string(&timings).unwrap();
    assert_eq!(
        text,
        r#"{"lease_duration":"1m 30s","renew_deadline":"1m 500ms","retry_period":"400ms","request_timeout":"15s 125ms"}"#
    );
    assert_eq!(read(&text), Ok(timings));
}

#[test]
fn what_is_left_out_has_its_default() {
    assert_eq!(read("{}"), Ok(Timings::default()));
    let timings = read(r#"{ "lease_duration": "40s", "renew_deadline": "20s" }"#).unwrap();
    assert_eq!(timings, Timings::new(millis(40_000), millis(20_000), millis(2_000)).unwrap());
}

#[test]
fn wrong_text_is_told_by_field_and_value() {
    for (text, problem) in [
        (r#"{"lease_duration":15}"#, "lease_duration (15) is not a duration: "),
        (r#"{"retry_period":-2}"#, "retry_period (-2) is not a duration: "),
        (r#"{"renew_deadline":"10 parsecs"}"#, "renew_deadline (10 parsecs) is not a duration: "),
        (r#"{"request_timeout":""}"#, "request_timeout () is not a duration: "),
        (r#"{"lease_duration":"5s"}"#, "lease_duration (5s) must be greater than renew_deadline (10s)"),
        (r#"{"lease_duration":true}"#, "expected a duration such as \"15s\""),
        (r#"{"lease":"15s"}"#, "unknown field `lease`"),
    ] {
        let error = read(text).unwrap_err();
        assert!(error.contains(problem), "{text}: {error}");
    }
    let error = read(r#"{"lease_duration":15}"#).unwrap_err();
    assert!(error.contains("write a number and a unit, such as 15s or 400ms"), "{error}");
}
