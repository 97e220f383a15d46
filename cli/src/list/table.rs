//! The tables of `list`.

use chrono::{DateTime, Utc};
use comfy_table::{Cell, CellAlignment, Table, presets};
use unicode_width::UnicodeWidthStr;

use crate::plain::{cut, plain};
use crate::survey::Row;
use crate::view::{self, SessionRow, View};

/// The shortest part of a name that still tells something.
const SHORTEST: usize = 12;

/// The table of all locks. If it would be wider than `width`, holders and then sessions are cut.
pub(super) fn of_locks(locks: &[Row], now: DateTime<Utc>, width: Option<usize>) -> String {
    let whole = locks_with(locks, now, usize::MAX, usize::MAX);
    let Some(width) = width else { return whole };
    let excess =
        |table: &str| table.lines().map(UnicodeWidthStr::width).max().unwrap_or_default().saturating_sub(width);
    let longest = |name: fn(&View) -> Option<&str>| {
        locks.iter().filter_map(|lock| name(&lock.view)).map(|name| plain(name).to_string().width()).max()
    };
    let most = |longest: Option<usize>, excess: usize| match excess {
        0 => usize::MAX,
        excess => longest.unwrap_or_default().saturating_sub(excess).max(SHORTEST),
    };
    let holder = most(longest(|view| view.holder.as_deref()), excess(&whole));
    let narrow = locks_with(locks, now, holder, usize::MAX);
    let session = most(longest(|view| view.session.as_ref().map(|session| session.id.as_str())), excess(&narrow));
    locks_with(locks, now, holder, session)
}

fn locks_with(locks: &[Row], now: DateTime<Utc>, longest_holder: usize, longest_session: usize) -> String {
    let has_sessions = locks.iter().any(|lock| lock.view.session.is_some());
    let session = has_sessions.then_some("SESSION");
    let header = ["LOCK", "STATE", "HOLDER"].into_iter().chain(session);
    let mut table = table(header.chain(["TOKEN", "LEASE", "SINCE", "RENEWED"]));
    for Row { key, view, standing, .. } in locks {
        let is_held = view.holder.is_some();
        let holder = view.holder.as_deref().unwrap_or("-");
        let session = has_sessions.then(|| match &view.session {
            Some(session) if session.has_ended() => format!("{} (ended)", cut(&session.id, longest_session)),
            Some(session) => cut(&session.id, longest_session),
            None => "-".to_owned(),
        });
        let since = view.by_holders_clock.and_then(|times| times.acquire_time);
        let mut row = vec![Cell::new(plain(key)), Cell::new(standing.word()), Cell::new(cut(holder, longest_holder))];
        row.extend(session.map(Cell::new));
        row.push(number(view.fencing_token));
        row.push(duration(view.lease().filter(|_| is_held)));
        row.push(age(since.filter(|_| is_held), now));
        row.push(age(view.renewed().filter(|_| is_held), now));
        table.add_row(row);
    }
    text(table)
}

pub(super) fn of_sessions(sessions: &[SessionRow], now: DateTime<Utc>) -> String {
    let mut table = table(["SESSION", "HOLDER", "LOCKS", "LEASE", "SINCE", "RENEWED"].into_iter());
    for session in sessions {
        let is_open = session.holder.is_some();
        let times = session.object.by_holders_clock.filter(|_| is_open);
        table.add_row([
            Cell::new(plain(&session.id)),
            Cell::new(plain(session.holder.as_deref().unwrap_or("(ended)"))),
            number(session.locks.map(|locks| locks as u64)),
            duration(session.object.lease_duration),
            age(times.and_then(|times| times.acquire_time), now),
            age(times.and_then(|times| times.renew_time), now),
        ]);
    }
    text(table)
}

fn table<'a>(header: impl Iterator<Item = &'a str>) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header);
    table
}

fn number(number: Option<u64>) -> Cell {
    Cell::new(number.map_or_else(|| "-".to_owned(), |number| number.to_string())).set_alignment(CellAlignment::Right)
}

fn duration(duration: Option<std::time::Duration>) -> Cell {
    Cell::new(duration.map_or_else(|| "-".to_owned(), |duration| humantime::format_duration(duration).to_string()))
}

fn age(time: Option<DateTime<Utc>>, now: DateTime<Utc>) -> Cell {
    Cell::new(time.map_or_else(|| "-".to_owned(), |time| view::ago(time, now)))
}

fn text(mut table: Table) -> String {
    let columns: Vec<_> = table.column_iter_mut().collect();
    for column in columns {
        column.set_padding((0, 3));
    }
    table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}
