//! Commands that are stopped, or that want the terminal, and signals that are to be ignored.

use std::process::Command;

use rustix::process::Signal;

use crate::support::{LONG, PROGRAM, Place, Running, TELLING, record, run};
use crate::terminal::Terminal;

#[test]
fn a_command_that_was_stopped_is_told_of_and_ends_when_it_is_told_to() {
    let place = Place::new();
    for signal in [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT] {
        let mut running = Running::start(&run(&place.lock("a"), &LONG, &["sh", "-c", "kill -STOP $$; exec sleep 300"]));
        running.wait_for_note("SIGSTOP stopped the command");
        running.signal(signal);
        let ended = running.end();
        assert_eq!(ended.code, Some(128 + signal.as_raw()), "{ended:?}");
        assert!(place.record("a").is_released());
    }
}

#[test]
fn a_command_that_was_stopped_can_be_continued() {
    let place = Place::new();
    let command = "kill -STOP $$; echo continued; exit 4";
    let mut running = Running::start(&run(&place.lock("a"), &LONG, &["sh", "-c", command]));
    let note = running.wait_for_note("continue the command with `");
    let (hint, _) = note.split_once('`').unwrap();
    assert!(Command::new("sh").args(["-c", hint]).status().unwrap().success(), "{hint}");
    let ended = running.end();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(4), "continued"), "{ended:?}");
}

#[test]
fn a_command_that_reads_from_the_terminal_gets_it() {
    let place = Place::new();
    let lock = place.lock("a");
    let asks = "echo name?; read name </dev/tty; echo hello $name; sleep 300 & wait; echo woken";
    let mut terminal = Terminal::start(&run(&lock, &LONG, &["sh", "-c", asks]), &[]);
    terminal.wait_for("name?");
    terminal.press("Eve\r");
    terminal.wait_for("hello Eve");
    // The command has the foreground now, and with it Ctrl-C.
    terminal.press("\u{3}");
    let (code, screen) = terminal.end();
    assert_eq!(code, 130, "{screen:?}");
    assert!(place.record("a").is_released());
}

#[test]
fn ctrl_c_reaches_leaderelect_while_ctrl_z_stops_the_command() {
    let place = Place::new();
    let lock = place.lock("a");
    let asks = "echo name?; read name </dev/tty; echo hello $name; exec sleep 300";
    let mut terminal = Terminal::start(&run(&lock, &LONG, &["sh", "-c", asks]), &[]);
    terminal.wait_for("name?");
    terminal.press("Eve\r");
    terminal.wait_for("hello Eve");
    terminal.press("\u{1a}");
    terminal.wait_for("SIGTSTP stopped the command");
    terminal.press("\u{3}");
    let (code, screen) = terminal.end();
    assert_eq!(code, 130, "{screen:?}");
    assert!(place.record("a").is_released());
}

#[test]
fn ctrl_c_on_the_command_in_the_foreground_ends_a_campaign() {
    let place = Place::new();
    let lock = place.lock("a");
    let options = [&LONG[..], &["--campaign"]].concat();
    let mut terminal = Terminal::start(
        &run(&lock, &options, &["sh", "-c", "echo name?; read name </dev/tty; echo hello; exec sleep 300"]),
        &[],
    );
    terminal.wait_for("name?");
    terminal.press("Eve\r");
    terminal.wait_for("hello");
    terminal.press("\u{3}");
    let (code, screen) = terminal.end();
    assert_eq!(code, 130, "{screen:?}");
}

#[test]
fn words_from_the_background_of_a_terminal_that_wants_none_stop_nobody() {
    let place = Place::new();
    let lock = place.lock("a");
    let asks = "stty tostop </dev/tty; read name </dev/tty; echo hello; exec sleep 300";
    let mut terminal = Terminal::start(&run(&lock, &LONG, &["sh", "-c", asks]), &[]);
    terminal.press("Eve\r");
    terminal.wait_for("hello");
    place.overwrite("a", &record("thief", "1h", 7, "1"));
    let (code, screen) = terminal.end();
    assert!(screen.contains("leadership is lost"), "{screen:?}");
    assert_eq!(code, 79, "{screen:?}");
}

/// A shell that starts the program with signals ignored, as `nohup` and background jobs are.
fn ignoring(signals: &str, args: &[&str]) -> Command {
    let mut command = Command::new("sh");
    let parent = std::process::id().to_string();
    command.args([
        "-c",
        &format!("trap '' {signals}; exec \"$0\" \"$@\""),
        PROGRAM,
        "__start",
        "--parent",
        &parent,
        "--",
    ]);
    command.arg(PROGRAM).args(args).stdin(std::process::Stdio::null());
    for name in TELLING {
        command.env_remove(name);
    }
    command
}

#[test]
#[cfg(target_os = "linux")]
fn a_signal_that_was_to_be_ignored_stays_ignored() {
    let place = Place::new();
    let tells = "trap 'echo HUP' HUP; trap 'echo INT' INT; trap 'echo QUIT' QUIT; trap 'echo USR1' USR1; echo up; \
                 while :; do sleep 0.02; done";
    let mut running = Running::of(ignoring("HUP INT QUIT", &run(&place.lock("a"), &LONG, &["bash", "-c", tells])));
    running.wait_for("up");
    for signal in [Signal::HUP, Signal::INT, Signal::QUIT, Signal::USR1] {
        running.signal(signal);
    }
    running.wait_for("USR1");
    running.signal(Signal::TERM);
    let ended = running.end();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(143), "up\nUSR1"), "{ended:?}");
}
