//! The picture: the lease, and a line of time for every candidate.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use console::{Term, style, truncate_str};

use crate::world::{Candidate, State, World};

/// The number of cells of the bar that shows the lease's age.
const BAR: usize = 20;

/// The columns of a row that the line of time does not use.
const MARGIN: usize = 38;

#[derive(Debug)]
pub struct Panel {
    /// The time that one cell of a line of time shows.
    cell: Duration,
    next_cell: Instant,
    history: Vec<VecDeque<Cell>>,
    lines_on_screen: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cell {
    Leads,
    Follows,
    Frozen,
    Gone,
}

impl Panel {
    pub fn new(cell: Duration) -> Self {
        Self { cell, next_cell: Instant::now(), history: Vec::new(), lines_on_screen: 0 }
    }

    pub fn erase(&mut self, out: &Term) -> std::io::Result<()> {
        let lines = std::mem::take(&mut self.lines_on_screen);
        if lines > 0 {
            out.move_cursor_up(lines)?;
            out.clear_to_end_of_screen()?;
        }
        Ok(())
    }

    pub fn paint(&mut self, out: &Term, world: &World) -> std::io::Result<()> {
        let width = usize::from(out.size().1).max(MARGIN + 10);
        self.remember(world, width - MARGIN);
        let mut lines = vec![String::new(), lease(world), String::new()];
        for (candidate, cells) in world.candidates.iter().zip(&self.history) {
            let time: String = cells.iter().map(|cell| cell.drawn()).collect();
            let (name, doing) = match candidate.state {
                State::Leading { token } if !candidate.frozen => {
                    (style(&candidate.name).green().bold(), format!("leads, {} log entries", world.entries(token)))
                }
                _ => (style(&candidate.name), candidate.doing().to_owned()),
            };
            lines.push(format!("  {name}  {time}  {doing}"));
        }
        let key = [(Cell::Leads, "leads"), (Cell::Follows, "follows"), (Cell::Frozen, "frozen"), (Cell::Gone, "gone")];
        let key: String = key.map(|(cell, name)| format!("{} {name}   ", cell.drawn())).concat();
        lines.extend([String::new(), format!("       {key}")]);
        for line in &lines {
            out.write_line(&truncate_str(line, width - 1, "…"))?;
        }
        self.lines_on_screen = lines.len();
        Ok(())
    }

    /// Adds the current state to the lines of time, when the next cell is due.
    fn remember(&mut self, world: &World, longest: usize) {
        let now = Instant::now();
        if now < self.next_cell {
            return;
        }
        self.next_cell = now + self.cell;
        self.history.resize(world.candidates.len(), VecDeque::new());
        for (cells, candidate) in self.history.iter_mut().zip(&world.candidates) {
            cells.push_back(Cell::of(candidate));
            while cells.len() > longest {
                cells.pop_front();
            }
        }
    }
}

impl Cell {
    fn of(candidate: &Candidate) -> Self {
        match candidate.state {
            _ if candidate.frozen => Self::Frozen,
            State::Leading { .. } => Self::Leads,
            State::Following => Self::Follows,
            State::Gone { .. } => Self::Gone,
        }
    }

    fn drawn(self) -> String {
        match self {
            Self::Leads => style("█").green(),
            Self::Follows => style("·").dim(),
            Self::Frozen => style("▒").cyan(),
            Self::Gone => style("×").red(),
        }
        .to_string()
    }
}

/// The holder of the lease, and the used part of the lease.
fn lease(world: &World) -> String {
    let Some((token, term)) = world.terms.last_key_value() else { return "  nobody has led yet".to_owned() };
    let holder = style(&term.holder).bold();
    let number = world.terms.len();
    let (age, whole) = (term.renewal_age(), term.last_renewal.record.lease_duration);
    let state = if term.released {
        style("released".to_owned()).yellow()
    } else if age < whole {
        style(format!("{:.1}s of {:.1}s", age.as_secs_f64(), whole.as_secs_f64())).green()
    } else {
        style(format!("expired {:.1}s ago", (age - whole).as_secs_f64())).red()
    };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a bar")]
    let used = (age.div_duration_f64(whole) * BAR as f64) as usize;
    let used = used.min(BAR);
    let bar = format!("{}{}", style("▰".repeat(used)).dim(), style("▱".repeat(BAR - used)).green());
    format!("  {holder} holds term {number}, fencing token {token}   lease {bar} {state}")
}
