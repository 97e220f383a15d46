//! A lock that is made of several: rollouts, and what an operator sees and does.

use std::fs;
use std::time::Instant;

use leaderelection_integration_tests::servers::scripted::{Answer, ScriptedServer, Step};
use serde_json::Value;

use crate::dashboard::{dashboard, shows};
use crate::serve::process::eventually;
use crate::serve::sidecar::Sidecar;
use crate::service::{LEASE, Service, judge};
use crate::support::{LONG, PATIENCE, Place, Running, end, leaderelect};

/// The URLs of locks in directories of their own, each of which can be cut off.
fn locks(place: &Place, names: &str) -> Vec<String> {
    names.chars().map(|name| place.file(&format!("{name}/worker"))).collect()
}

/// The arguments that name the locks.
fn named(locks: &[String]) -> Vec<&str> {
    locks.iter().flat_map(|lock| ["--lock", lock]).collect()
}

fn create(place: &Place, names: &str) {
    names.chars().for_each(|name| fs::create_dir(place.path(&name.to_string())).unwrap());
}

/// Waits until all parts show the same leader: the leader writes a part that it has not read with a later renewal.
fn until_all_agree(locks: &[String]) -> Value {
    let waits = Instant::now();
    loop {
        let whole = status(locks);
        if whole["parts"].as_array().unwrap().iter().all(|part| part["agrees"] == true) {
            return whole;
        }
        assert!(waits.elapsed() < PATIENCE, "{whole}");
    }
}

fn status(locks: &[String]) -> Value {
    let ended = end(&[&["status", "-o", "json"][..], &named(locks)].concat());
    serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"))
}

/// The same locks, of which a leader needs three.
fn all<'a>(locks: &[&'a str]) -> Vec<&'a str> {
    [locks, &["--quorum", "3"]].concat()
}

/// A leader is killed or a lock is lost in each rollout.
#[test]
fn rollouts_lead_from_one_lock_to_three_to_another_three_and_back() {
    let mut service = Service::new(Vec::new());
    create(&service.place, "abcd");
    let [one, three, four, other, back] = ["a", "abc", "abcd", "abd", "b"].map(|names| locks(&service.place, names));
    let [one, three, four, other, back] = [&one, &three, &four, &other, &back].map(|locks| named(locks));
    let lose = |name| {
        move |service: &mut Service| {
            service.place.cut_off(name);
            service.wait_for_leader(LEASE);
        }
    };
    service.roll("one", &one, Service::kill_leader);
    service.roll("all-three", &all(&three), Service::kill_leader);
    service.roll("two-of-three", &three, lose("a"));
    service.place.put_back("a");
    service.roll("three-of-four", &all(&four), lose("a"));
    service.place.put_back("a");
    service.roll("two-of-others", &other, lose("d"));
    service.place.put_back("d");
    service.roll("all-others", &all(&other), Service::kill_leader);
    service.roll("the-second", &back, Service::kill_leader);
    let entries = service.entries();
    judge(&entries);
    for phase in
        ["one-", "all-three-", "two-of-three-", "three-of-four-", "two-of-others-", "all-others-", "the-second-"]
    {
        assert!(entries.iter().any(|entry| entry.writer.starts_with(phase)), "{phase}");
    }
}

