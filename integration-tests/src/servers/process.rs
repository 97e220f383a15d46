//! Server processes that never outlive the test process.

use std::convert::Infallible;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::{random, unique_name};

/// Runs the command in its arguments until the standard input closes. The standard input closes when the test
/// process ends in any way, SIGKILL included: a test process runs no destructors of statics.
///
/// `$1` is the server's directory, and `$LITTER` names the server's files elsewhere. Both are deleted with the
/// server. If the server ends by itself, the directory stays, because it contains the log. It also stays if there is a file
/// `keep`, because the server will go on with it. The file `pid` names the server.
const SUPERVISOR: &str = r#"
directory=$1; shift
cd "$directory"
rm -f pid $LITTER
exec 3<&0
"$@" </dev/null >>"$directory/log" 2>&1 3<&- &
server=$!
echo $server >pid.new; mv pid.new pid
{ cat <&3; kill -9 $server; } >/dev/null 2>&1 &
watcher=$!
wait $server
status=$?
kill $watcher
[ $status -ne 137 ] || [ -e "$directory/keep" ] || rm -rf "$directory" $LITTER
exit $status
"#;

/// A running server, in a directory of its own.
#[derive(Debug)]
pub struct ServerProcess {
    supervised: Command,
    supervisor: Child,
    directory: PathBuf,
    health: Option<Health>,
}

/// The answer of a server that works.
#[derive(Clone, Debug)]
struct Health {
    port: u16,
    url_path: String,
    status: u16,
    patience: Duration,
}

impl ServerProcess {
    /// Starts `server` in `directory`, where the server may keep its data. Both disappear when the test process
    /// ends.
    #[must_use]
    pub fn start(server: &Command, directory: PathBuf) -> Self {
        Self::start_littering(server, directory, &[])
    }

    /// Starts a `server` that leaves files outside its directory, which are deleted as well. The paths of these
    /// files contain no spaces.
    #[must_use]
    pub fn start_littering(server: &Command, directory: PathBuf, litter: &[String]) -> Self {
        use std::os::unix::process::CommandExt as _;

        let mut supervised = Command::new("sh");
        supervised.args(["-c", SUPERVISOR, "sh"]).arg(&directory).arg(server.get_program()).args(server.get_args());
        for (name, value) in server.get_envs() {
            if let Some(value) = value {
                supervised.env(name, value);
            }
        }
        supervised.env("LITTER", litter.join(" "));
        // A process group of its own: Ctrl-C in a terminal must not end the supervisor before the server.
        supervised.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let supervisor = spawn(&mut supervised);
        Self { supervised, supervisor, directory, health: None }
    }

    /// Waits until `GET url_path` on `port` is answered with `status`.
    ///
    /// # Errors
    ///
    /// The last output of the server, if the server ended or did not answer with `status` within `patience`.
    ///
    /// # Panics
    ///
    /// On the second call.
    pub fn wait_until_answering(
        &mut self,
        port: u16,
        url_path: &str,
        status: u16,
        patience: Duration,
    ) -> Result<(), String> {
        self.health = Some(Health { port, url_path: url_path.to_owned(), status, patience });
        self.wait_until_healthy()
    }

    /// Ends the server by a signal, and keeps its data.
    ///
    /// # Panics
    ///
    /// If there is no server to end.
    pub fn end(&mut self, signal: Signal) {
        fs::write(self.directory.join("keep"), "").expect("the directory of a server");
        // A supervisor whose input is closed kills the server.
        let input = self.supervisor.stdin.take();
        self.signal(signal);
        self.supervisor.wait().expect("the end of a child");
        drop(input);
    }

    /// Starts the server again on its data, and waits until it answers.
    ///
    /// # Panics
    ///
    /// If it does not.
    pub fn start_again(&mut self) {
        fs::remove_file(self.directory.join("keep")).expect("a server that was ended");
        self.supervisor = spawn(&mut self.supervised);
        self.wait_until_healthy().unwrap_or_else(|failure| panic!("{failure}"));
    }

    /// Sends a signal to the server, such as one that freezes it.
    ///
    /// # Panics
    ///
    /// If there is no server.
    pub fn signal(&self, signal: Signal) {
        let server = fs::read_to_string(self.directory.join("pid")).expect("the server's number");
        let server = server.trim().parse().ok().and_then(Pid::from_raw).expect("the server's number");
        kill_process(server, signal).expect("a signal");
    }

