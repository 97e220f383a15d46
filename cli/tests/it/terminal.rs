//! The behaviour that depends on a terminal: colour, progress, questions, Ctrl-C.

use std::io::Write;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

use crate::support::{LONG, PATIENCE, PROGRAM, Place, TELLING, record, run};

/// Wide enough for every line.
const SIZE: PtySize = PtySize { rows: 24, cols: 400, pixel_width: 0, pixel_height: 0 };

/// The program in a pseudo-terminal. Ends when dropped: the terminal hangs up, and it is killed.
pub(crate) struct Terminal {
    child: Box<dyn Child + Send + Sync>,
    master: Option<Box<dyn MasterPty + Send>>,
    screen: Receiver<Vec<u8>>,
    seen: String,
    keys: Box<dyn Write + Send>,
}

impl Terminal {
    pub(crate) fn start(args: &[&str], environment: &[(&str, &str)]) -> Self {
        Self::start_in(SIZE, args, environment)
    }

    fn start_in(size: PtySize, args: &[&str], environment: &[(&str, &str)]) -> Self {
        let pair = native_pty_system().openpty(size).unwrap();
        let mut command = CommandBuilder::new(PROGRAM);
        command.args(["__start", "--parent", &std::process::id().to_string(), "--", PROGRAM]);
        command.args(args);
        command.env("TERM", "xterm");
        for name in TELLING {
            command.env_remove(name);
        }
        for (name, value) in environment {
            command.env(name, value);
        }
        let child = pair.slave.spawn_command(command).unwrap();
        let mut reader = pair.master.try_clone_reader().unwrap();
        let keys = pair.master.take_writer().unwrap();
        let (sender, screen) = channel();
        std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(read @ 1..) = reader.read(&mut chunk) {
                if sender.send(chunk[..read].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { child, master: Some(pair.master), screen, seen: String::new(), keys }
    }

    pub(crate) fn wait_for(&mut self, text: &str) {
        while !self.seen.contains(text) {
            match self.screen.recv_timeout(PATIENCE) {
                Ok(chunk) => self.seen.push_str(&String::from_utf8_lossy(&chunk)),
                Err(_) => panic!("no {text:?} on the screen: {:?}", self.seen),
            }
        }
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// The exit code, and all that was on the screen.
    pub(crate) fn end(mut self) -> (u32, String) {
        loop {
            match self.screen.recv_timeout(PATIENCE) {
                Ok(chunk) => self.seen.push_str(&String::from_utf8_lossy(&chunk)),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("it does not end: {:?}", self.seen),
            }
        }
        let code = self.child.wait().unwrap().exit_code();
        (code, std::mem::take(&mut self.seen))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Ended already where the test went well.
        let _ = self.child.kill();
        let _ = self.child.wait();
        drop(self.master.take());
    }
}

fn held() -> (Place, String) {
    let place = Place::new();
    place.overwrite("a", &record("node-1", "1h", 7, "1"));
    let lock = place.lock("a");
    (place, lock)
}

#[test]
fn colour_is_for_terminals_and_there_only_if_wanted() {
    let (_place, lock) = held();
    let (code, screen) = Terminal::start(&["status", &lock], &[]).end();
    assert_eq!(code, 0, "{screen:?}");
    assert!(screen.contains("\x1b[32mnode-1 holds the lease\x1b[0m"), "{screen:?}");
    for off in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        let (_, screen) = Terminal::start(&["status", &lock], &[off]).end();
        assert!(screen.contains("node-1") && !screen.contains('\x1b'), "{off:?}: {screen:?}");
    }
    let ended = crate::support::end(&["status", &lock]);
    assert!(!ended.stdout.contains('\x1b'), "{ended:?}");
}

#[test]
fn list_cuts_identities_to_the_width_of_the_terminal() {
    let place = Place::new();
    let long = format!("node-{}-end", "x".repeat(150));
    place.overwrite("a", &record(&long, "1h", 7, "1"));
    place.overwrite("b", &record("node-2", "1h", 7, "1"));
    let list = |cols| {
        let (_, written) = Terminal::start_in(PtySize { cols, ..SIZE }, &["list", &place.prefix()], &[]).end();
        written.lines().filter(|line| line.starts_with(['a', 'b'])).map(str::to_owned).collect::<Vec<_>>()
    };
    for cols in [100, 120] {
        let lines = list(cols);
        assert_eq!(lines.len(), 2, "{lines:?}");
        let longest = lines.iter().map(|line| line.chars().count()).max().unwrap();
        assert!(longest <= usize::from(cols) && longest + 3 >= usize::from(cols), "{longest} of {cols}: {lines:?}");
        assert!(lines[0].contains("node-xx") && lines[0].contains("xx-end"), "{lines:?}");
    }
    assert!(list(400)[0].contains(&long));
    let piped = crate::support::end(&["list", &place.prefix()]);
    assert!(piped.stdout.contains(&long), "what is no terminal is shown all: {piped:?}");
}

#[test]
fn list_fits_a_narrow_terminal() {
    let place = Place::new();
    let (key, holder) = (format!("team/{}", "service".repeat(6)), format!("node-{}-end", "x".repeat(50)));
    place.overwrite(&key, &record(&holder, "1h", 7, "1"));
    let size = PtySize { cols: 60, ..SIZE };
    let (_, written) = Terminal::start_in(size, &["list", &place.prefix()], &[]).end();
    let (_, written) = written.rsplit_once("\u{1b}[K").unwrap();
    let widest = written.lines().map(|line| line.trim_end().chars().count()).max().unwrap();
    assert!(widest <= 60, "{widest}: {written}");
    let parts = ["LOCK", "STATE", "HOLDER", "RENEWED", "team/", "held", "node-", "-end"];
    assert!(parts.iter().all(|part| written.contains(part)), "{written}");
}

/// Returns the text that a terminal shows after all output.
fn rendered(written: &str) -> String {
    let mut terminal = vt100::Parser::new(SIZE.rows.try_into().unwrap(), SIZE.cols.try_into().unwrap(), 0);
    terminal.process(written.as_bytes());
    terminal.screen().contents()
}

#[test]
fn progress_is_for_terminals_and_is_wiped_off() {
    let (_place, lock) = held();
    let args = ["status", "--watch-for", "600ms", &lock];
    let (_, written) = Terminal::start(&args, &[]).end();
    assert!(written.contains("waiting for a renewal"), "{written:?}");
    let screen = rendered(&written);
    assert!(screen.starts_with(&lock) && !screen.contains("waiting for a renewal"), "{screen}");
    let ended = crate::support::end(&args);
    assert_eq!(ended.stderr, "", "{ended:?}");
}

#[test]
fn progress_is_not_for_who_wants_none_or_cannot_wipe_it_off() {
    let (_place, lock) = held();
    let args = ["status", "--watch-for", "600ms", &lock];
    let (_, written) = Terminal::start(&[&["--quiet"][..], &args].concat(), &[]).end();
    assert!(!written.contains("waiting for a renewal"), "{written:?}");
    for off in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        let (code, written) = Terminal::start(&args, &[off]).end();
        assert!(code == 0 && written.starts_with(&lock), "{off:?}: {written:?}");
        assert!(!written.contains("waiting for a renewal"), "{off:?}: {written:?}");
    }
}

#[test]
fn an_error_wipes_progress_off_too() {
    let (place, lock) = held();
    let mut terminal = Terminal::start(&["status", "--watch-for", "1h", &lock], &[]);
    terminal.wait_for("waiting for a renewal");
    place.cut_off("locks");
    let (code, written) = terminal.end();
    let screen = rendered(&written);
    assert!(code == 69 && screen.starts_with("leaderelect: error: "), "{code}: {screen}");
}

#[test]
fn a_release_is_asked_for_and_anything_but_yes_is_no() {
    for answer in ["n\r", "\r", "maybe\r", "\u{4}"] {
        let (place, lock) = held();
        let before = place.record("a");
        let mut terminal = Terminal::start(&["release", "--force", &lock], &[]);
        terminal.wait_for("\"node-1\" holds");
        terminal.wait_for("[y/N]");
        terminal.press(answer);
        let (code, screen) = terminal.end();
        assert_eq!(code, 75, "{screen:?}");
        assert!(screen.contains("nothing was changed"), "{screen:?}");
        assert_eq!(place.record("a"), before);
    }
}

#[test]
fn yes_is_yes_and_may_be_said_beforehand() {
    let (place, lock) = held();
    let mut terminal = Terminal::start(&["release", "--force", &lock], &[]);
    terminal.wait_for("[y/N]");
    terminal.press("y\r");
    let (code, screen) = terminal.end();
    assert_eq!(code, 0, "{screen:?}");
    assert!(place.record("a").is_released());

    let (place, lock) = held();
    let mut terminal = Terminal::start(&["transfer", "--to", "node-2", &lock], &[]);
    terminal.wait_for("If no candidate has this name, nobody leads for");
    terminal.wait_for("[y/N]");
    terminal.press("yes\r");
    assert_eq!(terminal.end().0, 0);
    assert_eq!(place.record("a").preferred_holder.as_deref(), Some("node-2"));

    let (place, lock) = held();
    let (code, screen) = Terminal::start(&["release", "--force", "--yes", &lock], &[]).end();
    assert_eq!(code, 0, "{screen:?}");
    assert!(!screen.contains("[y/N]"), "{screen:?}");
    assert!(place.record("a").is_released());
}

#[test]
fn ctrl_c_reaches_the_command_and_the_lease_is_released() {
    let place = Place::new();
    let lock = place.lock("a");
    let work = "trap 'echo interrupted; exit 9' INT; echo up; while :; do sleep 0.02; done";
    let mut terminal = Terminal::start(&run(&lock, &LONG, &["sh", "-c", work]), &[]);
    terminal.wait_for("up\r\n");
    terminal.press("\u{3}");
    let (code, screen) = terminal.end();
    assert_eq!(code, 9, "{screen:?}");
    assert!(screen.contains("interrupted"), "{screen:?}");
    assert!(place.record("a").is_released());
}

#[test]
fn a_command_that_reads_finds_its_input_empty_and_is_not_stopped() {
    let place = Place::new();
    let lock = place.lock("a");
    let terminal = Terminal::start(&run(&lock, &LONG, &["sh", "-c", "cat; echo read all"]), &[]);
    let (code, screen) = terminal.end();
    assert_eq!(code, 0, "{screen:?}");
    assert!(screen.contains("read all"), "{screen:?}");
}

#[test]
fn ctrl_c_ends_the_wait() {
    let (_place, lock) = held();
    let mut terminal = Terminal::start(&run(&lock, &LONG, &["true"]), &[]);
    terminal.wait_for("node-1 leads");
    terminal.press("\u{3}");
    let (code, screen) = terminal.end();
    assert_eq!(code, 130, "{screen:?}");
}
