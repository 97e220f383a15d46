//! `--rank`, `--failback` and `--follower-interval`, with processes that are killed.

use std::fs;

use rustix::process::Signal;

use crate::support::{LONG, Place, Running, TIMINGS, end, record, run};

/// Writes down when its work begins and when it ends, with its token.
const WORK: &str = r#"
    name=$1
    say() {
        line="$1 $name $LEADERELECTION_FENCING_TOKEN"
        echo "$line" >> "$0"
        echo "$line"
    }
    trap 'say ends; exit' TERM
    say begins
    sleep 1000 &
    wait"#;

/// Restarts of the preferred process while another one leads.
const RESTARTS: usize = 10;

struct Scene {
    place: Place,
    log: String,
}

impl Scene {
    fn new() -> Self {
        let place = Place::new();
        let log = place.path("log").display().to_string();
        fs::write(&log, "").unwrap();
        Self { place, log }
    }

    /// Every process has an identity of its own, so that it says that it waits for an earlier one.
    fn start(&self, name: &str, options: &[&str]) -> Running {
        let options = [&TIMINGS[..], &["--campaign"], options].concat();
        Running::start(&run(&self.place.lock("a"), &options, &["sh", "-c", WORK, &self.log, name]))
    }

    fn preferred(&self) -> Running {
        self.start("preferred", &["--failback"])
    }

    fn other(&self) -> Running {
        self.start("other", &["--rank", "3"])
    }

    /// Starts the preferred process, and kills it as soon as it has read the lock.
    fn start_and_kill_preferred(&self) {
        let mut preferred = self.preferred();
        preferred.wait_for_note("waiting: ");
        preferred.signal(Signal::KILL);
        preferred.wait();
    }

    fn log(&self) -> Vec<String> {
        fs::read_to_string(&self.log).unwrap().lines().map(str::to_owned).collect()
    }

    fn begun(&self) -> Vec<String> {
        self.log().into_iter().filter(|line| line.starts_with("begins")).collect()
    }

    fn assert_in_order(&self, earlier: &str, later: &str) {
        let log = self.log();
        let at = |line: &str| log.iter().position(|logged| logged == line);
        let is_in_order = at(earlier).zip(at(later)).is_some_and(|(earlier, later)| earlier < later);
        assert!(is_in_order, "{earlier:?} before {later:?}: {log:?}");
    }
}

#[test]
fn the_preferred_process_leads_when_healthy_and_does_not_flap() {
    let scene = Scene::new();
    let mut other = scene.other();
    other.wait_for("begins other 1");

    // The preferred process starts second, and gets the lease. The work of the other ends first.
    let mut preferred = scene.preferred();
    preferred.wait_for("begins preferred 2");
    scene.assert_in_order("ends other 1", "begins preferred 2");

    // It is killed, and killed again whenever it has read the lock. So it gets no lease, and the other leads.
    preferred.signal(Signal::KILL);
    preferred.wait();
    while scene.begun().len() < 3 {
        scene.start_and_kill_preferred();
    }
    for _ in 0..RESTARTS {
        scene.start_and_kill_preferred();
    }
    assert_eq!(scene.begun(), ["begins other 1", "begins preferred 2", "begins other 3"]);

    // It stays healthy, and gets the lease once more.
    let mut preferred = scene.preferred();
    preferred.wait_for("begins preferred 4");
    scene.assert_in_order("ends other 3", "begins preferred 4");
    assert_eq!(scene.place.record("a").failbacks, 2);
    // The other ends first, or it could lead once more.
    for candidate in [other, preferred] {
        candidate.signal(Signal::TERM);
        candidate.wait();
    }
    assert_eq!(scene.begun().last().map(String::as_str), Some("begins preferred 4"));
}

#[test]
fn status_shows_the_rank_of_the_leader_in_this_term() {
    let place = Place::new();
    for (term, shown) in [(7, true), (6, false)] {
        let rank = format!(r#"{{"rank":{{"rank":3,"term":{term}}},"#);
        place.overwrite("a", &record("node-1", "15s", 7, "1").replacen('{', &rank, 1));
        let text = end(&["status", &place.lock("a")]).stdout;
        assert_eq!(text.contains("  rank           3\n"), shown, "{text}");
        let json = end(&["status", "-o", "json", &place.lock("a")]).stdout;
        assert_eq!(json.contains(r#""leaderRank":3"#), shown, "{json}");
    }
}

#[test]
fn a_wrong_option_is_named() {
    let place = Place::new();
    for (options, problem) in [
        (&["--rank", "100"][..], "'100' for '--rank <N>'"),
        (&["--follower-interval", "59s900ms"], "--follower-interval (59.9s)"),
        (&["--slots", "2", "--rank", "1"], "'--slots <NUMBER>' cannot be used with '--rank <N>'"),
        (&["--slots", "2", "--failback"], "cannot be used with '--failback'"),
        (&["--slots", "2", "--follower-interval", "1s"], "cannot be used with '--follower-interval <DURATION>'"),
        (&["--job-id", "tonight", "--failback"], "cannot be used with '--failback'"),
    ] {
        let ended = end(&run(&place.lock("a"), &[&LONG[..], options].concat(), &["true"]));
        assert_eq!(ended.code, Some(64), "{options:?}: {ended:?}");
        assert!(ended.stderr.contains(problem), "{options:?}: {ended:?}");
    }
}
