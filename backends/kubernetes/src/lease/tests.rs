use std::time::Duration;

use super::*;

const UID: &str = "0198c0de-0000-0000-0000-000000000001";

fn record(change: impl FnOnce(&mut LeaderElectionRecord)) -> LeaderElectionRecord {
    let mut record = LeaderElectionRecord::new("node-1", Duration::from_secs(15));
    record.acquire_time = Some("2026-02-02T10:15:30.000001Z".parse().unwrap());
    record.renew_time = Some("2026-02-02T10:15:40.5Z".parse().unwrap());
    record.leader_transitions = 7;
    record.write_id = Some("write-1".to_owned());
    change(&mut record);
    record
}

fn state(record: &LeaderElectionRecord) -> LeaseBody {
    LeaseBody::of_record(&record.to_json()).unwrap()
}

/// The Lease as the API server has it.
fn stored(mut object: Value) -> Lease {
    object["metadata"]["uid"] = UID.into();
    object["metadata"]["resourceVersion"] = "12".into();
    Lease::of_answer(object).unwrap()
}

fn read(lease: &Lease) -> LeaderElectionRecord {
    LeaderElectionRecord::from_json(&lease.record().unwrap(), Duration::from_secs(3600)).unwrap()
}

fn with_fields(lease: &Lease, change: impl FnOnce(&mut Value)) -> Lease {
    let mut object = lease.object.clone();
    change(&mut object["spec"]);
    stored(object)
}

#[test]
fn the_fields_are_those_of_client_go() {
    let lease = state(&record(|_| {})).created("default", "scheduler");
    assert_eq!(
        lease["spec"],
        json!({
            "holderIdentity": "node-1", "leaseDurationSeconds": 15, "leaseTransitions": 7,
            "acquireTime": "2026-02-02T10:15:30.000001Z", "renewTime": "2026-02-02T10:15:40.500000Z",
        })
    );
    assert_eq!((&lease["metadata"]["name"], &lease["metadata"]["namespace"]), (&json!("scheduler"), &json!("default")));
}

