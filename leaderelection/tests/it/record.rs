//! The record's JSON: accepted forms, refused forms, and fields that must not get lost.

use std::time::Duration;

use leaderelection::LeaderElectionRecord;
use leaderelection::implement::MAX_BODY_BYTES;
use leaderelection::lock::{DEFAULT_MAX_LEASE_DURATION, HolderRank, LockParts, PeerAddress, RecordError};

const DESIGN: &str = r#"{"holderIdentity":"node-123","leaseDuration":"15s","acquireTime":"2026-02-02T10:15:30.000000Z","renewTime":"2026-02-02T10:15:30.000001Z","leaderTransitions":7,"writeId":"0198c0de"}"#;

fn parse(json: &str) -> Result<LeaderElectionRecord, RecordError> {
    LeaderElectionRecord::from_json(json.as_bytes(), DEFAULT_MAX_LEASE_DURATION)
}

fn with_lease(lease: &str) -> String {
    format!(r#"{{"holderIdentity":"a",{lease},"leaderTransitions":0}}"#)
}

fn refusal(json: &str) -> String {
    let error = parse(json).unwrap_err();
    error.to_string().strip_prefix("not a leader election record: ").unwrap().to_owned()
}

#[test]
fn the_documented_record_is_read_and_written_to_the_letter() {
    let record = parse(DESIGN).unwrap();
    assert_eq!(record.holder_identity, "node-123");
    assert_eq!(record.lease_duration, Duration::from_secs(15));
    assert_eq!(record.leader_transitions, 7);
    assert_eq!(String::from_utf8(record.to_json()).unwrap(), DESIGN);
}

#[test]
fn lease_durations_are_go_durations_or_whole_seconds() {
    for (lease, millis, written) in [
        (r#""leaseDuration":"15s""#, 15_000, "15s"),
        (r#""leaseDuration":"1m30s""#, 90_000, "1m30s"),
        (r#""leaseDuration":"1h0m0s""#, 3_600_000, "1h0m0s"),
        (r#""leaseDuration":"1500ms""#, 1_500, "1500ms"),
        (r#""leaseDuration":"1.5s""#, 1_500, "1500ms"),
        (r#""leaseDurationSeconds":15"#, 15_000, "15s"),
        (r#""leaseDuration":"15s","leaseDurationSeconds":15"#, 15_000, "15s"),
    ] {
        let record = parse(&with_lease(lease)).unwrap();
        assert_eq!(record.lease_duration, Duration::from_millis(millis), "{lease}");
        let json = String::from_utf8(record.to_json()).unwrap();
        assert!(json.contains(&format!(r#""leaseDuration":"{written}""#)), "{json}");
        assert_eq!(parse(&json).unwrap(), record);
    }
}

#[test]
fn the_history_of_a_lock_is_refused_as_such() {
    let problem = refusal(r#"{"terms":[]}"#);
    assert!(
        problem.contains("it is the history of another lock") && problem.contains("choose another name"),
        "{problem}"
    );
}

#[test]
fn absurd_lease_durations_are_refused_by_name_and_value() {
    for (lease, problem) in [
        (r#""leaseDuration":"0s""#, "leaseDuration: must not be zero"),
        (r#""leaseDuration":"-5s""#, "leaseDuration: \"-5s\" is negative"),
        (r#""leaseDuration":"25h""#, "leaseDuration: 25h0m0s is longer than the longest lease allowed, 24h0m0s"),
        (r#""leaseDurationSeconds":-1"#, "leaseDurationSeconds: -1 is negative"),
        (r#""leaseDurationSeconds":0"#, "leaseDurationSeconds: must not be zero"),
        (r#""leaseDuration":null"#, "leaseDuration: missing"),
        (
            r#""leaseDuration":"15s","leaseDurationSeconds":16"#,
            "leaseDuration: 15s contradicts leaseDurationSeconds 16",
        ),
    ] {
        assert_eq!(refusal(&with_lease(lease)), problem);
    }
    assert!(refusal(&with_lease(r#""leaseDuration":"soon""#)).starts_with("leaseDuration: \"soon\" is not a duration"));
    assert!(refusal(&with_lease(r#""leaseDuration":15"#)).starts_with("leaseDuration: invalid type"));
    assert!(parse(&with_lease(r#""leaseDuration":"24h""#)).is_ok());
    let longer = LeaderElectionRecord::from_json(
        with_lease(r#""leaseDuration":"25h""#).as_bytes(),
        Duration::from_secs(100_000),
    );
    assert!(longer.is_ok());
}

#[test]
fn what_is_not_a_record_is_refused() {
    for (json, field) in [
        ("", "body"),
        ("[]", "body"),
        ("{}", "holderIdentity"),
        ("\u{0}\u{1}", "body"),
        (r#"{"holderIdentity":"a","leaseDuration":"15s"}"#, "leaderTransitions"),
        (r#"{"holderIdentity":"a","leaseDuration":"15s","leaderTransitions":-1}"#, "leaderTransitions"),
        (r#"{"holderIdentity":"a","leaseDuration":"15s","leaderTransitions":1.5}"#, "leaderTransitions"),
        (r#"{"holderIdentity":"a","leaseDuration":"15s","leaderTransitions":9007199254740992}"#, "leaderTransitions"),
        (r#"{"holderIdentity":7,"leaseDuration":"15s","leaderTransitions":1}"#, "holderIdentity"),
        (r#"{"holderIdentity":"a","leaseDuration":"15s","leaderTransitions":1,"renewTime":"noon"}"#, "renewTime"),
        (r#"{"holderIdentity":"a","holderIdentity":"b","leaseDuration":"15s","leaderTransitions":1}"#, "body"),
        (r#"{"holderIdentity":"a","leaseDuration":"15s","leaderTransitions":1} trailing"#, "body"),
    ] {
        assert_eq!(parse(json).unwrap_err().field(), field, "{json}");
    }
    let largest = format!("{DESIGN}{}", " ".repeat(MAX_BODY_BYTES - DESIGN.len()));
    assert_eq!(parse(&largest), parse(DESIGN));
    let large = format!("{largest} ");
    assert!(refusal(&large).starts_with("body: 65"));
    assert!(refusal("[]").contains("expected a JSON object"), "{}", refusal("[]"));
    assert!(refusal(&"x".repeat(1_000)).len() < 200, "an error does not repeat a large body");
    let long = refusal(&with_lease(&format!(r#""leaseDuration":"{}""#, "x".repeat(61))));
    assert!(long.starts_with(&format!("leaseDuration: \"{}…\"", "x".repeat(60))), "{long}");
}

/// A sum of parts that fit, whose overflow once ended every program that read it.
#[test]
fn a_duration_that_overflows_is_refused_by_name() {
    let json = r#"{"holderIdentity":"x","leaseDuration":"18446744073709551615s1000ms","leaderTransitions":7}"#;
    assert!(refusal(json).starts_with(r#"leaseDuration: "18446744073709551615s1000ms" is not a duration"#));
    for limit in [Duration::ZERO, Duration::MAX] {
        assert_eq!(LeaderElectionRecord::from_json(json.as_bytes(), limit).unwrap_err().field(), "leaseDuration");
    }
}

#[test]
fn a_record_is_never_too_large_to_be_written() {
    let field = |name: &str, size: usize| format!(r#","{name}":"{}""#, "x".repeat(size));
    for (fields, left_out, kept) in [
        (field("large", 65_300), "large", "zone"),
        (field("large", 40_000) + &field("small", 25_300), "large", "small"),
        (field("completedJobs", 65_300), "xxx", "zone"),
    ] {
        let json = DESIGN.replace('}', &format!(r#"{fields},"zone":1}}"#));
        assert!(json.len() <= MAX_BODY_BYTES);
        let mut record = parse(&json).unwrap();
        record.holder_identity = "n".repeat(256);
        let written = record.to_json();
        assert!(written.len() <= MAX_BODY_BYTES, "{}", written.len());
        let again = LeaderElectionRecord::from_json(&written, DEFAULT_MAX_LEASE_DURATION).unwrap();
        assert_eq!((again.holder_identity.len(), again.leader_transitions), (256, 7));
        assert!(again.unknown.get(left_out).is_none_or(|value| value.len() <= 30_000), "{left_out}");
        assert!(again.unknown.get(kept).is_some(), "{kept}");
    }
}

#[test]
fn a_bad_element_of_the_list_of_jobs_hides_no_other() {
    let long = "x".repeat(257);
    for (list, jobs) in [
        (r#"["monday",7,null,{"a":[1]},"","tue\nsday","wednesday"]"#.to_owned(), &["monday", "wednesday"][..]),
        (format!(r#"["{long}","monday"]"#), &["monday"]),
        (r#"{"monday":true}"#.to_owned(), &[]),
        (r#""monday""#.to_owned(), &[]),
    ] {
        let record = parse(&DESIGN.replace(r#","writeId""#, &format!(r#","completedJobs":{list},"writeId""#))).unwrap();
        assert_eq!(record.completed_jobs(), jobs, "{list}");
    }
}

#[test]
fn client_gos_own_json_is_read() {
    let record = parse(
        r#"{"holderIdentity":"pod-1","leaseDurationSeconds":15,"acquireTime":"2026-02-02T10:15:30Z","renewTime":null,"leaderTransitions":3}"#,
    )
    .unwrap();
    assert_eq!((record.leader_transitions, record.renew_time, record.write_id), (3, None, None));
}

#[test]
fn times_that_nobody_could_read_back_are_neither_read_nor_written() {
    for time in ["9999-12-31T23:59:59-01:00", "0000-01-01T00:00:00+01:00"] {
        let error = refusal(&format!(
            r#"{{"holderIdentity":"a","leaseDuration":"15s","acquireTime":"{time}","leaderTransitions":0}}"#
        ));
        assert!(error.contains("acquireTime") && error.contains(time) && error.contains("9999"), "{error}");
    }
    // The wall clock of a broken machine.
    let mut record = LeaderElectionRecord::new("a", Duration::from_secs(15));
    record.renew_time = Some(chrono::DateTime::from_timestamp(300_000_000_000, 0).unwrap());
    record.acquire_time = Some(chrono::DateTime::UNIX_EPOCH);
    let read = LeaderElectionRecord::from_json(&record.to_json(), DEFAULT_MAX_LEASE_DURATION).unwrap();
    assert_eq!((read.renew_time, read.acquire_time), (None, record.acquire_time));
}

#[test]
fn a_released_lease_is_read_however_short_leases_must_be() {
    let shortest = Duration::from_millis(500);
    let released = LeaderElectionRecord::new("", Duration::from_secs(1));
    assert_eq!(LeaderElectionRecord::from_json(&released.to_json(), shortest).unwrap(), released);
    let held = LeaderElectionRecord::new("a", Duration::from_secs(1));
    assert!(LeaderElectionRecord::from_json(&held.to_json(), shortest).is_err());
}

#[test]
fn unknown_fields_are_kept_to_the_letter() {
    let json = DESIGN.replace(
        r#","writeId""#,
        r#","zone":{"b":1.10,"a":[1e400, 12345678901234567890123]},"note":"\u00e9","writeId""#,
    );
    let record = parse(&json).unwrap();
    assert!(parse(DESIGN).unwrap().unknown.is_empty() && !record.unknown.is_empty());
    assert_eq!(record.unknown.get("zone"), Some(r#"{"b":1.10,"a":[1e400, 12345678901234567890123]}"#));
    let again = parse(std::str::from_utf8(&record.to_json()).unwrap()).unwrap();
    assert_eq!(again, record);
    assert_eq!(again.unknown.get("note"), Some(r#""\u00e9""#));
}

fn with_peer(peer: &str) -> String {
    DESIGN.replace(r#","writeId""#, &format!(r#","peer":{peer},"writeId""#))
}

#[test]
fn an_address_counts_in_its_own_term_only() {
    for (peer, address) in [
        (r#"{"url":"https://a","term":7}"#, Some("https://a")),
        (r#"{"url":"https://a","term":6}"#, None),
        (r#"{"url":"https://a","term":8}"#, None),
        (r#"{"url":"https://a","term":7,"zone":{"b": 1.0}}"#, Some("https://a")),
        (r#"{"url":"https://a","term":7,"clients":"https://b","retryPeriodMillis":2000}"#, Some("https://a")),
        (r#"{"term":7,"clients":"https://b"}"#, None),
        (r#"{"url":"https://a","term":7,"clients":7,"retryPeriodMillis":"2s"}"#, Some("https://a")),
        (r#"{"term":7}"#, None),
        (r#"{"url":7,"term":7}"#, None),
        (r#"{"url":"https://a","term":"7"}"#, None),
        (r#"{"url":"https://a","term":7.0}"#, None),
        (r#"{"url":"https://a","url":"https://b","term":7}"#, None),
        (r#""https://a""#, None),
        ("null", None),
    ] {
        let record = parse(&with_peer(peer)).unwrap();
        assert_eq!(record.leader_address(), address, "{peer}");
        let json = String::from_utf8(record.to_json()).unwrap();
        assert!(json.contains(&format!(r#""peer":{peer}"#)), "{json} lost {peer}");
        assert_eq!(parse(&json).unwrap(), record);
    }
    let mut released = parse(&with_peer(r#"{"url":"https://a","term":7}"#)).unwrap();
    released.holder_identity = String::new();
    assert_eq!(released.leader_address(), None);
}

#[test]
fn a_name_is_written_once_whatever_another_program_wrote_under_it() {
    let foreign = r#""peer":["https://a"],"rank":"first","parts":["a"],"takeBacks":"often","writeId""#;
    let mut record = parse(&DESIGN.replace(r#""writeId""#, foreign)).unwrap();
    record.peer = Some(PeerAddress::new("https://b", 7).into());
    record.rank = HolderRank::new(2, 7);
    record.parts = Some(LockParts::new(2, vec!["a".to_owned()], 7));
    record.failbacks = 3;
    let again = parse(std::str::from_utf8(&record.to_json()).unwrap()).unwrap();
    assert_eq!(again.leader_address(), Some("https://b"));
    assert_eq!((again.rank, again.parts, again.failbacks), (record.rank, record.parts, 3));
}

#[test]
fn a_field_of_an_address_is_written_once() {
    let record = parse(&with_peer(r#"{"url":"https://a","term":7,"clients":7,"retryPeriodMillis":"2s"}"#)).unwrap();
    let mut address = (**record.peer.as_ref().unwrap()).clone();
    address.clients = Some("https://b".to_owned());
    address.retry_period = Some(Duration::from_secs(2));
    let json = serde_json::to_string(&address).unwrap();
    assert_eq!(json, r#"{"url":"https://a","term":7,"clients":"https://b","retryPeriodMillis":2000}"#);
}

#[test]
fn a_plain_elector_refuses_a_lock_that_a_session_holds() {
    let held = r#"{"holderIdentity":"a","session":"s-1","leaderTransitions":7,"writeId":"w"}"#;
    assert_eq!(
        refusal(held),
        "session: the session \"s-1\" holds the lock, which has no lease to wait for: choose another key for this elector, \
         or let it compete through a session"
    );
    let read = leaderelection::sessions::machine::read_record(held.as_bytes(), DEFAULT_MAX_LEASE_DURATION).unwrap();
    assert_eq!((read.session.as_deref(), read.lease_duration), (Some("s-1"), Duration::ZERO));
    assert_eq!(String::from_utf8(read.to_json()).unwrap(), held);
    for (wrong, why) in [
        (r#"{"holderIdentity":"a","leaseDuration":"15s","session":"s","leaderTransitions":7}"#, "leaseDuration"),
        (r#"{"holderIdentity":"","session":"s","leaderTransitions":7}"#, "holderIdentity"),
        (r#"{"holderIdentity":"a","leaderTransitions":7}"#, "leaseDuration"),
    ] {
        let error =
            leaderelection::sessions::machine::read_record(wrong.as_bytes(), DEFAULT_MAX_LEASE_DURATION).unwrap_err();
        assert_eq!(error.field(), why, "{wrong}");
    }
}
