//! The view for the person who watches: lines, and on a terminal a moving picture below the lines.

mod panel;

use std::time::{Duration, Instant};

use console::{Term, style};

use crate::args::Settings;
use crate::world::World;

use panel::Panel;

#[derive(Debug)]
pub struct View {
    out: Term,
    started: Instant,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// The view in a file or a pipe: a line with the current state, from time to time.
    Lines {
        every: Duration,
        next: Instant,
    },
    Live(Panel),
}

impl View {
    pub fn new(settings: &Settings) -> Self {
        let out = Term::buffered_stdout();
        let started = Instant::now();
        let kind = if out.features().is_attended() {
            Kind::Live(Panel::new(settings.timing.retry))
        } else {
            Kind::Lines { every: settings.timing.lease / 2, next: started }
        };
        Self { out, started, kind }
    }

    /// Prints a line that stays.
    pub fn say(&mut self, world: &World, line: &str) {
        let time = format!("{:6.1}s", self.started.elapsed().as_secs_f64());
        self.paint(world, Some(&format!("{}  {line}", style(time).dim())));
    }

    /// Shows the current state.
    pub fn draw(&mut self, world: &World) {
        match &mut self.kind {
            Kind::Live(_) => self.paint(world, None),
            Kind::Lines { every, next } if *next <= Instant::now() => {
                *next = Instant::now() + *every;
                self.say(world, &standing(world));
            }
            Kind::Lines { .. } => {}
        }
    }

    /// Removes the moving picture. The printed lines stay.
    pub fn close(&mut self) {
        // An error of the terminal does not stop the election.
        if let Kind::Live(panel) = &mut self.kind {
            let _ = panel.erase(&self.out);
        }
        let _ = self.out.flush();
    }

    fn paint(&mut self, world: &World, line: Option<&str>) {
        let _ = self.try_paint(world, line);
    }

    fn try_paint(&mut self, world: &World, line: Option<&str>) -> std::io::Result<()> {
        if let Kind::Live(panel) = &mut self.kind {
            panel.erase(&self.out)?;
        }
        if let Some(line) = line {
            self.out.write_line(line)?;
        }
        if let Kind::Live(panel) = &mut self.kind {
            panel.paint(&self.out, world)?;
        }
        self.out.flush()
    }
}

/// Returns a line about the current leader.
fn standing(world: &World) -> String {
    let Some((token, term)) = world.terms.last_key_value() else { return "nobody has led yet".to_owned() };
    let number = world.terms.len();
    let name = &term.holder;
    let age = term.renewal_age().as_secs_f64();
    let what = if term.released {
        "released the lease".to_owned()
    } else if Instant::now() >= term.expires() {
        format!("let the lease expire, {age:.1}s old")
    } else {
        format!("holds the lease, {age:.1}s old")
    };
    let others: String =
        world.candidates.iter().filter(|c| c.name != *name).map(|c| format!(", {} {}", c.name, c.doing())).collect();
    let entries = world.entries(*token);
    format!("{name} {what}, term {number}, fencing token {token}, {entries} log entries{others}")
}
