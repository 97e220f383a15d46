//! Parts of a lock whose writers are hostile: each cell of the table in docs/regions.md, with real processes.

mod buckets;

use std::fs;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use leaderelection_integration_tests::servers::seaweedfs::SeaweedFs;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use self::buckets::{Buckets, S3Buckets};
use crate::service::{Service, judge};
use crate::support::{PATIENCE, Place, Running, end};

/// A part that was not written with the others is written soon.
const QUICK: [&str; 2] = ["--retry-period", "200ms"];

/// A lease for each attack is waited for.
const SHORT: [&str; 6] = ["--lease-duration", "3s", "--renew-deadline", "2s", "--retry-period", "200ms"];

/// The first line of the table.
const TABLE: &str = "| buckets | needed | by writing one | two | three |";

/// One cell: the writers of so many parts are hostile.
#[derive(Clone, Debug)]
struct Cell {
    size: usize,
    needed: usize,
    hostile: usize,
    says: String,
}

fn cells() -> Vec<Cell> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().join("docs/regions.md");
    let page = fs::read_to_string(page).unwrap();
    let (_, table) = page.split_once(TABLE).expect("the table");
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let cells = rows.flat_map(|row| {
        let words: Vec<String> =
            row.trim_matches('|').split('|').map(|word| word.replace('*', "").trim().into()).collect();
        let [size, needed] = [0, 1].map(|at| words[at].parse().unwrap());
        (1..=3).map(move |hostile| Cell { size, needed, hostile, says: words[hostile + 1].clone() })
    });
    cells.collect()
}

impl Cell {
    fn names(&self, parts: Range<usize>) -> Vec<String> {
        parts.map(|part| char::from(b'a' + u8::try_from(part).unwrap()).to_string()).collect()
    }

    /// The arguments that name the lock, whose first parts have hostile writers.
    fn lock(&self, place: &Place) -> Vec<String> {
        let names = self.names(0..self.size);
        let parts = names.iter().flat_map(|name| ["--lock".to_owned(), place.file(&format!("{name}/worker"))]);
        parts.chain(["--quorum".to_owned(), self.needed.to_string()]).collect()
    }

    fn create(&self, place: &Place) {
        self.names(0..self.size).iter().for_each(|name| fs::create_dir(place.path(name)).unwrap());
    }
}

/// The write of somebody who has read the leader's record, as often as wished.
#[derive(Clone, Copy)]
enum Attack {
    /// Another record, whose write id is the leader's.
    Forge(fn(&mut Value)),
    Junk,
    Delete,
}

use Attack::{Delete, Forge, Junk};

const FREE: Attack = Forge(|record| record["holderIdentity"] = json!(""));
const ANOTHER_HOLDER: Attack = Forge(|record| {
    record["holderIdentity"] = json!("hostile");
    record["writeId"] = now();
});
const JOB_DONE: Attack = Forge(|record| record["completedJobs"] = json!(["today"]));

/// The attacks that any number of parts but one may be under, in an order in which the last may bar the lock.
const ATTACKS: [(&str, Attack); 11] = [
    ("free", FREE),
    ("another holder", ANOTHER_HOLDER),
    (
        "a higher token",
        Forge(|record| {
            raise(record, "hostile", 1000);
            record["writeId"] = now();
        }),
    ),
    ("free with a higher token", Forge(|record| raise(record, "", 1000))),
    (
        "a lower token",
        Forge(|record| {
            record["holderIdentity"] = json!("");
            record["leaderTransitions"] = json!(0);
        }),
    ),
    ("another purpose", Forge(|record| record["purpose"] = json!("another"))),
    (
        "other parts",
        Forge(|record| {
            let token = record["leaderTransitions"].clone();
            record["parts"] = json!({ "needed": 1, "of": ["file:///elsewhere"], "term": token });
        }),
    ),
    ("a lease of a year", Forge(|record| record["leaseDuration"] = json!("365days"))),
    ("no record", Junk),
    ("no object", Delete),
    ("the last token", Forge(|record| record["leaderTransitions"] = json!((1_u64 << 53) - 1))),
];

