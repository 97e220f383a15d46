//! Records: of a lock, of a session, and with any times.

use std::time::Duration;

use arbitrary::Unstructured;
use chrono::{DateTime, FixedOffset, SecondsFormat, Utc};
use leaderelection::LeaderElectionRecord;
use leaderelection::implement::MAX_BODY_BYTES;
use leaderelection::lock::{DEFAULT_MAX_LEASE_DURATION, RecordError};
use leaderelection::sessions::machine::read_record;

type Reader = fn(&[u8], Duration) -> Result<LeaderElectionRecord, RecordError>;

pub(super) fn record(body: &[u8]) {
    check(body, LeaderElectionRecord::from_json);
}

pub(super) fn session(body: &[u8]) {
    check(body, read_record);
    // Whatever a plain elector reads, a session reads alike.
    if let Ok(record) = LeaderElectionRecord::from_json(body, Duration::MAX) {
        assert_eq!(read_record(body, Duration::MAX).unwrap(), record);
    }
}

fn check(body: &[u8], read: Reader) {
    let _ = read(body, DEFAULT_MAX_LEASE_DURATION);
    let record = match read(body, Duration::MAX) {
        Ok(record) => record,
        Err(error) => {
            assert!(error.to_string().chars().count() < 500, "an error repeats the body: {error}");
            return;
        }
    };
    let _ = (record.completed_jobs(), record.leader_address(), record.leader_retry_period());
    let written = record.to_json();
    assert!(written.len() <= MAX_BODY_BYTES, "{} bytes", written.len());
    let again = read(&written, Duration::MAX).unwrap();
    assert_eq!(again.to_json(), written);
    // A record near the limit may lose unknown fields.
    if body.len() < MAX_BODY_BYTES / 2 {
        assert_eq!(again, record);
    }
}

/// A time in a record is written as chrono writes it, and read wherever it is said.
pub(super) fn times(input: &[u8]) {
    let mut input = Unstructured::new(input);
    let Ok((seconds, nanos, offset)) = input.arbitrary::<(i64, u32, i32)>() else { return };
    // Mostly within the years that can be written, and a little beyond.
    let seconds = seconds % 260_000_000_000;
    let Some(time) = DateTime::<Utc>::from_timestamp(seconds, nanos % 2_000_000_000) else { return };
    let mut record = LeaderElectionRecord::new("a", Duration::from_secs(15));
    record.renew_time = Some(time);
    let read = LeaderElectionRecord::from_json(&record.to_json(), DEFAULT_MAX_LEASE_DURATION).unwrap();
    let spelled = time.to_rfc3339_opts(SecondsFormat::Micros, true);
    let can_be_written = (0..=9_999).contains(&chrono::Datelike::year(&time));
    assert_eq!(
        read.renew_time,
        DateTime::parse_from_rfc3339(&spelled).ok().filter(|_| can_be_written).map(|t| t.to_utc())
    );
    if can_be_written {
        let body = String::from_utf8(record.to_json()).unwrap();
        assert!(body.contains(&format!("\"renewTime\":\"{spelled}\"")), "{body}");
    }
    let Some(zone) = FixedOffset::east_opt(offset % 86_400) else { return };
    let json = format!(
        r#"{{"holderIdentity":"a","leaseDuration":"15s","renewTime":"{}","leaderTransitions":1}}"#,
        time.with_timezone(&zone).to_rfc3339()
    );
    self::record(json.as_bytes());
}
