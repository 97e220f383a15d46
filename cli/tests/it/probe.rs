//! `probe`, with every verdict.

use std::fs;
use std::time::{Duration, Instant};

use leaderelection_integration_tests::servers::scripted::{Answer, ScriptedServer, Step};
use serde_json::Value;

use crate::support::{LONG, Place, end, end_of, leaderelect};

#[test]
fn a_fit_store() {
    let place = Place::new();
    let ended = end(&["probe", "--writers", "8", "--rounds", "2", &place.file("a")]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    for text in
        ["is fit for leader election", "one winner in each of 8 races of 2 to 8", "median", "clock: not applicable"]
    {
        assert!(ended.stdout.contains(text), "{text}: {ended:?}");
    }
    assert!(ended.stdout.contains("$0.00 because the store is on this machine"), "{ended:?}");
    assert_eq!(fs::read_dir(place.path("")).unwrap().count(), 0, "it left something behind");
}

#[test]
fn a_fit_store_as_json() {
    let ended = end(&["probe", "-o", "json", "--followers", "4", "--retry-period", "1s", "memory:a"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((&report["verdict"], report["checks"].as_array().unwrap().len()), (&"fit".into(), 6), "{report}");
    assert_eq!(report["monthlyCost"]["writes"], 2_629_746.0, "{report}");
    assert!(report["latencySeconds"]["p90"].as_f64().unwrap() > 0.0, "{report}");
}

#[test]
fn a_directory_that_does_not_exist_is_not_made() {
    let place = Place::new();
    let ended = end(&["probe", &place.lock("a")]);
    assert_eq!(ended.code, Some(64), "{ended:?}");
    assert!(ended.stderr.contains("locks not found; check the URL"), "{ended:?}");
    assert!(!place.path("locks").exists());
}

/// Against a server that answers every request in the same way.
fn probe_of(answer: &Answer, args: &[&str]) -> crate::support::Ended {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let script: Vec<_> = std::iter::repeat_n(Step::Answer(answer.clone()), 2_000).collect();
    let server = runtime.block_on(ScriptedServer::start(script));
    let url = format!("s3://bucket/locks/a?endpoint={}", server.url());
    let mut command = leaderelect([&["probe", "--writers", "4", "--rounds", "1"], args, &[&url]].concat());
    command.env("AWS_ACCESS_KEY_ID", "key").env("AWS_SECRET_ACCESS_KEY", "hidden");
    end_of(command)
}

#[test]
fn an_unfit_store_that_knows_the_time() {
    // Whatever the condition, it says yes.
    let yes = Answer::new(200).header("ETag", "\"1\"").header("Date", "Mon, 02 Feb 2026 10:15:30 GMT");
    let ended = probe_of(&yes, &[]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stdout.contains("UNFIT"), "{ended:?}");
    assert!(ended.stdout.contains("s ahead of the store's (±"), "{ended:?}");
    assert!(ended.stdout.contains("correct it"), "{ended:?}");
    assert!(ended.stdout.contains("set --write-price and --read-price"), "{ended:?}");
    let ended = probe_of(&yes, &["-o", "json", "--write-price", "5", "--read-price", "0.4"]);
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((&report["verdict"], &report["monthlyCost"]["dollars"]), (&"unfit".into(), &7.23.into()), "{report}");
    assert!(report["clock"]["aheadOfStoreSeconds"].as_f64().unwrap() > 1e6, "{report}");
}

#[test]
fn a_store_that_refuses_is_neither_and_the_log_tells_what_it_said() {
    let ended = probe_of(&Answer::new(403), &["-v"]);
    assert!(ended.stderr.contains("a request failed request=\"put\""), "{ended:?}");
    assert!(!ended.stderr.contains("hidden"), "{ended:?}");
    let ended = probe_of(&Answer::new(403), &[]);
    assert!(!ended.stderr.contains("a request failed"), "{ended:?}");
    assert_eq!(ended.code, Some(69), "{ended:?}");
    assert!(ended.stdout.contains("inconclusive"), "{ended:?}");
    assert!(!ended.stdout.contains("hidden"), "{ended:?}");
}

#[test]
fn time_that_is_over_is_no_fault_of_the_store() {
    let place = Place::new();
    let ended = end(&["probe", "--time-limit", "0s", &place.file("a")]);
    assert_eq!(ended.code, Some(69), "{ended:?}");
    assert!(ended.stdout.contains("inconclusive: the checks timed out after 0s"), "{ended:?}");
    assert!(!ended.stdout.contains("errors or missing answers"), "{ended:?}");
}

#[test]
fn an_unreachable_store_is_named_within_the_time_limit() {
    let began = Instant::now();
    let url = "s3://bucket/locks/a?region=us-east-1&endpoint=http://127.0.0.1:1";
    let mut command = leaderelect(["probe", "--time-limit", "2s", url]);
    command.env("AWS_ACCESS_KEY_ID", "key").env("AWS_SECRET_ACCESS_KEY", "hidden");
    let ended = end_of(command);
    assert_eq!(ended.code, Some(69), "{ended:?}");
    assert!(began.elapsed() < Duration::from_secs(10), "{ended:?}");
    let verdict = "inconclusive: the checks timed out after 2s, and the last request failed: s3://bucket/";
    assert!(ended.stdout.contains(verdict) && ended.stdout.contains("cannot connect to 127.0.0.1:1;"), "{ended:?}");
    assert!(!ended.stdout.contains("set a longer") && !ended.stdout.contains("left behind"), "{ended:?}");
}

#[test]
fn timings_are_proposed_for_a_failover_and_a_shorter_one_is_refused() {
    let place = Place::new();
    let requests = ["probe", "--writers", "4", "--requests", "300"];
    let probe = |wish: &[&str]| end(&[&requests[..], &LONG, wish, &[&place.file("a")]].concat());
    // The slowest request decides about some seconds of the lease.
    let ended = probe(&["--failover", "5m"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for text in [
        "300 writes and reads",
        "proposal: --lease-duration 3m",
        "another candidate leads at most",
        "after a crash",
        "a term survives",
    ] {
        assert!(ended.stdout.contains(text), "{text}: {ended:?}");
    }
    let ended = probe(&["--failover", "200ms"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let refusal = "proposal: no timings for a failover of 200ms: its lease would be shorter than 300ms";
    assert!(ended.stdout.contains(refusal), "{ended:?}");
    assert!(ended.stdout.contains("the shortest failover on this store is"), "{ended:?}");
    assert_eq!(fs::read_dir(place.path("")).unwrap().count(), 0, "it left something behind");
}

#[test]
fn timings_are_proposed_for_a_budget() {
    let probe = |more: &[&str]| {
        let prices = ["--write-price", "5", "--read-price", "0.4", "--requests", "300", "-o", "json", "memory:a"];
        let ended = end(&[&["probe", "--writers", "4"], more, &prices].concat());
        (ended.code, serde_json::from_str::<Value>(&ended.stdout).unwrap()["proposal"].clone())
    };
    let (code, proposal) = probe(&["--budget", "7.23"]);
    assert_eq!((code, &proposal["timings"]["retry_period"]), (Some(0), &"2s 1ms".into()), "{proposal}");
    assert_eq!(proposal["monthlyCost"]["dollars"], 7.23, "{proposal}");
    // With peers, only the renewals cost much.
    let (_, proposal) = probe(&["--budget", "7.23", "--peers"]);
    assert_eq!(proposal["timings"]["retry_period"], "1s 837ms", "{proposal}");
    let (code, proposal) = probe(&["--budget", "0.01", "--peers"]);
    assert_eq!(code, Some(1), "{proposal}");
    let refusal = proposal["refused"].as_str().unwrap();
    assert!(refusal.contains("the reads of the followers alone cost $0.07"), "{refusal}");
}

#[test]
fn a_verdict_has_a_date_and_is_written_for_build_servers_too() {
    let place = Place::new();
    let (also, path) = (place.file("a"), place.path("junit.xml"));
    let ended =
        end(&["probe", "-o", "json", "--endpoint", &also, &format!("--junit={}", path.display()), &place.file("a")]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((report["date"].as_str().unwrap().len(), report["also"].as_array().unwrap().len()), (10, 1), "{report}");
    let written = fs::read_to_string(path).unwrap();
    assert!(written.contains(r#"tests="6" failures="0" errors="0" skipped="0""#), "{written}");
    let ended = end(&["probe", "--junit=/nonexistent/a.xml", &place.file("a")]);
    assert_eq!(ended.code, Some(74), "{ended:?}");
    assert!(ended.stderr.contains("cannot write /nonexistent/a.xml") && ended.stderr.contains("--junit"), "{ended:?}");
    let ended = end(&["probe", "--endpoint", &place.file("b"), &place.file("a")]);
    assert!(ended.stderr.contains("names another object than"), "{ended:?}");

    let junit = place.path("unfit.xml");
    let yes = Answer::new(200).header("ETag", "\"1\"");
    let ended = probe_of(&yes, &[&format!("--junit={}", junit.display())]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let written = fs::read_to_string(junit).unwrap();
    assert!(written.contains("<failure message="), "{written}");
}
