//! The arguments of a program that measures how long locks of sessions have no leader, and its table in Markdown.

use std::time::Duration;

use clap::Args;

use super::measure::{Event, Measured, Settings};
use crate::counted::{Pace, Throttle};

/// Starts, stops, kills and adds members of a fleet beside a store as slow as a real one, and prints the times without a leader
/// as a table in Markdown.
#[derive(Args, Debug)]
pub struct Arguments {
    /// The events
    #[arg(long = "event", value_enum, default_values_t = [Event::Start, Event::Restart, Event::Crashed, Event::Roll, Event::Crash, Event::Join])]
    events: Vec<Event>,
    /// The numbers of locks
    #[arg(long, default_values_t = [1_000, 10_000])]
    locks: Vec<usize>,
    /// The number of members
    #[arg(long, default_value_t = 3)]
    members: usize,
    /// The milliseconds that a read or a write takes longer than the store does by itself
    #[arg(long, default_value_t = 30)]
    request: u64,
    /// The milliseconds that a page of a listing takes longer
    #[arg(long, default_values_t = [60, 250])]
    page: Vec<u64>,
    /// The number of locks of one member alone that starts and restarts; 0 leaves this out
    #[arg(long, default_value_t = 100_000)]
    alone: usize,
    /// The store refuses every second request
    #[arg(long)]
    refuses: bool,
    /// The members send each other messages
    #[arg(long)]
    sends_messages: bool,
    /// The seconds for which a fleet rests before and after each change
    #[arg(long, default_value_t = 120)]
    rest: u64,
}

impl Arguments {
    /// Measures in simulated time, and prints the table.
    ///
    /// # Panics
    ///
    /// If a lock has two leaders.
    pub fn carry_out(self) {
        self.carry_out_on(Event::measure);
    }

    /// Prints the table of what `measure` finds.
    ///
    /// # Panics
    ///
    /// If a lock has two leaders.
    pub fn carry_out_on(self, measure: impl Fn(Event, Settings) -> Measured) {
        let Self { events, locks, members, request, page, alone, refuses, sends_messages, rest } = self;
        let throttle = if refuses { Throttle::EverySecond } else { Throttle::Never };
        let settings = |locks, members, page| {
            let [request, page] = [request, page].map(Duration::from_millis);
            let pace = Pace { request, page, throttle };
            Settings { locks, members, pace, sends_messages, balances: true, rest: Duration::from_secs(rest) }
        };
        println!("{HEAD}");
        let measure = |event: Event, settings: Settings| {
            let measured = measure(event, settings);
            assert_eq!(measured.overlaps, 0, "two leaders of one lock");
            println!("{}", row(event, settings, &measured));
        };
        for (locks, page) in locks.iter().flat_map(|locks| page.iter().map(move |page| (*locks, *page))) {
            for event in &events {
                measure(*event, settings(locks, members, page));
            }
        }
        if alone > 0 {
            for event in [Event::Start, Event::Restart] {
                measure(event, settings(alone, 1, page[0]));
            }
        }
    }
}

/// The first two lines of the table.
pub const HEAD: &str = "\
| event | locks | page | all led after | without a leader: median | 99 of 100 | worst | moved: median | 99 of 100 \
| last move after | share off by | writes refused | requests | renewals sent within | committed within |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|";

/// Returns one measurement as a line of the table.
#[must_use]
pub fn row(event: Event, settings: Settings, measured: &Measured) -> String {
    let all = measured.all_led.map_or_else(|| format!("{} led", measured.led), seconds);
    let of = |gaps: &[Duration], part: f64| {
        let index = ((gaps.len() as f64 - 1.0) * part).round();
        gaps.get(index as usize).map_or_else(String::new, |gap| seconds(*gap))
    };
    let moved = if event == Event::Join { &[][..] } else { &measured.moved };
    let cells = [
        format!("{}{}", name(event), if settings.sends_messages { ", members send each other messages" } else { "" }),
        settings.locks.to_string(),
        format!("{} ms", settings.pace.page.as_millis()),
        all,
        of(&measured.gaps, 0.5),
        of(&measured.gaps, 0.99),
        of(&measured.gaps, 1.0),
        of(moved, 0.5),
        of(moved, 0.99),
        if measured.balanced.is_zero() { String::new() } else { seconds(measured.balanced) },
        format!("{:.1} %", measured.unfair * 100.0),
        format!("{:.1} %", measured.refused * 100.0),
        measured.requests.to_string(),
        seconds(measured.renewals.sent),
        seconds(measured.renewals.committed),
    ];
    format!("| {} |", cells.join(" | "))
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

fn name(event: Event) -> &'static str {
    match event {
        Event::Start => "all start, no lock exists",
        Event::Restart => "one alone restarts",
        Event::Crashed => "one alone dies, and another starts",
        Event::Roll => "rolling restart",
        Event::Crash => "one dies",
        Event::Join => "one joins",
        Event::HandOvers => "each lock is given up",
    }
}
