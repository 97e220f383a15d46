//! `run` while somebody else leads.

use rustix::process::Signal;

use crate::support::{LONG, Place, Running, TIMINGS, end, record, run};

fn holder(place: &Place) -> Running {
    let options = [&LONG[..], &["--identity", "node-1"]].concat();
    let mut holder = Running::start(&run(&place.lock("a"), &options, &["sh", "-c", "echo up; exec sleep 1000"]));
    holder.wait_for("up");
    holder
}

#[test]
fn no_wait_ends_at_once_with_a_code_of_its_own() {
    let place = Place::new();
    let _holder = holder(&place);
    let ended = end(&run(&place.lock("a"), &[&LONG[..], &["--no-wait"]].concat(), &["echo", "led"]));
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(75), ""), "{ended:?}");
    assert!(ended.stderr.contains("is held by node-1"), "{ended:?}");
}

#[test]
fn a_wait_of_no_time_is_no_wait() {
    let place = Place::new();
    let options = [&LONG[..], &["--wait-timeout", "0s"]].concat();
    let ended = end(&run(&place.lock("a"), &options, &["echo", "led"]));
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "led\n"), "{ended:?}");
    let _holder = holder(&place);
    let ended = end(&run(&place.lock("a"), &options, &["echo", "led"]));
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(75), ""), "{ended:?}");
    assert!(ended.stderr.contains("is held by node-1"), "{ended:?}");
}

#[test]
fn a_lock_that_no_other_process_sees_is_refused() {
    for args in [&["serve", "--lock", "memory:x"][..], &["run", "--lock", "memory:x", "--", "echo", "led"]] {
        let ended = end(args);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(64), ""), "{ended:?}");
        assert!(ended.stderr.contains("is private to this process"), "{ended:?}");
    }
}

#[test]
fn no_wait_says_how_to_wait_out_a_holder_that_died() {
    let place = Place::new();
    place.overwrite("a", &record("dead", "6s", 41, "1"));
    let ended = end(&run(&place.lock("a"), &[&LONG[..], &["--no-wait"]].concat(), &["echo", "led"]));
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(75), ""), "{ended:?}");
    assert!(ended.stderr.contains("lease 6s, watched for 0s"), "{ended:?}");
    let (_, advice) = ended.stderr.split_once("use ").unwrap();
    let (option, rest) = advice.split_once(' ').unwrap();
    let (duration, _) = rest.split_once(' ').unwrap();
    let options = [&LONG[..], &[option, duration]].concat();
    let ended = end(&run(&place.lock("a"), &options, &["echo", "led"]));
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "led\n"), "{ended:?}");
}

#[test]
fn no_wait_leads_if_nobody_does() {
    let place = Place::new();
    for _ in 0..2 {
        let ended = end(&run(&place.lock("a"), &[&LONG[..], &["--no-wait"]].concat(), &["echo", "led"]));
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "led\n"), "{ended:?}");
    }
}

#[test]
fn of_many_that_do_not_wait_one_works() {
    const CANDIDATES: usize = 6;
    let place = Place::new();
    let (lock, fifo) = (place.lock("a"), place.path("fifo"));
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).unwrap();
    // The winner works until all others have given up.
    let work = format!("echo led; read line < {}", fifo.display());
    let options = [&LONG[..], &["--no-wait"]].concat();
    let mut running: Vec<_> =
        (0..CANDIDATES).map(|_| Running::start(&run(&lock, &options, &["sh", "-c", &work]))).collect();
    let (sender, ends) = std::sync::mpsc::channel();
    for running in running.drain(..) {
        let sender = sender.clone();
        std::thread::spawn(move || sender.send(running.end()));
    }
    let losers: Vec<_> = (1..CANDIDATES).map(|_| ends.recv_timeout(crate::support::PATIENCE).unwrap()).collect();
    for ended in losers {
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(75), ""), "{ended:?}");
    }
    std::fs::write(&fifo, "go\n").unwrap();
    let winner = ends.recv_timeout(crate::support::PATIENCE).unwrap();
    assert_eq!((winner.code, winner.stdout.as_str()), (Some(0), "led"), "{winner:?}");
}

#[test]
fn a_wait_that_times_out_has_the_same_code() {
    let place = Place::new();
    let _holder = holder(&place);
    let options = [&LONG[..], &["--wait-timeout", "7s"]].concat();
    let ended = end(&run(&place.lock("a"), &options, &["echo", "led"]));
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(75), ""), "{ended:?}");
    assert!(ended.stderr.contains("node-1 leads"), "{ended:?}");
    assert!(ended.stderr.contains("timed out after 7s"), "{ended:?}");
    assert_eq!(place.record("a").holder_identity, "node-1");
}

#[test]
fn a_timeout_of_the_wait_is_none_of_the_work() {
    let place = Place::new();
    let options = [&LONG[..], &["--wait-timeout", "7s"]].concat();
    let ended = end(&run(&place.lock("a"), &options, &["sh", "-c", "sleep 7.5; echo done"]));
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "done\n"), "{ended:?}");
}

#[test]
fn a_release_is_taken_over_at_once() {
    let place = Place::new();
    let holder = holder(&place);
    let mut next = Running::start(&run(&place.lock("a"), &LONG, &["sh", "-c", "echo led; exec sleep 1000"]));
    next.wait_for_note("node-1 leads");
    holder.signal(Signal::TERM);
    assert_eq!(holder.end().code, Some(128 + 15));
    // The lease is longer than the patience.
    next.wait_for("led");
}

#[test]
fn the_lease_of_a_holder_that_died_is_waited_out() {
    let place = Place::new();
    place.overwrite("a", &record("dead", "1s", 41, "1"));
    let ended = end(&run(&place.lock("a"), &TIMINGS, &["sh", "-c", "echo $LEADERELECTION_FENCING_TOKEN"]));
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "42\n"), "{ended:?}");
    let told = ended.stderr.split_once("competing for ").is_some_and(|(_, told)| told.contains("waiting: dead leads"));
    assert!(told, "{ended:?}");
}

#[test]
fn a_signal_ends_the_wait() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130), (Signal::HUP, 129), (Signal::QUIT, 131)] {
        let place = Place::new();
        place.overwrite("a", &record("node-1", "1h", 0, "1"));
        let mut waiting = Running::start(&run(&place.lock("a"), &LONG, &["echo", "led"]));
        waiting.wait_for_note("node-1 leads");
        waiting.signal(Signal::USR1);
        waiting.signal(signal);
        let ended = waiting.end();
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(code), ""), "{ended:?}");
    }
}
