//! The settings of an election from a configuration file, and from a command line.

use std::time::Duration;

use clap::Parser;
use leaderelection::history::Retention;
use leaderelection::{
    LeaderElectionConfig, LeaderElectionConfigBuilder, LeaderElectionSettings, MemoryLock, MemoryStore, Timings,
};
use serde_json::json;

fn builder() -> LeaderElectionConfigBuilder {
    LeaderElectionConfig::builder(MemoryLock::new(MemoryStore::new(), "lock", "a"), ())
}

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

#[test]
fn every_field_of_a_file_is_the_setter_of_its_name() {
    let file = json!({
        "lease_duration": "60s", "renew_deadline": "40s", "retry_period": "4s", "request_timeout": "3s",
        "follower_interval": "8s", "step_down_cool_down": "5m", "trust_store_clock": "1500ms", "background_interval": "50s",
        "advertise": "https://a.example", "advertise_to_clients": "https://b.example", "failback": true,
        "keep_history": { "terms": 50, "for_at_most": "7days" }, "name": "scheduler", "service": "billing", "rank": 3,
        "reclaim_own_identity": true, "release_on_cancel": false,
    });
    let settings: LeaderElectionSettings = serde_json::from_value(file).unwrap();
    let expected = builder()
        .timings(Timings::new(secs(60), secs(40), secs(4)).unwrap().with_request_timeout(secs(3)).unwrap())
        .follower_interval(secs(8))
        .step_down_cool_down(secs(300))
        .trust_store_clock(Duration::from_millis(1500))
        .background_interval(secs(50))
        .advertise("https://a.example")
        .advertise_to_clients("https://b.example")
        .failback(true)
        .keep_history(Retention::terms(50).for_at_most(secs(7 * 24 * 3600)))
        .name("scheduler")
        .service("billing")
        .rank(3)
        .reclaim_own_identity(true)
        .release_on_cancel(false);
    assert_eq!(format!("{:?}", builder().settings(settings)), format!("{expected:?}"));
}

#[test]
fn what_a_file_leaves_out_stays_and_setters_afterwards_count() {
    let settings = || serde_json::from_str::<LeaderElectionSettings>(r#"{ "rank": 3 }"#).unwrap();
    assert_eq!(
        format!("{:?}", builder().rank(7).name("n").settings(settings())),
        format!("{:?}", builder().name("n").rank(3))
    );
    assert_eq!(format!("{:?}", builder().settings(settings()).rank(7)), format!("{:?}", builder().rank(7)));
    assert_eq!(format!("{:?}", builder().settings(LeaderElectionSettings::default())), format!("{:?}", builder()));
}

#[test]
fn the_error_of_a_file_names_the_field_and_its_value() {
    let refusal = |file| serde_json::from_str::<LeaderElectionSettings>(file).unwrap_err().to_string();
    for (file, expected) in [
        (
            r#"{ "lease_duration": 15 }"#,
            "lease_duration: (15) is not a duration: time unit needed, for example 15sec or 15ms; write a number and a unit, such as 15s or 400ms",
        ),
        (
            r#"{ "lease_duration": true }"#,
            r#"lease_duration: invalid type: boolean `true`, expected a duration such as "15s" or "400ms""#,
        ),
        (r#"{ "rank": 300 }"#, "rank: invalid value: integer `300`, expected u8"),
        (r#"{ "failback": "yes" }"#, r#"failback: invalid type: string "yes", expected a boolean"#),
        (
            r#"{ "keep_history": { "terms": 1, "for_at_most": "long" } }"#,
            "keep_history.for_at_most: (long) is not a duration: expected number at 0; write",
        ),
        (
            r#"{ "keep_history": { "term": 1 } }"#,
            "keep_history.term: unknown field `term`, expected `terms` or `for_at_most`",
        ),
        (
            r#"{ "lease-duration": "15s" }"#,
            "unknown field `lease-duration`, expected one of `lease_duration`, `renew_deadline`",
        ),
    ] {
        assert!(refusal(file).contains(expected), "{file}: {}", refusal(file));
    }
    let settings: LeaderElectionSettings = serde_json::from_str(r#"{ "lease_duration": "5s" }"#).unwrap();
    let error = builder().settings(settings).build().unwrap_err();
    assert_eq!(error.to_string(), "lease_duration (5s) must be greater than renew_deadline (10s)");
}

#[derive(Parser)]
struct Program {
    #[command(flatten)]
    timings: Timings,
}

#[derive(Parser)]
struct ProgramWithFile {
    #[command(flatten)]
    timings: Option<Timings>,
}

fn parse<T: Parser>(arguments: &[&str]) -> Result<T, String> {
    T::try_parse_from([&["program"], arguments].concat()).map_err(|error| error.to_string())
}

#[test]
fn options_have_client_gos_names_and_defaults() {
    assert_eq!(parse::<Program>(&[]).unwrap().timings, Timings::default());
    let options = ["lease-duration=1m", "renew-deadline=40s", "retry-period=4s", "request-timeout=3s"];
    let options = options.map(|option| format!("--leader-elect-{option}"));
    let given = parse::<Program>(&options.each_ref().map(String::as_str)).unwrap().timings;
    assert_eq!(Ok(given), Timings::new(secs(60), secs(40), secs(4)).unwrap().with_request_timeout(secs(3)));
}

#[test]
fn wrong_options_are_named_with_their_values() {
    let refusal = |option| parse::<Program>(&[option]).err().unwrap();
    let error = refusal("--leader-elect-retry-period=2");
    let expected =
        "invalid value '2' for '--leader-elect-retry-period <DURATION>': time unit needed, for example 2sec or 2ms";
    assert!(error.contains(expected), "{error}");
    let error = refusal("--leader-elect-request-timeout=5s");
    let expected = "--leader-elect-request-timeout (5s) must be less than half of --leader-elect-renew-deadline (10s)";
    assert!(error.contains(expected) && error.contains("Usage: "), "{error}");
}

#[test]
fn options_that_nobody_gave_leave_the_settings_of_a_file() {
    assert_eq!(parse::<ProgramWithFile>(&[]).unwrap().timings, None);
    let given = parse::<ProgramWithFile>(&["--leader-elect-retry-period=1s"]).unwrap().timings;
    assert_eq!(given, Timings::new(secs(15), secs(10), secs(1)).ok());
}

#[test]
fn the_options_of_timings_stand_beside_a_program_s_own_of_their_short_names() {
    #[derive(clap::Args)]
    struct Flags {
        #[arg(long, default_value = "own")]
        request_timeout: String,
        #[command(flatten)]
        timings: Timings,
    }
    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        flags: Flags,
        #[arg(long, default_value_t = 5)]
        lease_duration: u8,
    }
    let options = ["program", "--leader-elect-lease-duration", "30s", "--leader-elect-request-timeout", "1s"];
    let mut program = Program::try_parse_from(options).unwrap();
    assert_eq!((program.flags.request_timeout.as_str(), program.lease_duration), ("own", 5));
    assert_eq!(program.flags.timings.lease_duration(), secs(30));
    program.try_update_from(["program", "--leader-elect-renew-deadline", "20s"]).unwrap();
    let timings = &program.flags.timings;
    assert_eq!((timings.lease_duration(), timings.renew_deadline()), (secs(30), secs(20)), "what is not named stays");
    assert_eq!(timings.request_timeout(), secs(1));
}
