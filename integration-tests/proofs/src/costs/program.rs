//! The program that counts the requests of many locks, and writes the counts, their price and a plot of it.

use std::fs;
use std::path::PathBuf;

use clap::Args;

use super::{Case, LOCKS, PLOTTED_PROCESSES, PROCESSES, Row, Way, from_csv, plot, table, to_csv};

/// Counts the requests of an hour, for leases and for sessions, and prints a table in Markdown.
#[derive(Args, Debug)]
pub struct Arguments {
    /// The largest number of locks
    #[arg(long, default_value_t = 10_000)]
    locks: usize,
    /// Draw the counts in this file instead of counting, because only prices have changed
    #[arg(long, value_name = "CSV")]
    counted: Option<PathBuf>,
    /// The directory in which session-costs.csv and session-costs.svg are written
    #[arg(long)]
    write: Option<PathBuf>,
}

impl Arguments {
    /// Counts, prints the table, and writes the files that are wanted.
    ///
    /// # Errors
    ///
    /// A file can be neither read nor written.
    pub fn carry_out(self) -> std::io::Result<()> {
        let Self { locks, counted, write } = self;
        let rows = match counted {
            Some(csv) => from_csv(&fs::read_to_string(csv)?),
            None => count(locks),
        };
        print!("{}", table(&rows));
        if let Some(directory) = write {
            fs::write(directory.join("session-costs.csv"), to_csv(&rows))?;
            fs::write(directory.join("session-costs.svg"), plot(&rows, PLOTTED_PROCESSES))?;
        }
        Ok(())
    }
}

fn count(most_locks: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    for processes in PROCESSES {
        for locks in LOCKS.into_iter().filter(|locks| *locks <= most_locks) {
            for way in [Way::Leases, Way::Sessions] {
                let case = Case { way, locks, processes };
                let row = Row { case, requests: case.count() };
                eprintln!("{case}: {:?}", row.requests);
                rows.push(row);
            }
        }
    }
    rows
}
