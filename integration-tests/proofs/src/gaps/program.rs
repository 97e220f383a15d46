//! The program that measures how long locks of sessions have no leader.

use std::time::Duration;

use clap::Args;

use super::{Event, HEAD, Pace, Settings, Throttle, row};

/// Starts, stops, kills and adds members of a fleet on paused time, beside a store as slow as a real one, and prints the times
/// without a leader as a table in Markdown.
#[derive(Args, Debug)]
pub struct Arguments {
    /// The numbers of locks
    #[arg(long, default_values_t = [1_000, 10_000])]
    locks: Vec<usize>,
    /// The number of members
    #[arg(long, default_value_t = 3)]
    members: usize,
    /// The milliseconds of a read or a write
    #[arg(long, default_value_t = 30)]
    request: u64,
    /// The milliseconds of a page of a listing
    #[arg(long, default_values_t = [60, 250])]
    page: Vec<u64>,
    /// The number of locks of one member alone that restarts; 0 leaves this out
    #[arg(long, default_value_t = 100_000)]
    alone: usize,
}

impl Arguments {
    /// Measures, and prints the table.
    ///
    /// # Panics
    ///
    /// If a lock has two leaders.
    pub fn carry_out(self) {
        let Self { locks, members, request, page, alone } = self;
        let pace = |page| {
            let [request, page] = [request, page].map(Duration::from_millis);
            Pace { request, page, throttle: Throttle::Never }
        };
        println!("{HEAD}");
        let measure = |event: Event, settings: Settings| {
            let measured = event.measure(settings);
            assert_eq!(measured.overlaps, 0, "two leaders of one lock");
            println!("{}", row(event, settings, &measured));
        };
        for (locks, page) in locks.iter().flat_map(|locks| page.iter().map(move |page| (*locks, *page))) {
            for event in [Event::Start, Event::Restart, Event::Crashed, Event::Roll, Event::Crash, Event::Join] {
                measure(event, Settings { locks, members, pace: pace(page), hears: false, balances: true });
            }
        }
        if alone > 0 {
            for event in [Event::Start, Event::Restart] {
                let settings = Settings { locks: alone, members: 1, pace: pace(page[0]), hears: false, balances: true };
                measure(event, settings);
            }
        }
    }
}