#[test]
fn an_operator_sees_the_parts_and_changes_most_of_them() {
    let place = Place::new();
    create(&place, "abcde");
    let all = locks(&place, "abc");
    let start = |name: &str| {
        let works = ["--", "sh", "-c", "echo term $LEADERELECTION_FENCING_TOKEN; exec sleep 1000"];
        Running::start(&[&["run", "--campaign", "--identity", name], &named(&all)[..], &LONG, &works].concat())
    };
    // A take that reaches too few parts uses up a token, so the next term may have a larger one.
    let term = |process: &mut Running| process.wait_for("term ").parse::<u64>().unwrap();
    let mut first = start("node-1");
    let led = term(&mut first);
    first.wait_for_note("2 of 3 locks are required: anyone who can write one of them can cause two leaders");
    let mut second = start("node-2");
    second.wait_for_note("node-1 leads");

    let whole = until_all_agree(&all);
    assert_eq!((&whole["holder"], &whole["lock"]), (&"node-1".into(), &all.join(" and ").into()), "{whole}");
    assert_eq!(whole["parts"].as_array().unwrap().len(), 3, "{whole}");
    let part = status(&all[1..2]);
    let names = all.join(", ");
    assert_eq!(part["partOf"], format!("2 of {names}"), "{part}");
    for view in [&whole, &part] {
        assert_eq!(view["partsThatMayBeHostile"], 0, "{view}");
    }

    place.cut_off("b");
    let whole = status(&all);
    assert_eq!((&whole["holder"], &whole["parts"][1]["agrees"]), (&"node-1".into(), &false.into()), "{whole}");
    let text = end(&[&["status"][..], &named(&all)].concat()).stdout;
    assert!(
        text.contains(&format!("{} agrees", all[2])) && text.contains("status         node-1 holds the lease"),
        "{text}"
    );
    assert!(text.contains("hostile parts  none: anyone who can write one part can cause two leaders"), "{text}");
    let transfer = [&["transfer", "--to", "node-2", "--yes", "--wait-for", "60s"], &named(&all)[..]].concat();
    let ended = end(&transfer);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let next = term(&mut second);
    assert!(next > led, "{next} after {led}");
    place.put_back("b");

    // A candidate of other parts waits, and tells why.
    let others = locks(&place, "ade");
    let mut stranger = Running::start(
        &[&["run", "--campaign", "--identity", "stranger"], &named(&others)[..], &LONG, &["--", "true"]].concat(),
    );
    stranger.wait_for_note("so both may lead at the same time");
    // Of the parts of one lock, one alone is not the lock.
    let mut alone = Running::start(
        &[&["run", "--campaign", "--identity", "alone"], &named(&all[..1])[..], &LONG, &["--", "true"]].concat(),
    );
    alone.wait_for_note("this candidate needs this lock alone");

    drop(second);
    let release = [&["release", "--force", "--yes"], &named(&all)[..]].concat();
    let ended = end(&release);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(term(&mut first) > next);
}

#[test]
fn the_parts_must_be_different_and_few_enough_must_be_needed() {
    let place = Place::new();
    let [a, b] = ["a", "b"].map(|name| place.lock(name));
    let empty = place.path("locks.txt").display().to_string();
    fs::write(&empty, "\n").unwrap();
    for (args, text) in [
        (vec!["run", "--lock", &a, "--lock", &b, "--lock", &a], "are the same lock; name each lock once"),
        (
            vec!["run", "--lock", &a, "--lock", &b, "--quorum", "1"],
            "--quorum (1) must be 2: more than half of the locks (2)",
        ),
        (vec!["run", "--lock", &a, "--lock", &b, "--second-lock", &place.lock("c")], "needs exactly one --lock"),
        (vec!["run", "--lock", &a, "--lock", &b, "--slots", "2"], "--slots needs exactly one --lock"),
        (vec!["run", "--lock", &a, "--lock", &b, "--require-probe"], "store_check"),
        (vec!["probe", "--lock", &a, "--lock", &b, "--endpoint", &a], "--endpoint needs exactly one --lock"),
        (vec!["lease-api", "--store", &a, "--store", &b], "expected one --store"),
        (vec!["status", "--lock-file", &empty], "locks.txt: "),
        (vec!["run", "--lock-file", &empty], "locks.txt: "),
    ] {
        let is_run = args[0] == "run";
        let ended = end(&[&args[..], if is_run { &["--", "true"] } else { &[] }].concat());
        assert_eq!(ended.code, Some(64), "{args:?}: {ended:?}");
        assert!(ended.stderr.contains(text), "{args:?}: {ended:?}");
    }
}

