//! A pipe that all processes of a command hold.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Instant;

use crate::support::{PATIENCE, Place};

/// A pipe that tells when the last process of a command is gone.
pub(crate) struct Pipe {
    pub(crate) path: String,
    lines: Receiver<Line>,
}

enum Line {
    Text(String),
    AllGone(Instant),
}

impl Pipe {
    pub(crate) fn new(place: &Place) -> Self {
        let path = place.path("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).unwrap();
        let (sender, lines) = channel();
        let opened = path.clone();
        thread::spawn(move || {
            // Opens when the command does. Whoever waits for the end says for how long.
            let mut lines = BufReader::new(File::open(opened).unwrap()).lines();
            sender.send(Line::Text(lines.next().unwrap().unwrap())).unwrap();
            lines.for_each(drop);
            sender.send(Line::AllGone(Instant::now()))
        });
        Self { path: path.to_str().unwrap().to_owned(), lines }
    }

    pub(crate) fn wait_for_start(&self) {
        let Ok(Line::Text(text)) = self.lines.recv_timeout(PATIENCE) else { panic!("the command did not start") };
        assert_eq!(text, "up");
    }

    /// A command that tells `led`, or `beside` if a process is left of a command that has a lock on the file descriptor of
    /// `$0.held`. The kernel releases such a lock when the last process ends that has inherited the descriptor, so no clock of
    /// a test that stands still is asked.
    pub(crate) fn next(&self) -> [&str; 4] {
        ["sh", "-c", "flock -n 5 5<\"$0.held\" && echo led || echo beside", &self.path]
    }

    /// Returns the moment at which the last process had ended.
    pub(crate) fn wait_for_end(&self) -> Instant {
        let Ok(Line::AllGone(when)) = self.lines.recv_timeout(PATIENCE) else { panic!("the command goes on") };
        when
    }
}