fn now() -> Value {
    json!(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos().to_string())
}

fn raise(record: &mut Value, holder: &str, by: u64) {
    record["holderIdentity"] = json!(holder);
    record["leaderTransitions"] = json!(record["leaderTransitions"].as_u64().unwrap() + by);
}

/// A hostile writer, until it is dropped.
struct Writer {
    rounds: Arc<AtomicUsize>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Makes an attack on parts again and again, with the record of an honest part.
    fn start(place: &Arc<Place>, cell: &Cell, attack: Attack) -> Self {
        let (rounds, is_over) = (Arc::<AtomicUsize>::default(), Arc::<AtomicBool>::default());
        let (place, cell) = (Arc::clone(place), cell.clone());
        let (round, ends) = (Arc::clone(&rounds), Arc::clone(&is_over));
        let thread = thread::spawn(move || {
            while !ends.load(Relaxed) {
                cell.strike(&place, attack);
                round.fetch_add(1, Relaxed);
                thread::sleep(Duration::from_millis(5));
            }
        });
        Self { rounds, is_over, thread: Some(thread) }
    }

    fn wait_for_rounds(&self, more: usize) {
        let (begun, waits) = (self.rounds.load(Relaxed), Instant::now());
        while self.rounds.load(Relaxed) < begun + more {
            assert!(waits.elapsed() < PATIENCE && !self.thread.as_ref().unwrap().is_finished());
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.is_over.store(true, Relaxed);
        let ended = self.thread.take().unwrap().join();
        assert!(ended.is_ok() || thread::panicking());
    }
}

impl Cell {
    /// Returns `true` if all parts without a hostile writer show the same write.
    fn others_agree(&self, place: &Place) -> bool {
        let write_of = |part: String| {
            let key = format!("{part}/worker");
            let record: Option<Value> = place.has(&key).then(|| serde_json::from_slice(&place.body(&key)).unwrap());
            record.map(|record| record["writeId"].clone())
        };
        let mut writes = self.names(self.hostile..self.size).into_iter().map(write_of);
        let first = writes.next().flatten();
        first.is_some() && writes.all(|write| write == first)
    }

