//! The price of sessions: the published counts are those of this version, and the page shows them.

use std::fs;
use std::path::{Path, PathBuf};

use leaderelection_proofs::costs::{Case, PLOTTED_PROCESSES, Requests, Row, Way, from_csv, plot, table, to_csv};

/// The part by which a count may differ from the published one: the pauses of polls are random, so a change anywhere in
/// the code moves the counts of few electors.
const TOLERANCE: f64 = 0.03;

const REPEAT: &str = "count again: cargo run --release -p leaderelection-proofs --features check -- costs \
                      --write docs, and put the printed table into docs/performance.md";

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

fn published() -> Vec<Row> {
    from_csv(&fs::read_to_string(docs().join("session-costs.csv")).expect("the counts"))
}

#[test]
fn an_hour_costs_what_is_published() {
    let rows = published();
    let is_small = |case: &Case| case.locks * case.processes <= 30 || case.way == Way::Sessions && case.locks <= 100;
    let small: Vec<_> = rows.iter().filter(|row| is_small(&row.case)).collect();
    assert!(small.len() >= 8, "{} counts", small.len());
    for Row { case, requests: published } in small {
        let counted = case.count();
        let parts = |requests: &Requests| [requests.writes, requests.reads, requests.listings, requests.deletions];
        for (counted, published) in parts(&counted).into_iter().zip(parts(published)) {
            let (counted, published) = (counted as f64, published as f64);
            let differs = (counted - published).abs() > (published * TOLERANCE).max(1.0);
            assert!(!differs, "{case}: {counted} requests instead of {published}; {REPEAT}");
        }
    }
}

#[test]
fn a_session_pays_for_renewals_reads_and_a_listing_now_and_then() {
    for (locks, processes) in [(1, 3), (100, 3), (100, 30)] {
        let case = Case { way: Way::Sessions, locks, processes };
        let requests = case.count();
        let processes = processes as f64;
        let others = processes - 1.0;
        let twice_a_minute = 120.0 * processes;
        // A listing costs as much as 13 reads, and 1,125 listings take the place of the reads of an hour. A session is read
        // once for each renewal, and one time in sixteen once more.
        let reads = 1_800.0 * 17.0 / 16.0;
        let (session_reads, listings) = if others * 1_800.0 > 13.0 * 1_125.0 {
            (twice_a_minute * others, 1_125.0 * processes)
        } else {
            (reads * processes * others, 0.0)
        };
        // A few locks are read, and many locks are listed. New sessions are searched as often.
        let most_reads = session_reads + twice_a_minute * if locks > 13 { 0.0 } else { locks as f64 };
        let most_listings = listings + 2.0 * twice_a_minute;
        let within = |count: u64, bound: f64| count as f64 <= bound * (1.0 + TOLERANCE);
        assert!(within(requests.writes, 1_800.0 * processes), "{case}: {requests:?}");
        assert!(within(requests.reads, most_reads), "{case}: {requests:?}, at most {most_reads} reads");
        assert!(within(requests.listings, most_listings), "{case}: {requests:?}, at most {most_listings} listings");
        assert_eq!(requests.deletions, 0, "{case}");
    }
}

#[test]
fn thirty_processes_with_messages_list_and_read_next_to_nothing() {
    let requests = Case { way: Way::Sessions, locks: 1_000, processes: 30 }.count_with_messages();
    // The sessions and the locks, once in half a minute each.
    assert!(requests.listings <= 7_200 + 60, "{requests:?}");
    assert!(requests.reads + requests.listings < 10_000, "{requests:?}");
}

#[test]
fn the_page_and_the_plot_show_the_published_counts() {
    let (rows, page) = (published(), fs::read_to_string(docs().join("performance.md")).expect("a page"));
    assert!(page.contains(&table(&rows)), "docs/performance.md has another table; {REPEAT}");
    let drawn = fs::read_to_string(docs().join("session-costs.svg")).expect("a plot");
    assert!(drawn == plot(&rows, PLOTTED_PROCESSES), "docs/session-costs.svg is another plot; {REPEAT}");
}

#[test]
fn a_table_is_read_as_it_was_written() {
    let case = Case { way: Way::Sessions, locks: 10_000, processes: 30 };
    let requests = Requests { writes: 0, reads: 999, listings: 1_000, deletions: 1_234_567 };
    let leases = Requests { writes: 1_234_567, ..requests };
    let rows = [Row { case, requests }, Row { case: Case { way: Way::Leases, ..case }, requests: leases }];
    assert_eq!(from_csv(&to_csv(&rows)), rows);
    let table = table(&rows);
    assert!(table.contains("| 10,000 | 30 | 1,234,567 | 999 |") && table.contains("| 0 | 999 | 1,000 |"), "{table}");
}
