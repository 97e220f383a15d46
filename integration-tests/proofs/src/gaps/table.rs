//! The measurements as a table in Markdown.

use std::time::Duration;

use super::measure::{Event, Measured, Settings};

/// The first two lines of the table.
pub const HEAD: &str = "\
| event | locks | page | all led after | without a leader: median | 99 of 100 | worst | moved: median | 99 of 100 \
| last move after | share off by | writes refused | requests | renewals sent within | landed within |
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
        format!("{}{}", name(event), if settings.hears { ", members hear each other" } else { "" }),
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
        seconds(measured.renewals.landed),
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
