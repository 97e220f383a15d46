//! `transfer` and `release` where there is no terminal.

use serde_json::Value;

use crate::support::{LONG, Place, Running, end, record, run};

const WORKS: [&str; 3] = ["sh", "-c", "echo term $LEADERELECTION_FENCING_TOKEN; exec sleep 1000"];

#[test]
fn the_named_candidate_takes_over() {
    let place = Place::new();
    let lock = place.lock("a");
    let start = |name: &str, more: &[&str]| {
        Running::start(&run(&lock, &[&LONG[..], &["--identity", name], more].concat(), &WORKS))
    };
    let mut first = start("node-1", &[]);
    first.wait_for("term 1");
    let mut others: Vec<_> = ["node-2", "node-3", "node-4"].iter().map(|name| start(name, &["--campaign"])).collect();
    for other in &mut others {
        other.wait_for_note("node-1 leads");
    }
    let ended = end(&["transfer", &lock, "--to", "node-3", "--yes", "--wait-for", "60s"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(place.record("a").holder_identity, "node-3");
    assert!(ended.stdout.contains("  before  node-1 holds the lease (fencing token 1, lease "), "{ended:?}");
    assert!(
        ended.stdout.contains("  after   node-1 is asked to hand over to node-3 (fencing token 1, lease "),
        "{ended:?}"
    );
    others[1].wait_for("term 2");
    let ended = first.end();
    assert_eq!(ended.code, Some(79), "{ended:?}");
    assert!(ended.stderr.contains(r#"handed over to "node-3""#), "{ended:?}");
}

#[test]
fn transfer_asks_where_it_can_and_refuses_where_not() {
    let place = Place::new();
    place.overwrite("a", &record("node-1", "1h", 7, "1"));
    let before = place.record("a");
    for (args, text) in [
        (vec!["--to", "node-2"], "add --yes"),
        (vec!["--to", "node-1", "--yes"], "name another candidate"),
        (vec!["--to", "", "--yes"], "it is empty; name the candidate"),
        (vec![], "--to <IDENTITY>"),
    ] {
        let ended = end(&[&["transfer", &place.lock("a")][..], &args].concat());
        assert_eq!(ended.code, Some(64), "{ended:?}");
        assert!(ended.stderr.contains(text), "{ended:?}");
    }
    assert_eq!(place.record("a"), before);
    let ended = end(&["transfer", &place.lock("absent"), "--to", "node-2", "--yes"]);
    assert_eq!(ended.code, Some(64), "{ended:?}");
    assert!(ended.stderr.contains("does not exist"), "{ended:?}");
}

#[test]
fn a_name_that_nobody_has_is_noticed_by_who_waits() {
    let place = Place::new();
    place.overwrite("a", &record("node-1", "1h", 7, "1"));
    let ended = end(&["transfer", &place.lock("a"), "--to", "nod-2", "--yes", "--wait-for", "300ms"]);
    assert_eq!(ended.code, Some(75), "{ended:?}");
    assert!(ended.stderr.contains("\"nod-2\" did not take over within 300ms; check its name"), "{ended:?}");
    let ended = end(&["transfer", &place.lock("a"), "--to", "nod-3", "--yes"]);
    assert!(ended.code == Some(0) && ended.stderr.contains("it is unknown whether \"nod-3\" competes"), "{ended:?}");
}

#[test]
fn who_waits_is_told_of_the_named_candidate_and_of_any_other() {
    let place = Place::new();
    let lock = place.lock("a");
    for (next, code, text) in [
        ("node-2", 0, "\nnode-2 leads now (fencing token 8)\n"),
        ("node-3", 75, "\"node-3\" took over instead of \"node-2\"; check the name"),
    ] {
        place.overwrite("a", &record("node-1", "1h", 7, "1"));
        let mut transfer = Running::start(&["transfer", &lock, "--to", "node-2", "--yes", "--wait"]);
        transfer.wait_for_line("the leader hands over");
        place.overwrite("a", &record("", "1s", 7, "2"));
        place.overwrite("a", &record(next, "1h", 8, "3"));
        let ended = transfer.end();
        let told = format!("\n{}\n{}", ended.stdout, ended.stderr);
        assert!(ended.code == Some(code) && told.contains(text) && !told.contains("leaderelect watch"), "{ended:?}");
    }
}

#[test]
fn where_nobody_leads_there_is_nobody_to_hand_over() {
    let place = Place::new();
    let lock = place.lock("a");
    place.overwrite("a", &record("node-1", "1h", 7, "1"));
    let ended = end(&["transfer", &lock, "--to", "node-2", "--yes"]);
    assert!(ended.stdout.contains("the leader hands over at its next renewal; `leaderelect watch`"), "{ended:?}");
    place.overwrite("a", &record("", "1s", 7, "2"));
    let ended = end(&["transfer", &lock, "--to", "node-2", "--yes"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("if \"node-2\" competes, it takes over at its next poll"), "{ended:?}");
    assert!(!ended.stdout.contains("the leader hands over"), "{ended:?}");
}

#[test]
fn release_needs_force_and_where_it_cannot_ask_yes_too() {
    let place = Place::new();
    place.overwrite("a", &record("node-1", "1h", 7, "1"));
    let before = place.record("a");
    for (args, text) in [(&["release"][..], "--force"), (&["release", "--force"], "add --yes")] {
        let ended = end(&[args, &[&place.lock("a")]].concat());
        assert_eq!(ended.code, Some(64), "{ended:?}");
        assert!(ended.stderr.contains(text), "{ended:?}");
    }
    assert_eq!(place.record("a"), before);
}

#[test]
fn a_forced_release_is_taken_over_at_once_with_a_larger_token() {
    let place = Place::new();
    place.overwrite("a", &record("dead", "1h", 7, "1"));
    let lock = place.lock("a");
    let mut next = Running::start(&run(&lock, &LONG, &WORKS));
    next.wait_for_note("dead leads");
    let ended = end(&["release", "--force", "--yes", "-o", "json", &lock]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let said: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((&said["before"]["holder"], &said["before"]["fencingToken"]), (&"dead".into(), &7.into()), "{said}");
    assert_eq!((&said["after"]["holder"], &said["after"]["fencingToken"]), (&Value::Null, &7.into()), "{said}");
    assert_eq!(said["changed"], true);
    next.wait_for("term 8");
}

#[test]
fn releasing_what_nobody_holds_changes_nothing() {
    let place = Place::new();
    place.overwrite("a", &record("", "1s", 7, "1"));
    let before = place.record("a");
    let ended = end(&["release", "--force", &place.lock("a")]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("nothing was changed"), "{ended:?}");
    assert_eq!(place.record("a"), before);
}

#[test]
fn a_leader_of_another_library_is_not_promised_to_do_what_it_does_not() {
    let place = Place::new();
    let foreign = record("pod-1", "1h", 7, "1").replace(r#","writeId":"1""#, "");
    place.overwrite("a", &foreign);
    let before = place.record("a");
    assert_eq!(before.write_id, None);
    let ended = end(&["transfer", "--yes", "--to", "node-2", &place.lock("a")]);
    assert_eq!(ended.code, Some(64), "{ended:?}");
    assert!(
        ended.stderr.contains("\"pod-1\" runs client-go or another library (its record has no writeId)"),
        "{ended:?}"
    );
    assert_eq!(place.record("a"), before);
    let ended = end(&["release", "--force", "--yes", &place.lock("a")]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stderr.contains("if it is alive, it takes the lease back without stopping its work"), "{ended:?}");
    assert!(ended.stdout.contains("if the holder is alive, it may be the same one"), "{ended:?}");
}
