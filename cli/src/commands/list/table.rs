//! The tables of `list`.

use chrono::{DateTime, Utc};
use comfy_table::{Cell, CellAlignment};
use unicode_width::UnicodeWidthStr;

use crate::lock::view::{self, SessionRow};
use crate::output::escape::{LONGEST_NAME, cut, escape};
use crate::output::table::{cell, text};
use crate::survey::Row;

/// The shortest part of a name that still tells something.
const SHORTEST: usize = 12;

/// The columns that a narrow terminal does without, in this order.
const SPARE: [&str; 3] = ["LEASE", "SINCE", "TOKEN"];

/// The most characters of names, and the number of spare columns that are left out.
#[derive(Clone, Copy, Debug)]
struct Shape {
    holder: usize,
    session: usize,
    key: usize,
    left_out: usize,
}

/// The table of all locks. If it would be wider than `width`, holders and then sessions are cut, then columns are left out,
/// and at last the names of locks are cut.
pub(super) fn of_locks(locks: &[Row], now: DateTime<Utc>, width: Option<usize>) -> String {
    let mut shape = Shape { holder: LONGEST_NAME, session: LONGEST_NAME, key: LONGEST_NAME, left_out: 0 };
    let Some(width) = width else { return locks_in(locks, now, shape) };
    let excess = |shape| {
        let table = locks_in(locks, now, shape);
        table.lines().map(UnicodeWidthStr::width).max().unwrap_or_default().saturating_sub(width)
    };
    let longest = |name: fn(&Row) -> Option<&str>| {
        locks.iter().filter_map(name).map(|name| escape(name).width()).max().unwrap_or_default()
    };
    let most = |longest: usize, excess: usize| match excess {
        0 => LONGEST_NAME,
        excess => longest.min(LONGEST_NAME).saturating_sub(excess).max(SHORTEST),
    };
    shape.holder = most(longest(|lock| lock.view.holder.as_deref()), excess(shape));
    shape.session = most(longest(|lock| Some(lock.view.session.as_ref()?.id.as_str())), excess(shape));
    while shape.left_out < SPARE.len() && excess(shape) > 0 {
        shape.left_out += 1;
    }
    shape.key = most(longest(|lock| Some(&lock.key)), excess(shape));
    locks_in(locks, now, shape)
}

fn locks_in(locks: &[Row], now: DateTime<Utc>, shape: Shape) -> String {
    let is_shown = |name: &&str| !SPARE[..shape.left_out].contains(name);
    let has_sessions = locks.iter().any(|lock| lock.view.session.is_some());
    let session = has_sessions.then_some("SESSION");
    let header: Vec<_> = ["LOCK", "STATE", "HOLDER"].into_iter().chain(session).collect();
    let header: Vec<_> = header.into_iter().chain(["TOKEN", "LEASE", "SINCE", "RENEWED"]).collect();
    let row = |Row { key, view, .. }: &Row| {
        let is_held = view.holder.is_some();
        let session = has_sessions.then(|| match &view.session {
            Some(session) if session.has_ended() => format!("{} (ended)", cut(&session.id, shape.session)),
            Some(session) => cut(&session.id, shape.session),
            None => "-".to_owned(),
        });
        let since = view.by_holders_clock.and_then(|times| times.acquire_time).filter(|_| is_held);
        let mut row = vec![
            Cell::new(cut(key, shape.key)),
            Cell::new(view.status),
            cell(view.holder.as_ref().map(|holder| cut(holder, shape.holder))),
        ];
        row.extend(session.map(Cell::new));
        row.push(cell(view.fencing_token).set_alignment(CellAlignment::Right));
        row.push(cell(view.lease().filter(|_| is_held).map(humantime::format_duration)));
        row.push(cell(since.map(|time| view::ago(time, now))));
        row.push(cell(view.renewed().filter(|_| is_held).map(|time| view::ago(time, now))));
        header.iter().zip(row).filter(|(name, _)| is_shown(name)).map(|(_, cell)| cell).collect()
    };
    text(header.iter().copied().filter(is_shown), locks.iter().map(row))
}

pub(super) fn of_sessions(sessions: &[SessionRow], now: DateTime<Utc>) -> String {
    let is_busy = sessions.iter().any(|session| session.object.progress.is_some());
    let work = is_busy.then_some("WORK");
    let row = |session: &SessionRow| {
        let times = session.object.by_holders_clock.filter(|_| session.holder.is_some());
        let mut row = vec![
            Cell::new(cut(&session.id, LONGEST_NAME)),
            Cell::new(cut(session.holder.as_deref().unwrap_or("(ended)"), LONGEST_NAME)),
            cell(session.locks).set_alignment(CellAlignment::Right),
            cell(session.object.lease_duration.map(humantime::format_duration)),
            cell(times.and_then(|times| times.acquire_time).map(|time| view::ago(time, now))),
            cell(times.and_then(|times| times.renew_time).map(|time| view::ago(time, now))),
        ];
        row.extend(is_busy.then(|| cell(session.object.progress.as_ref().map(view::work))));
        row
    };
    text(["SESSION", "HOLDER", "LOCKS", "LEASE", "SINCE", "RENEWED"].into_iter().chain(work), sessions.iter().map(row))
}
