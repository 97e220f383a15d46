//! Processes that wait for a device, and that not even SIGKILL ends.
//!
//! The device is a file system whose server takes a request and never answers: the system lets nobody give up a request
//! that the server has taken.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use rustix::process::Signal;

use crate::pipe::Pipe;
use crate::support::{LONG, PATIENCE, Place, Running, TIMINGS, record, run};

/// A file system whose first user waits until this value is dropped.
struct Silent {
    path: PathBuf,
    stuck: Receiver<(i32, File)>,
}

impl Silent {
    /// `None`, with a word about it, if no file system can be mounted here.
    fn mount(place: &Place) -> Option<Self> {
        let path = place.path("silent");
        fs::create_dir(&path).unwrap();
        let device = mounted(&path)?;
        let (tell, stuck) = channel();
        thread::spawn(move || tell.send(serve(device)));
        Some(Self { path, stuck })
    }

    /// Waits for the first user, and takes the file system out of the way of everybody else.
    fn wait_for_user(&self) -> Stuck {
        let (pid, device) = self.stuck.recv_timeout(PATIENCE).expect("nobody used the file system");
        let _ = unmount(&self.path, UnmountFlags::DETACH);
        Stuck { pid, device }
    }
}

/// A directory whose file system takes no request, as a disk that hangs. What waits for it can be ended.
pub(crate) struct Hung {
    path: PathBuf,
    _server: File,
}

impl Hung {
    /// `None`, with a word about it, if no file system can be mounted here.
    pub(crate) fn at(path: PathBuf) -> Option<Self> {
        let _server = mounted(&path)?;
        Some(Self { path, _server })
    }
}

impl Drop for Hung {
    fn drop(&mut self) {
        let _ = unmount(&self.path, UnmountFlags::DETACH);
    }
}

/// Mounts a file system at `path`, whose server has to read requests from the file. `None`, with a word about it, if none
/// can be mounted here.
fn mounted(path: &Path) -> Option<File> {
    let skipped = |error: &dyn std::fmt::Display| println!("skipped: no file system can be mounted: {error}");
    let device = File::options().read(true).write(true).open("/dev/fuse");
    let device = device.inspect_err(|error| skipped(error)).ok()?;
    let options = format!("fd={},rootmode=40755,user_id=0,group_id=0", device.as_raw_fd());
    let options = std::ffi::CString::new(options).unwrap();
    mount("silent", path, "fuse", MountFlags::empty(), &*options).inspect_err(|error| skipped(error)).ok()?;
    Some(device)
}

impl Drop for Silent {
    fn drop(&mut self) {
        let _ = unmount(&self.path, UnmountFlags::DETACH);
    }
}

/// A process that nobody can end until the file system is gone.
struct Stuck {
    pid: i32,
    device: File,
}

impl Stuck {
    fn let_go(self) {
        drop(self.device);
    }
}

/// Answers the system's question for a version, and returns who asks for anything else.
fn serve(mut device: File) -> (i32, File) {
    const INIT: u32 = 26;
    let mut buffer = vec![0; 1 << 18];
    loop {
        let length = device.read(&mut buffer).unwrap();
        let request = &buffer[..length];
        let number = |at: usize| u32::from_ne_bytes(request[at..at + 4].try_into().unwrap());
        if number(4) != INIT {
            return (number(32).cast_signed(), device);
        }
        // Length, no error and the request's number; the version, and nothing that it offers.
        let mut answer = [80_u32.to_ne_bytes(), [0; 4]].concat();
        answer.extend_from_slice(&request[8..16]);
        answer.extend([7_u32.to_ne_bytes(), 31_u32.to_ne_bytes()].concat());
        answer.resize(80, 0);
        device.write_all(&answer).unwrap();
    }
}

/// Keeps the pipe `$0` open, and starts a user of the file system `$1` that is out of the reach of signals to the
/// command's process group.
const LEAVES: &str = "exec 4>\"$0\" >/dev/null 2>&1; echo up >&4; setsid cat \"$1/file\" & wait";

/// Is a user of the file system itself.
const IS: &str = "exec 4>\"$0\" >/dev/null 2>&1; echo up >&4; exec cat \"$1/file\"";

/// A leader with a process that cannot be ended.
fn leader(place: &Place, pipe: &Pipe, silent: &Silent, options: &[&str], script: &str) -> (Running, Stuck) {
    let lock = place.lock("a");
    let path = silent.path.to_str().unwrap();
    let running = Running::start(&run(&lock, options, &["sh", "-c", script, &pipe.path, path]));
    pipe.wait_for_start();
    (running, silent.wait_for_user())
}

/// The name of the process in a message.
fn named(stuck: &Stuck) -> String {
    format!("{} (cat, user root, waiting for a device)", stuck.pid)
}

fn state(path: &Path) -> Option<String> {
    let stat = fs::read_to_string(path).ok()?;
    Some(stat.rsplit_once(") ")?.1[..1].to_owned())
}

#[test]
fn the_lease_is_kept_until_they_are_gone() {
    let place = Place::new();
    let Some(silent) = Silent::mount(&place) else { return };
    let pipe = Pipe::new(&place);
    let (mut running, stuck) = leader(&place, &pipe, &silent, &LONG, LEAVES);
    running.signal(Signal::TERM);
    let note = running.wait_for_note("cannot kill processes of the command; the lease is kept while they run");
    assert!(note.contains(&named(&stuck)), "{note}");
    assert_eq!(state(Path::new(&format!("/proc/{}/stat", stuck.pid))).as_deref(), Some("D"));
    assert!(!place.record("a").is_released());
    stuck.let_go();
    pipe.wait_for_end();
    let ended = running.end();
    assert_eq!(ended.code, Some(143), "{ended:?}");
    assert!(place.record("a").is_released());
}

#[test]
fn whoever_leaves_them_behind_does_not_release_and_has_a_code_of_its_own() {
    let place = Place::new();
    let Some(silent) = Silent::mount(&place) else { return };
    let pipe = Pipe::new(&place);
    let (mut running, stuck) = leader(&place, &pipe, &silent, &LONG, LEAVES);
    running.signal(Signal::TERM);
    running.wait_for_note("cannot kill processes of the command");
    running.signal(Signal::TERM);
    let error = running.wait_for_note("error: cannot kill ");
    assert!(error.contains(&named(&stuck)) && error.contains("; the lease was not released"), "{error}");
    assert_eq!(running.wait().code(), Some(80));
    assert!(!place.record("a").is_released());
    stuck.let_go();
    pipe.wait_for_end();
}

#[test]
fn a_loss_that_leaves_the_command_itself_has_the_same_code() {
    let place = Place::new();
    let Some(silent) = Silent::mount(&place) else { return };
    let pipe = Pipe::new(&place);
    let (mut running, stuck) = leader(&place, &pipe, &silent, &TIMINGS, IS);
    place.overwrite("a", &record("thief", "1s", 7, "1"));
    let error = running.wait_for_note("error: cannot kill ");
    assert!(error.contains(&named(&stuck)), "{error}");
    assert_eq!(running.wait().code(), Some(80));
    assert_eq!(place.record("a").holder_identity, "thief");
    stuck.let_go();
    pipe.wait_for_end();
}