    fn wait_until_healthy(&mut self) -> Result<(), String> {
        let Some(Health { port, url_path, status, patience }) = self.health.clone() else { return Ok(()) };
        let stdout = self.supervisor.stdout.take().expect("nobody has waited before");
        let ended = closing(stdout);
        let deadline = Instant::now() + patience;
        loop {
            // A busy shell may write the number only after the server has answered.
            let is_named = self.directory.join("pid").exists();
            if is_named && answer(port, &url_path).is_ok_and(|answer| answer == format!(" {status}")) {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(format!("the server is not healthy within {patience:?}; {}", self.last_words()));
            }
            // No event reports that a port has opened, so the loop asks again soon unless the server has ended.
            if ended.recv_timeout(Duration::from_millis(20)) == Err(RecvTimeoutError::Disconnected) {
                let status = self.supervisor.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
                return Err(format!("the server ended ({status}); {}", self.last_words()));
            }
        }
    }

    fn last_words(&self) -> String {
        let log = fs::read_to_string(self.directory.join("log")).unwrap_or_default();
        let lines: Vec<_> = log.lines().collect();
        format!("its last words:\n{}", lines[lines.len().saturating_sub(20)..].join("\n"))
    }
}

fn spawn(supervised: &mut Command) -> Child {
    supervised.spawn().expect("cannot start `sh`, which supervises the test servers")
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        drop(self.supervisor.stdin.take());
        let _ = self.supervisor.wait();
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// A channel without messages that closes together with the stream.
fn closing(mut stream: impl Read + Send + 'static) -> Receiver<Infallible> {
    let (open, closed) = channel();
    thread::spawn(move || {
        let _open = open;
        io::copy(&mut stream, &mut io::sink())
    });
    closed
}

fn answer(port: u16, url_path: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(1)))?;
    write!(stream, "GET {url_path} HTTP/1.0\r\nhost: 127.0.0.1\r\n\r\n")?;
    let mut status_line = [0; 12];
    stream.read_exact(&mut status_line)?;
    Ok(String::from_utf8_lossy(&status_line[8..]).into_owned())
}

/// Runs `work` while no other process runs work under the same name.
pub fn exclusively<T>(directory: &Path, name: &str, work: impl FnOnce() -> T) -> T {
    fs::create_dir_all(directory).expect("cannot create the directory of the test servers");
    let lock = File::create(directory.join(format!("{name}.lock"))).expect("cannot create a lock file");
    lock.lock().expect("cannot lock a lock file");
    work()
}

/// Starts a server in a new directory with `try_start`, repeatedly if need be: another process may have taken a
/// port that was free a moment ago.
pub(super) fn start_on_free_ports<T>(above: &Path, name: &str, try_start: impl Fn(PathBuf) -> Result<T, String>) -> T {
    // One process at a time starts a server, so that test processes that start together choose different ports.
    exclusively(above, &format!("{name}-start"), || {
        let mut failures = Vec::new();
        for _ in 0..5 {
            let directory = above.join(format!("{name}-{}", unique_name()));
            fs::create_dir_all(&directory).expect("cannot create a server's directory");
            match try_start(directory) {
                Ok(server) => return server,
                Err(failure) => failures.push(failure),
            }
        }
        panic!("{name} does not start:\n{}", failures.join("\n"));
    })
}

/// Returns the first of `count` neighbouring ports. These ports, and those that are `offset` higher, were free
/// a moment ago.
///
/// All ports are below 32768, where Linux assigns no ports to clients, so no client takes one by chance.
#[must_use]
pub fn free_ports(count: u16, offset: u16) -> u16 {
    const CANDIDATES: Range<u16> = 10_000..32_768;
    let span = u64::from(CANDIDATES.end - CANDIDATES.start - offset - count);
    (0..1000)
        .map(|_| CANDIDATES.start + u16::try_from(random() % span).expect("the span fits"))
        .find(|first| (*first..first + count).all(|port| is_free(port) && is_free(port + offset)))
        .expect("no free ports between 10000 and 32768")
}

fn is_free(port: u16) -> bool {
    TcpListener::bind(("127.0.0.1", port)).is_ok()
}
