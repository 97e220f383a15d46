//! The messages to systemd, over a socket like its own.

use std::os::unix::net::UnixDatagram;
use std::process::Command;

use rustix::process::Signal;

use crate::support::{LONG, PATIENCE, Place, Running, end_of, leaderelect, run};

/// The socket of a service manager.
pub(crate) struct Systemd(UnixDatagram);

impl Systemd {
    pub(crate) fn at(place: &Place) -> Self {
        Self::of(UnixDatagram::bind(place.path("notify")).unwrap())
    }

    fn of(socket: UnixDatagram) -> Self {
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Self(socket)
    }

    fn receive(&self) -> String {
        let mut message = [0; 4096];
        let length = self.0.recv(&mut message).expect("nothing more was said");
        String::from_utf8(message[..length].to_vec()).unwrap()
    }

    /// Waits for a message with such a line, and returns the messages before it.
    pub(crate) fn receive_until(&self, line: &str) -> Vec<String> {
        let mut before = Vec::new();
        loop {
            let message = self.receive();
            if message.lines().any(|said| said.starts_with(line)) {
                return before;
            }
            before.push(message);
        }
    }
}

fn service(place: &Place, args: &[&str]) -> Command {
    let mut command = leaderelect(args);
    command.env("NOTIFY_SOCKET", place.path("notify"));
    command
}

const WORK: [&str; 3] = ["sh", "-c", "echo up; exec sleep 1000"];

#[test]
fn a_leader_is_ready_and_a_follower_is_if_that_is_enough() {
    let place = Place::new();
    let lock = place.lock("a");
    let options = |identity, when| [&LONG[..], &["--campaign", "--identity", identity, "--notify", when]].concat();
    let systemd = Systemd::at(&place);
    let mut leader = Running::of(service(&place, &run(&lock, &options("node-1", "leading"), &WORK)));
    leader.wait_for("up");
    let before = systemd.receive_until("READY=1").concat();
    assert!(before.contains("STATUS=competing for file://"), "{before}");

    let elsewhere = Place::new();
    let other = Systemd::at(&elsewhere);
    let follower = Running::of(service(&elsewhere, &run(&lock, &options("node-2", "following"), &WORK)));
    assert_eq!(other.receive_until("READY=1").len(), 0, "it is ready when it competes");
    other.receive_until("STATUS=waiting: node-1 leads");

    let patient = Place::new();
    let third = Systemd::at(&patient);
    let waiting = Running::of(service(&patient, &run(&lock, &options("node-3", "leading"), &WORK)));
    let said = third.receive_until("STATUS=waiting: node-1 leads").concat();
    assert!(!said.contains("READY"), "{said}");
    drop((follower, waiting));

    leader.signal(Signal::TERM);
    systemd.receive_until("STOPPING=1");
    assert_eq!(leader.end().code, Some(143), "units name this code as a success");
}

#[test]
fn signs_of_life_come_from_the_process_that_is_asked_for_them() {
    let place = Place::new();
    let systemd = Systemd::at(&place);
    let lock = place.lock("a");
    let options = [&LONG[..], &["--notify", "following"]].concat();
    let mut command = service(&place, &run(&lock, &options, &WORK));
    command.env("WATCHDOG_USEC", "40000");
    let running = Running::of(command);
    for _ in 0..5 {
        systemd.receive_until("WATCHDOG=1");
    }
    drop(running);

    let other = Place::new();
    let systemd = Systemd::at(&other);
    let lock = other.lock("a");
    let mut command = service(&other, &run(&lock, &options, &["sh", "-c", "exit 0"]));
    command.env("WATCHDOG_USEC", "2").env("WATCHDOG_PID", "1");
    assert_eq!(Running::of(command).end().code, Some(0));
    systemd.0.set_nonblocking(true).unwrap();
    while let Ok(length) = systemd.0.recv(&mut [0; 4096]) {
        assert!(length != "WATCHDOG=1\n".len(), "these were for another process");
    }
}

#[test]
fn the_command_does_not_speak_for_the_service() {
    let place = Place::new();
    let _systemd = Systemd::at(&place);
    let lock = place.lock("a");
    let tell = ["sh", "-c", "echo ${NOTIFY_SOCKET-none} ${WATCHDOG_USEC-none}"];
    let with = |options: &[&str]| {
        let mut command = service(&place, &run(&lock, &[&LONG[..], options].concat(), &tell));
        command.env("WATCHDOG_USEC", "1000000");
        end_of(command).stdout
    };
    assert_eq!(with(&["--notify", "leading"]), "none none\n");
    // Otherwise the command may.
    assert_eq!(with(&[]), format!("{} 1000000\n", place.path("notify").display()));
}

#[test]
fn a_service_manager_that_reads_nothing_delays_nothing() {
    let place = Place::new();
    let systemd = Systemd::at(&place);
    // Nothing more fits into the socket.
    let flood = UnixDatagram::unbound().unwrap();
    flood.set_nonblocking(true).unwrap();
    while flood.send_to(b"flood", place.path("notify")).is_ok() {}
    let lock = place.lock("a");
    let options = [&LONG[..], &["--notify", "leading"]].concat();
    let ended = end_of(service(&place, &run(&lock, &options, &["echo", "led"])));
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "led\n"), "{ended:?}");
    drop(systemd);
}

#[test]
fn without_systemd_there_is_nobody_to_tell() {
    let place = Place::new();
    let lock = place.lock("a");
    let options = [&LONG[..], &["--notify", "leading"]].concat();
    let mut command = leaderelect(run(&lock, &options, &["true"]));
    command.env_remove("NOTIFY_SOCKET");
    assert_eq!(end_of(command).code, Some(0));
    let gone = end_of(service(&place, &run(&lock, &options, &["true"])));
    assert_eq!(gone.code, Some(74), "{gone:?}");
    assert!(gone.stderr.contains("cannot reach systemd at"), "{gone:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_socket_may_be_in_no_directory() {
    use std::os::linux::net::SocketAddrExt as _;
    let place = Place::new();
    let name = format!("leaderelect-test-{}", std::process::id());
    let address = std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap();
    let systemd = Systemd::of(UnixDatagram::bind_addr(&address).unwrap());
    let lock = place.lock("a");
    let options = [&LONG[..], &["--notify", "leading"]].concat();
    let mut command = leaderelect(run(&lock, &options, &WORK));
    command.env("NOTIFY_SOCKET", format!("@{name}"));
    let _running = Running::of(command);
    systemd.receive_until("READY=1");
}

#[test]
fn the_sidecar_tells_it_too() {
    let place = Place::new();
    let systemd = Systemd::at(&place);
    let lock = place.lock("a");
    let serve = |more: &[&str]| {
        let args = [&["serve", "--lock", &lock, "--listen", "127.0.0.1:0", "--drain", "0s"][..], more].concat();
        let mut command = service(&place, &args);
        command.env("WATCHDOG_USEC", "40000");
        Running::of(command)
    };
    let running = serve(&["--notify", "leading"]);
    systemd.receive_until("READY=1");
    systemd.receive_until("WATCHDOG=1");
    running.signal(Signal::TERM);
    systemd.receive_until("STOPPING=1");
    assert_eq!(running.end().code, Some(0));
}