    fn strike(&self, place: &Place, attack: Attack) {
        let honest = self.names(self.hostile..self.size).into_iter().map(|part| format!("{part}/worker"));
        let read = honest.into_iter().find(|key| place.has(key)).expect("most parts have a record");
        let mut record: Value = serde_json::from_slice(&place.body(&read)).unwrap();
        for part in self.names(0..self.hostile) {
            let key = format!("{part}/worker");
            match attack {
                Forge(forge) => {
                    forge(&mut record);
                    place.put(&key, &record.to_string());
                }
                Junk => place.put(&key, "somebody's photo"),
                // The leader may write at this moment.
                Delete => drop(fs::remove_dir_all(place.path(&key))),
            }
        }
    }
}

/// As many parts as may be unavailable are, while a leader takes the others, of which some have hostile writers.
fn free_the_hostile_parts(cell: &Cell, buckets: &impl Buckets) {
    let works = [
        "--retry-period",
        "20s",
        "--renew-deadline",
        "60s",
        "--lease-duration",
        "120s",
        "--",
        "sh",
        "-c",
        "echo leads; exec sleep 1000",
    ];
    let parts = cell.names(0..cell.size);
    let locks = parts.iter().flat_map(|part| ["--lock".to_owned(), buckets.lock(part)]);
    let lock: Vec<String> = locks.chain(["--quorum".to_owned(), cell.needed.to_string()]).collect();
    let start = |name: &str| {
        let lock = lock.iter().map(String::as_str).collect::<Vec<_>>();
        Running::of(buckets.command(&[&["run", "--identity", name][..], &lock, &works].concat()))
    };
    let (here, away) = parts.split_at(cell.needed);
    buckets.create(here, away);
    let mut first = start("first");
    first.wait_for("leads");
    buckets.restore(away);
    let held = buckets.body("a");
    for part in cell.names(0..cell.hostile) {
        let mut record: Value = serde_json::from_slice(&held).unwrap();
        record["holderIdentity"] = json!("");
        buckets.put(&part, &record.to_string());
    }
    let mut second = start("second");
    if cell.says == "two leaders" {
        second.wait_for("leads");
    } else {
        second.wait_for_note("leads");
    }
    let is_second = second.so_far().iter().any(|line| line == "leads");
    assert_eq!(is_second, cell.says == "two leaders", "{cell:?}");
    assert!(first.is_running(), "{cell:?}");
}

#[test]
fn two_lead_at_once_only_where_the_page_says_so() {
    cells().iter().for_each(|cell| free_the_hostile_parts(cell, &Place::new()));
}

#[test]
fn two_lead_at_once_on_s3_only_where_the_page_says_so() {
    let server = SeaweedFs::start(Path::new(env!("CARGO_TARGET_TMPDIR")));
    let runtime = Runtime::new().unwrap();
    for (number, cell) in cells().iter().enumerate() {
        free_the_hostile_parts(cell, &S3Buckets { server: &server, runtime: &runtime, cell: number });
    }
}

/// A hostile writer writes as often as it can, and leaders are killed.
fn withstand(cell: &Cell) {
    let mut service = Service::new(Vec::new());
    service.timings = SHORT;
    cell.create(&service.place);
    let lock = cell.lock(&service.place);
    let lock: Vec<&str> = lock.iter().map(String::as_str).chain(["--service", "ours"]).collect();
    let is_harmless = cell.says.starts_with("harmless");
    assert!(is_harmless || cell.says == "nobody leads", "{cell:?}");
    // Until all parts agree.
    let objects = cell.names(0..cell.size).into_iter().map(|part| service.place.path(&format!("{part}/worker/@")));
    let wait =
        objects.map(|object| format!("until [ -e {} ]; do sleep 0.05; done;", object.display())).collect::<String>();
    let works = ["--", "sh", "-c", &format!("{wait} echo worked")];
    let once = |job: &str| end(&[&["run", "--job-id", job][..], &lock, &QUICK, &works].concat());
    assert_eq!(once("yesterday").stdout.trim(), "worked");
    if is_harmless {
        let _writer = Writer::start(&service.place, cell, JOB_DONE);
        let ended = once("today");
        assert_eq!(ended.stdout.trim(), "worked", "{ended:?}");
    }
    service.start(&lock, "first".to_owned());
    for (what, attack) in ATTACKS {
        println!("{cell:?}: {what}");
        service.start(&lock, what.replace(' ', "-"));
        service.wait_for_leader(Duration::ZERO);
        let writer = Writer::start(&service.place, cell, attack);
        if is_harmless {
            writer.wait_for_rounds(50);
            // A leader that dies in the midst of a write leaves parts that do not agree, and then a hostile one may bar the lock.
            let mut frozen = service.freeze_leader();
            while !cell.others_agree(&service.place) {
                service.thaw(&frozen.writer);
                writer.wait_for_rounds(2);
                frozen = service.freeze_leader();
            }
            service.kill_leader();
        } else {
            writer.wait_for_rounds(300);
            let waits = Instant::now();
            let works_on = || {
                let before = service.entries().len();
                writer.wait_for_rounds(100);
                service.entries().len() > before
            };
            while what == "a higher token" && works_on() {
                assert!(waits.elapsed() < PATIENCE, "somebody leads: {cell:?}");
            }
        }
        drop(writer);
        judge(&service.entries());
        // Somebody puts the parts right.
        cell.strike(&service.place, Forge(|_| ()));
    }
}

#[test]
fn one_of_four_of_which_three_are_needed() {
    withstand_row(4, 3);
}

#[test]
fn any_of_five_of_which_four_are_needed() {
    withstand_row(5, 4);
}

#[test]
fn any_of_three_that_are_all_needed() {
    withstand_row(3, 3);
}

fn withstand_row(size: usize, needed: usize) {
    let of_row = cells().into_iter().filter(|cell| (cell.size, cell.needed) == (size, needed));
    for cell in of_row.filter(|cell| cell.says != "two leaders") {
        assert!(cell.hostile < 2 * needed - size, "{cell:?}");
        withstand(&cell);
    }
}
