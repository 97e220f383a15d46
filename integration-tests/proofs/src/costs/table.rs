//! The counts as rows, as CSV, and as Markdown.

use std::fmt::Write as _;

use leaderelection_backends::prices::Prices;

use super::case::{Case, Way};
use crate::counted::Requests;

const COLUMNS: &str = "way,locks,processes,writes,reads,listings,deletions";

/// One count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The setting of the count.
    pub case: Case,
    /// The requests of an hour.
    pub requests: Requests,
}

/// Returns the rows as CSV.
#[must_use]
pub fn to_csv(rows: &[Row]) -> String {
    let mut csv = format!("{COLUMNS}\n");
    for Row { case: Case { way, locks, processes }, requests } in rows {
        let Requests { writes, reads, listings, deletions } = requests;
        let way = way.name();
        let _ = writeln!(csv, "{way},{locks},{processes},{writes},{reads},{listings},{deletions}");
    }
    csv
}

/// Reads the rows of [`to_csv`].
///
/// # Panics
///
/// If the text is something else.
#[must_use]
pub fn from_csv(csv: &str) -> Vec<Row> {
    let mut lines = csv.lines();
    assert_eq!(lines.next(), Some(COLUMNS), "the columns");
    lines.map(row).collect()
}

fn row(line: &str) -> Row {
    let (way, numbers) = line.split_once(',').expect("a way");
    let numbers: Vec<u64> = numbers.split(',').map(|number| number.parse().expect("a number")).collect();
    let [locks, processes, writes, reads, listings, deletions] = numbers[..] else { panic!("six numbers: {line}") };
    let [locks, processes] = [locks, processes].map(|number| usize::try_from(number).expect("a small number"));
    let case = Case { way: Way::named(way).expect("a way"), locks, processes };
    Row { case, requests: Requests { writes, reads, listings, deletions } }
}

/// Returns the rows as a table in Markdown, with leases and sessions side by side.
#[must_use]
pub fn table(rows: &[Row]) -> String {
    let mut table = "| locks | processes | one lease each: writes | reads | S3, GCS | Azure \
                     | sessions: writes | reads | listings | S3, GCS | Azure |\n|---|---|---|---|---|---|---|---|---|---|---|\n"
        .to_owned();
    for Row { case: Case { locks, processes, .. }, requests: leases } in rows.iter().filter(|row| row.leases()) {
        let same = |row: &&Row| !row.leases() && (row.case.locks, row.case.processes) == (*locks, *processes);
        let Some(Row { requests: sessions, .. }) = rows.iter().find(same) else { continue };
        let cells = [
            grouped(*locks as u64),
            processes.to_string(),
            grouped(leases.writes),
            grouped(leases.reads),
            dollars(leases, &Prices::S3),
            dollars(leases, &Prices::AZURE),
            grouped(sessions.writes),
            grouped(sessions.reads),
            grouped(sessions.listings),
            dollars(sessions, &Prices::S3),
            dollars(sessions, &Prices::AZURE),
        ];
        let _ = writeln!(table, "| {} |", cells.join(" | "));
    }
    table
}

impl Row {
    fn leases(&self) -> bool {
        self.case.way == Way::Leases
    }
}

pub(crate) fn dollars(requests: &Requests, prices: &Prices) -> String {
    let dollars = requests.dollars_a_month(prices);
    if dollars < 100.0 { format!("${dollars:.2}") } else { format!("${}", grouped(dollars.round() as u64)) }
}

/// Writes a number with a comma before every three digits.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    groups.join(",")
}
