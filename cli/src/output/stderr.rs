//! Standard error, written by a thread of its own.
//!
//! A write to standard error may take forever, for example to a pipe that nobody reads. No such write may hold up a
//! renewal or a signal, so other threads only add to a queue. A message that finds the queue full is dropped and
//! counted. An error of standard error itself is nobody's concern.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tracing::Level;

use super::line::{Line, Rendering};

/// The number of messages that may wait.
const MOST: usize = 1000;

/// The sequence that erases the line of a terminal.
const ERASE: &[u8] = b"\r\x1b[K";

/// Queues messages for standard error. Clones share one queue.
#[derive(Clone, Debug)]
pub(crate) struct Stderr(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    rendering: Rendering,
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    messages: VecDeque<Message>,
    /// The messages that were dropped since the last message that was not.
    dropped: u64,
    is_writing: bool,
}

impl Queue {
    fn is_done(&self) -> bool {
        self.messages.is_empty() && self.dropped == 0 && !self.is_writing
    }

    fn push(&mut self, message: Message, rendering: Rendering) {
        if self.messages.len() >= MOST {
            self.dropped += 1;
            return;
        }
        let report = self.report_dropped(rendering);
        self.messages.extend(report);
        self.messages.push_back(message);
    }

    fn pop(&mut self, rendering: Rendering) -> Option<Message> {
        self.messages.pop_front().or_else(|| self.report_dropped(rendering))
    }

    fn report_dropped(&mut self, rendering: Rendering) -> Option<Message> {
        let dropped = std::mem::take(&mut self.dropped);
        let text = format!("{dropped} messages were dropped, because standard error was blocked");
        (dropped > 0).then(|| Message::Text(Line::said(Level::WARN, text).render(rendering).into_bytes()))
    }
}

#[derive(Debug)]
enum Message {
    /// Whole lines, or a question.
    Text(Vec<u8>),
    /// A line that the next message erases.
    Progress(Vec<u8>),
    /// Nothing but the end of the last progress line.
    Done,
}

impl Stderr {
    /// Starts the thread.
    pub(super) fn start(rendering: Rendering) -> io::Result<Self> {
        let stderr = Self(Arc::new(Shared { rendering, ..Shared::default() }));
        let writer = stderr.clone();
        let write = move || writer.write_all_to(&mut Terminal::new(io::stderr()));
        thread::Builder::new().name("stderr".to_owned()).spawn(write)?;
        Ok(stderr)
    }

    pub(super) fn line(&self, line: &Line) {
        self.text(line.render(self.0.rendering));
    }

    pub(crate) fn text(&self, text: impl Into<Vec<u8>>) {
        self.push(Message::Text(text.into()));
    }

    /// Shows a line until the next message.
    pub(crate) fn progress(&self, line: impl Into<Vec<u8>>) {
        self.push(Message::Progress(line.into()));
    }

    /// Erases the progress line.
    pub(crate) fn done(&self) {
        self.push(Message::Done);
    }

    /// Waits until all messages are written, or until `limit` is over.
    pub(crate) fn flush(&self, limit: Duration) {
        let not_done = |queue: &mut Queue| !queue.is_done();
        drop(self.0.changed.wait_timeout_while(self.queue(), limit, not_done));
    }

    fn push(&self, message: Message) {
        self.queue().push(message, self.0.rendering);
        self.0.changed.notify_all();
    }

    fn write_all_to(&self, terminal: &mut Terminal<impl Write>) {
        loop {
            let mut queue = self.queue();
            queue.is_writing = false;
            self.0.changed.notify_all();
            let message = loop {
                if let Some(message) = queue.pop(self.0.rendering) {
                    break message;
                }
                queue = self.0.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
            };
            queue.is_writing = true;
            drop(queue);
            terminal.write(&message);
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The stream, and the line on it that is yet to be erased.
#[derive(Debug)]
struct Terminal<W> {
    stream: W,
    shows_progress: bool,
}

impl<W: Write> Terminal<W> {
    fn new(stream: W) -> Self {
        Self { stream, shows_progress: false }
    }

    fn write(&mut self, message: &Message) {
        let mut bytes = if self.shows_progress { ERASE.to_vec() } else { Vec::new() };
        self.shows_progress = matches!(message, Message::Progress(_));
        if let Message::Text(text) | Message::Progress(text) = message {
            bytes.extend(text);
        }
        // One write per message keeps it together if other processes share the stream.
        let _ = self.stream.write_all(&bytes).and_then(|()| self.stream.flush());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    /// A stream whose every write waits until the test takes it.
    struct Slow(Sender<Vec<u8>>, Receiver<()>);

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.send(bytes.to_vec()).map_err(io::Error::other)?;
            self.1.recv().map_err(io::Error::other)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn slow() -> (Stderr, Receiver<Vec<u8>>, Sender<()>) {
        let ((written, seen), (go_on, waits)) = (channel(), channel());
        let stderr = Stderr(Arc::default());
        let writer = stderr.clone();
        thread::spawn(move || writer.write_all_to(&mut Terminal::new(Slow(written, waits))));
        (stderr, seen, go_on)
    }

    fn text(seen: &Receiver<Vec<u8>>) -> String {
        String::from_utf8(seen.recv_timeout(PATIENCE).unwrap()).unwrap()
    }

    #[test]
    fn a_stuck_stream_holds_up_nobody_and_drops_are_counted() {
        let (stderr, seen, go_on) = slow();
        stderr.text("first\n");
        assert_eq!(text(&seen), "first\n");
        for number in 0..MOST + 7 {
            stderr.text(format!("{number}\n"));
        }
        stderr.flush(Duration::ZERO);
        for number in 0..MOST {
            go_on.send(()).unwrap();
            assert_eq!(text(&seen), format!("{number}\n"));
        }
        go_on.send(()).unwrap();
        assert_eq!(text(&seen), "leaderelect: 7 messages were dropped, because standard error was blocked\n");
        stderr.text("last\n");
        go_on.send(()).unwrap();
        assert_eq!(text(&seen), "last\n");
        go_on.send(()).unwrap();
        stderr.flush(PATIENCE);
        assert!(stderr.queue().is_done());
    }

    #[test]
    fn dropped_messages_are_told_of_before_later_ones() {
        let mut queue = Queue::default();
        for _ in 0..=MOST {
            queue.push(Message::Done, Rendering::default());
        }
        queue.pop(Rendering::default());
        queue.push(Message::Done, Rendering::default());
        let Some(Message::Text(text)) = queue.messages.get(MOST - 1) else { panic!("{:?}", queue.messages) };
        assert!(text.starts_with(b"leaderelect: 1 messages were dropped"), "{queue:?}");
    }

    #[test]
    fn an_error_of_the_stream_is_ignored() {
        let mut terminal = Terminal::new(&mut [][..]);
        terminal.write(&Message::Text(b"no room".to_vec()));
    }

    #[test]
    fn whatever_follows_erases_a_progress_line() {
        let mut terminal = Terminal::new(Vec::new());
        for message in [
            Message::Progress(b"half".to_vec()),
            Message::Progress(b"nearly".to_vec()),
            Message::Text(b"a line\n".to_vec()),
            Message::Progress(b"all".to_vec()),
            Message::Done,
            Message::Done,
        ] {
            terminal.write(&message);
        }
        assert_eq!(terminal.stream, b"half\r\x1b[Knearly\r\x1b[Ka line\nall\r\x1b[K");
    }
}