#[test]
fn a_record_is_read_as_it_was_written_down_to_fields_that_nobody_knows() {
    for written in [
        record(|_| {}),
        record(|record| record.lease_duration = Duration::from_millis(1500)),
        record(|record| record.lease_duration = Duration::from_millis(1)),
        record(|record| record.leader_transitions = MOST_TRANSITIONS + 1),
        record(|record| record.preferred_holder = Some("node-2".to_owned())),
        record(|record| (record.acquire_time, record.renew_time) = (None, None)),
        record(|record| record.write_id = None),
        record(|record| (record.holder_identity, record.lease_duration) = (String::new(), Duration::from_secs(1))),
    ] {
        let mut body = written.to_json();
        body.pop();
        body.extend_from_slice(br#","notes":{"n":1.0e2}}"#);
        let lease = stored(LeaseBody::of_record(&body).unwrap().created("default", "scheduler"));
        assert_eq!(String::from_utf8(lease.record().unwrap()), String::from_utf8(body));
    }
}

#[test]
fn a_lease_is_rounded_up_to_whole_seconds_and_never_zero() {
    let millis = [(1, 1), (1000, 1), (1001, 2), (15_000, 15)];
    let longest = [(Duration::MAX, MOST_TRANSITIONS)];
    for (duration, seconds) in
        millis.map(|(millis, seconds)| (Duration::from_millis(millis), seconds)).iter().chain(&longest)
    {
        let fields = fields(&record(|record| record.lease_duration = *duration), "2026-02-02T10:15:40.500000Z");
        assert_eq!(fields["leaseDurationSeconds"], *seconds, "{duration:?}");
    }
}

#[test]
fn a_candidate_of_client_go_leaves_no_write_id_and_no_wish() {
    let ours = stored(
        state(&record(|record| record.preferred_holder = Some("node-2".to_owned()))).created("default", "scheduler"),
    );
    type Change = fn(&mut Value);
    let changes: [Change; 5] = [
        |spec| spec["holderIdentity"] = "pod-1".into(),
        |spec| spec["renewTime"] = "2026-02-02T10:15:42.000000Z".into(),
        |spec| spec["leaseTransitions"] = 8.into(),
        |spec| spec["leaseDurationSeconds"] = 30.into(),
        |spec| spec["acquireTime"] = Value::Null,
    ];
    for change in changes {
        let record = read(&with_fields(&ours, change));
        assert_eq!((record.write_id, record.preferred_holder), (None, None), "{:?}", ours.object);
    }
}

/// client-go empties the holder, and keeps the transitions that it finds.
#[test]
fn a_late_release_of_client_go_leaves_the_lease_to_its_holder() {
    let written = record(|_| {});
    let ours = stored(state(&written).created("default", "scheduler"));
    let release = |lease: &Lease, transitions: u64| {
        with_fields(lease, |spec| {
            *spec = json!({
                "holderIdentity": "", "leaseDurationSeconds": 1, "leaseTransitions": transitions,
                "acquireTime": "2026-02-02T10:16:00.000000Z", "renewTime": "2026-02-02T10:16:00.000000Z",
            });
        })
    };
    assert_eq!(read(&release(&ours, 7)), written);
    // Whoever took the Lease has raised the transitions, and may release it. A person may lower them.
    for transitions in [6, 8] {
        let record = read(&release(&ours, transitions));
        assert!(record.is_released() && record.leader_transitions == transitions, "{record:?}");
    }
    // A person empties the holder, and means it.
    assert!(read(&with_fields(&ours, |spec| spec["holderIdentity"] = "".into())).is_released());
    // The next renewal writes all fields again.
    let renewed = stored(state(&record(|record| record.write_id = None)).replacing(&release(&ours, 7)));
    assert_eq!(renewed.object["spec"]["holderIdentity"], "node-1");
    let free = stored(state(&record(|record| record.holder_identity.clear())).created("default", "scheduler"));
    assert!(read(&release(&free, 7)).is_released());
}

#[test]
fn what_a_record_has_noted_about_jobs_survives_a_candidate_of_client_go() {
    let mut body = record(|_| {}).to_json();
    body.pop();
    body.extend_from_slice(br#","completedJobs":["monday"]}"#);
    let ours = stored(LeaseBody::of_record(&body).unwrap().created("default", "scheduler"));
    let theirs = with_fields(&ours, |spec| spec["holderIdentity"] = "pod-1".into());
    assert_eq!(read(&theirs).completed_jobs(), ["monday"]);
}

#[test]
fn records_of_client_go_are_read() {
    let taken = stored(json!({"metadata": {}, "spec": {
        "holderIdentity": "pod-1", "leaseDurationSeconds": 15, "leaseTransitions": 3,
        "acquireTime": "2026-02-02T10:15:30.000000Z", "renewTime": "2026-02-02T10:15:40.000000Z",
    }}));
    let record = read(&taken);
    assert_eq!((record.holder_identity.as_str(), record.leader_transitions), ("pod-1", 3));
    assert_eq!((record.lease_duration, record.write_id), (Duration::from_secs(15), None));
    for released in [
        json!({"holderIdentity": "", "leaseDurationSeconds": 1, "leaseTransitions": 3, "renewTime": null}),
        json!({"leaseTransitions": 3}),
    ] {
        let record = read(&stored(json!({"metadata": {}, "spec": released})));
        assert!(record.is_released() && record.leader_transitions == 3, "{record:?}");
    }
    for empty in [json!({"metadata": {}, "spec": {}}), json!({"metadata": {}})] {
        let record = read(&stored(empty));
        assert!(record.is_released() && record.leader_transitions == 0, "{record:?}");
    }
}

#[test]
fn a_holder_without_a_duration_has_the_default_of_client_go() {
    let record = read(&stored(json!({"metadata": {}, "spec": {"holderIdentity": "pod-1"}})));
    assert_eq!((record.holder_identity.as_str(), record.lease_duration), ("pod-1", Duration::from_secs(15)));
}

#[test]
fn fields_on_which_no_decision_can_rest_are_refused() {
    for spec in [
        json!({"holderIdentity": "pod-1", "leaseDurationSeconds": 0}),
        json!({"holderIdentity": "pod-1", "leaseDurationSeconds": -1}),
        json!({"holderIdentity": "pod-1", "leaseDurationSeconds": 15, "leaseTransitions": -1}),
        json!({"holderIdentity": "pod-1", "leaseDurationSeconds": 15, "renewTime": "now"}),
    ] {
        let body = stored(json!({"metadata": {}, "spec": spec})).record().unwrap();
        assert!(LeaderElectionRecord::from_json(&body, Duration::from_secs(3600)).is_err(), "{spec}");
    }
    let coordinated = stored(json!({"metadata": {}, "spec": {"strategy": "OldestEmulationVersion"}}));
    assert!(coordinated.record().unwrap_err().contains("choose another Lease"));
}

#[test]
fn a_token_beyond_the_field_does_not_go_back() {
    let beyond = MOST_TRANSITIONS + 5;
    let lease = stored(state(&record(|record| record.leader_transitions = beyond)).created("default", "scheduler"));
    assert_eq!(lease.object["spec"]["leaseTransitions"], i32::MAX);
    let emptied = with_fields(&lease, |spec| spec["holderIdentity"] = "".into());
    assert_eq!(read(&emptied).leader_transitions, beyond);
    let lowered = with_fields(&lease, |spec| spec["leaseTransitions"] = 9.into());
    assert_eq!(read(&lowered).leader_transitions, 9, "whoever lowers the field means it");
}

#[test]
fn client_go_sees_every_renewal_by_the_second() {
    let time = |lease: &Lease| lease.object["spec"]["renewTime"].as_str().unwrap().to_owned();
    let mut lease = stored(state(&record(|_| {})).created("default", "scheduler"));
    let at = |text: &str| record(|record| record.renew_time = Some(text.parse().unwrap()));
    for (wall, expected) in [
        ("2026-02-02T10:15:40.7Z", "2026-02-02T10:15:41.700000Z"),
        ("2026-02-02T10:15:40.9Z", "2026-02-02T10:15:40.900000Z"),
        ("2026-02-02T10:15:41.2Z", "2026-02-02T10:15:41.200000Z"),
        ("2026-02-02T10:15:41.4Z", "2026-02-02T10:15:42.400000Z"),
        ("2026-02-02T10:15:44.2Z", "2026-02-02T10:15:44.200000Z"),
        // The clock was set back.
        ("2026-02-02T09:15:46Z", "2026-02-02T09:15:46.000000Z"),
    ] {
        let renewed = at(wall);
        let before = time(&lease);
        lease = stored(state(&renewed).replacing(&lease));
        assert_eq!(time(&lease), expected);
        assert_ne!(time(&lease)[..19], before[..19], "client-go compares whole seconds");
        assert_eq!(read(&lease), renewed, "our own candidates read the true time");
    }
    // A new term is another record anyway.
    let taken = record(|record| record.leader_transitions = 8);
    assert_eq!(time(&stored(state(&taken).replacing(&lease))), "2026-02-02T10:15:40.500000Z");
}

#[test]
fn an_update_keeps_what_others_have_written_and_names_uid_and_version() {
    let mut theirs = state(&record(|_| {})).created("default", "scheduler");
    theirs["metadata"]["labels"] = json!({"app": "scheduler"});
    theirs["metadata"]["annotations"]["note"] = "ours to keep".into();
    theirs["metadata"]["managedFields"] = json!([{"manager": "kubectl"}]);
    theirs["spec"]["future"] = json!({"n": 1});
    let lease = stored(theirs);
    let update = state(&record(|record| record.leader_transitions = 8)).replacing(&lease);
    let metadata = &update["metadata"];
    assert_eq!((&metadata["uid"], &metadata["resourceVersion"]), (&json!(UID), &json!("12")));
    assert_eq!(metadata["labels"]["app"], "scheduler");
    assert_eq!(metadata["annotations"]["note"], "ours to keep");
    assert_eq!(metadata.get("managedFields"), None);
    assert_eq!((&update["spec"]["future"]["n"], &update["spec"]["leaseTransitions"]), (&json!(1), &json!(8)));
}

#[test]
fn an_answer_without_a_version_is_no_lease() {
    for metadata in
        [json!({}), json!({"uid": UID}), json!({"resourceVersion": "1"}), json!({"uid": "", "resourceVersion": "1"})]
    {
        assert!(Lease::of_answer(json!({"metadata": metadata})).is_none(), "{metadata}");
    }
    assert!(Lease::of_answer(json!("<html>")).is_none());
}

#[test]
fn what_is_no_name_of_a_lease_is_refused() {
    for name in ["scheduler", "a", "a-b.c-1", "0"] {
        assert_eq!(check_name(name), Ok(()), "{name}");
    }
    let long = "a".repeat(254);
    for name in ["", ".", "..", "a/b", "A", "a_b", "-a", "a-", "a..b", "a?b", "ä", &long] {
        assert!(check_name(name).is_err(), "{name}");
    }
}

#[test]
fn what_is_no_record_of_a_candidate_is_refused() {
    for body in ["{}", "text", r#"{"holderIdentity":"a","session":"s","leaderTransitions":1}"#] {
        assert!(LeaseBody::of_record(body.as_bytes()).is_err(), "{body}");
    }
}
