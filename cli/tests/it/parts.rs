//! A lock that is made of several: rollouts, and what an operator sees and does.

use std::fs;
use std::time::Instant;

use serde_json::Value;

use crate::service::{Service, judge};
use crate::support::{LONG, PATIENCE, Place, Running, end};

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

/// Takes the directory of a lock away, and puts a file in its place, because a writer would create it again.
fn cut_off(place: &Place, name: &str) {
    fs::rename(place.path(name), place.path("gone")).unwrap();
    while fs::write(place.path(name), "").is_err() {
        let _ = fs::remove_dir_all(place.path(name));
    }
}

fn put_back(place: &Place, name: &str) {
    fs::remove_file(place.path(name)).unwrap();
    while fs::rename(place.path("gone"), place.path(name)).is_err() {
        let _ = fs::remove_dir_all(place.path(name));
    }
}

/// Waits until all parts show the same leader: the leader writes a part that it has not looked at with a later renewal.
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

#[test]
fn rollouts_lead_from_one_lock_to_three_to_another_three_and_back() {
    let mut service = Service::new(Vec::new());
    create(&service.place, "abcd");
    let [one, three, four, other, back] = ["a", "abc", "abcd", "abd", "b"].map(|names| locks(&service.place, names));
    let [one, three, four, other, back] = [&one, &three, &four, &other, &back].map(|locks| named(locks));
    service.roll("one", &one);
    service.roll("all-three", &[&three[..], &["--needed", "3"]].concat());
    service.kill_leader();
    service.roll("two-of-three", &three);
    // The first lock is gone while the next set of locks is rolled out.
    cut_off(&service.place, "a");
    service.kill_leader();
    put_back(&service.place, "a");
    service.roll("three-of-four", &[&four[..], &["--needed", "3"]].concat());
    service.roll("two-of-others", &other);
    cut_off(&service.place, "d");
    service.kill_leader();
    put_back(&service.place, "d");
    service.roll("all-others", &[&other[..], &["--needed", "3"]].concat());
    service.roll("the-second", &back);
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
    let mut first = start("node-1");
    first.wait_for("term 0");
    let mut second = start("node-2");
    second.wait_for_note("node-1 leads");

    let whole = until_all_agree(&all);
    assert_eq!((&whole["holder"], &whole["lock"]), (&"node-1".into(), &all.join(" and ").into()), "{whole}");
    assert_eq!(whole["parts"].as_array().unwrap().len(), 3, "{whole}");
    let part = status(&all[1..2]);
    let names = all.join(", ");
    assert_eq!(part["partOf"], format!("2 of {names}"), "{part}");

    cut_off(&place, "b");
    let whole = status(&all);
    assert_eq!((&whole["holder"], &whole["parts"][1]["agrees"]), (&"node-1".into(), &false.into()), "{whole}");
    let text = end(&[&["status"][..], &named(&all)].concat()).stdout;
    assert!(text.contains(&format!("{} agrees", all[2])) && text.contains("leader         node-1"), "{text}");
    let transfer = [&["transfer", "--to", "node-2", "--yes", "--wait-for", "60s"], &named(&all)[..]].concat();
    let ended = end(&transfer);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    second.wait_for("term 1");
    put_back(&place, "b");

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
    first.wait_for("term 2");
}

#[test]
fn the_parts_must_be_different_and_few_enough_must_be_needed() {
    let place = Place::new();
    let [a, b] = ["a", "b"].map(|name| place.lock(name));
    for (args, text) in [
        (vec!["run", "--lock", &a, "--lock", &b, "--lock", &a], "are one lock: name each lock once"),
        (vec!["run", "--lock", &a, "--lock", &b, "--needed", "1"], "needed locks (1) must be from 2 to 2"),
        (vec!["run", "--lock", &a, "--lock", &b, "--also", &place.lock("c")], "is for a move to one lock"),
        (vec!["run", "--lock", &a, "--lock", &b, "--slots", "2"], "--slots are in one store"),
        (vec!["run", "--lock", &a, "--lock", &b, "--require-probe"], "store_check"),
        (vec!["probe", "--lock", &a, "--lock", &b], "about one lock at a time"),
        (vec!["history", "--lock", &a, "--lock", &b], "about one lock at a time"),
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
    assert_eq!((&whole["state"], &whole["fencingToken"]), (&"free".into(), &0.into()), "{whole}");
}