#[test]
fn a_file_names_a_lock_in_each_line() {
    let place = Place::new();
    create(&place, "abc");
    let all = locks(&place, "abc");
    fs::write(place.path("locks.txt"), all.join("\n") + "\n").unwrap();
    let file = place.path("locks.txt");
    let ended = end(&["run", "--lock-file", file.to_str().unwrap(), "--", "true"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let whole = status(&all);
    assert_eq!((&whole["state"], &whole["fencingToken"]), (&"free".into(), &1.into()), "{whole}");
}

#[test]
fn a_probe_names_the_part_that_fails() {
    let place = Place::new();
    create(&place, "ab");
    // A refusal is not repeated, so the probe needs no limit, which the other parts might not keep.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let refusals: Vec<_> = std::iter::repeat_n(Step::Answer(Answer::new(403)), 2_000).collect();
    let server = runtime.block_on(ScriptedServer::start(refusals));
    let parts = [&locks(&place, "ab")[..], &[format!("s3://bucket/locks/c?endpoint={}", server.url())]].concat();
    let probe = |more: &[&str]| {
        let mut command = leaderelect([&["probe", "--writers", "2"], more, &named(&parts)[..]].concat());
        command.env("AWS_ACCESS_KEY_ID", "id").env("AWS_SECRET_ACCESS_KEY", "key");
        Running::of(command)
    };
    let junit = place.path("junit.xml");
    let (text, json) = (probe(&[]), probe(&["-o", "json", &format!("--junit={}", junit.display())]));
    let ended = text.end();
    assert_eq!(ended.code, Some(69), "{ended:?}");
    assert!(ended.stderr.contains(&format!("2 of 3 locks are fit; not {}", parts[2])), "{ended:?}");
    let ended = json.end();
    let verdicts: Vec<Value> = ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let verdicts: Vec<_> = verdicts.iter().map(|one| (one["lock"].as_str().unwrap(), &one["verdict"])).collect();
    let [fit, open] = ["fit", "inconclusive"].map(Value::from);
    let expected = [(parts[0].as_str(), &fit), (parts[1].as_str(), &fit), (parts[2].as_str(), &open)];
    assert_eq!(verdicts, expected, "{ended:?}");
    assert_eq!(fs::read_to_string(junit).unwrap().matches("<testsuite ").count(), 3);
}

#[test]
fn the_history_of_each_part_is_shown_and_one_that_is_away_hides_no_other() {
    let place = Place::new();
    create(&place, "abc");
    let parts = ["a", "b", "c"].map(|name| format!("sequenced+{}?keep=100", place.file(&format!("{name}/worker"))));
    let ran = end(&[&["run", "--identity", "node-1", "--quorum", "3"], &named(&parts)[..], &["--", "true"]].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    fs::remove_dir_all(place.path("b")).unwrap();
    let ended = end(&[&["history", "-o", "json"][..], &named(&parts)[..]].concat());
    assert_eq!(ended.code, Some(64), "{ended:?}");
    assert!(ended.stderr.contains("b not found; check the URL"), "{ended:?}");
    let terms: Vec<Value> = ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let shown: Vec<_> = terms.iter().map(|term| (term["lock"].as_str().unwrap(), term["holder"].as_str())).collect();
    assert_eq!(shown, [(parts[0].as_str(), Some("node-1")), (parts[2].as_str(), Some("node-1"))], "{ended:?}");
    let text = end(&[&["history"][..], &named(&parts)[..]].concat()).stdout;
    assert!(text.contains(&parts[0]) && text.contains("released"), "{text}");
}

/// The page shows one lock, as most of its parts do.
#[tokio::test]
async fn a_dashboard_shows_the_lock_of_which_a_part_is_away() {
    let place = Place::new();
    create(&place, "abc");
    let all = locks(&place, "abc");
    let works = ["--", "sh", "-c", "echo leads; exec sleep 1000"];
    let mut leader = Running::start(&[&["run", "--identity", "node-1"], &named(&all)[..], &LONG, &works].concat());
    leader.wait_for("leads");
    let prefixes = ["a/", "b/", "c/"].map(|name| place.file(name));
    let mut command = dashboard(&prefixes[0], "100ms");
    command.args(&prefixes[1..]);
    let page = Sidecar::spawn(&mut command).await;
    let led = "<strong><bdi>node-1</bdi></strong> leads";
    assert!(shows(&page, led).await.contains("<title>No trouble seen: 1 led, 0 free"));
    place.cut_off("b");
    eventually("a part cannot be listed", async || {
        page.said().contains("cannot list a part of the locks").then_some(())
    })
    .await;
    shows(&page, led).await;
    // With two parts gone, nobody is known to lead.
    place.cut_off("c");
    shows(&page, "<title>Leaders not known · ").await;
}
