//! Processes that lead many locks through one session each, on a real S3 server behind a proxy: their requests when idle, and
//! the times without a leader after a kill and after a lock is given up.

pub mod member;

use std::collections::BTreeMap;
use std::fmt;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use hyper::Method;
use leaderelection::Timings;
use leaderelection::clock::{Clock as _, SystemClock};
use leaderelection::implement::{ConditionalStore, ConditionalStoreExt, ListedObject};
use leaderelection_backends::s3::S3Store;
use leaderelection_proofs::costs::Requests;

use self::member::News;
use crate::proxy::{Exchange, Kind, Proxy};
use crate::servers::seaweedfs::{BUCKET, SeaweedFs};
use crate::servers::unique_name;

/// A time limit far above the duration of any step.
const PATIENCE: Duration = Duration::from_secs(180);

const HOUR: Duration = Duration::from_secs(3600);

/// The properties of a fleet.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The program that runs [`member::take_part`].
    pub program: PathBuf,
    /// The number of processes.
    pub members: usize,
    /// The number of locks.
    pub locks: usize,
    /// The timings of all sessions.
    pub timings: Timings,
    /// `true` if the processes send each other messages.
    pub sends_messages: bool,
    /// The time that a page of a listing takes longer than at the server.
    pub page: Duration,
    /// The time that any other request takes longer.
    pub request: Duration,
}

/// The times from the last renewal of a killed process's session, by the wall clock of the machine on which all processes run.
#[derive(Clone, Copy, Debug)]
pub struct Takeover {
    /// The time to the kill.
    pub killed: Duration,
    /// The time to the first lock's next term.
    pub first: Duration,
    /// The time to the next terms of half of the locks.
    pub half: Duration,
    /// The time to the last lock's next term.
    pub last: Duration,
}

impl fmt::Display for Takeover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let times = [self.killed, self.first, self.half, self.last];
        let [killed, first, half, last] = times.map(|time| time.as_secs_f64());
        write!(f, "since the last renewal: killed at {killed:.2} s, the first lock taken at {first:.2} s, ")?;
        write!(f, "half of them at {half:.2} s, the last at {last:.2} s")
    }
}

/// The processes, and their news.
#[derive(Debug)]
pub struct Fleet {
    settings: Settings,
    store: S3Store,
    prefix: String,
    proxy: Proxy,
    members: BTreeMap<usize, Child>,
    said: (Sender<Said>, Receiver<Said>),
    /// The leader of each lock, and the moment at which its work began.
    leaders: BTreeMap<usize, (usize, DateTime<Utc>)>,
    /// The last moment at which the work of each lock ended.
    ended: BTreeMap<usize, DateTime<Utc>>,
    /// The processes that know the leader of every lock.
    steady: Vec<usize>,
}

/// The news of the process of this number.
type Said = (usize, News);

impl Fleet {
    /// Starts the processes one after the other. The first leads all locks.
    ///
    /// # Panics
    ///
    /// If a process does not do its part within minutes.
    pub async fn start(settings: Settings, server: &SeaweedFs) -> Self {
        let proxy = Proxy::start(&server.url(), server.signer()).await;
        proxy.set_pace(settings.page, settings.request);
        let (store, prefix) = (S3Store::new(server.client(), BUCKET), unique_name());
        let (members, said, leaders, ended) = (BTreeMap::new(), channel(), BTreeMap::new(), BTreeMap::new());
        let mut fleet = Self { settings, store, prefix, proxy, members, said, leaders, ended, steady: Vec::new() };
        for member in 0..fleet.settings.members {
            fleet.add(member, server);
            fleet.wait_until("it knows every leader", |fleet| fleet.steady.contains(&member));
        }
        assert_eq!(fleet.led_by_first(), fleet.settings.locks, "the first process leads all locks");
        fleet
    }

    fn add(&mut self, number: usize, server: &SeaweedFs) {
        let Settings { program, locks, timings, sends_messages, .. } = &self.settings;
        let place = format!("s3://{BUCKET}/{}?endpoint={}", self.prefix, self.proxy.url());
        let mut command = Command::new(program);
        command.args(["member", &place, &format!("node-{number}"), &locks.to_string()]);
        command.arg(serde_json::to_string(timings).expect("timings as JSON"));
        if *sends_messages {
            command.args(["--peer-key", &self.prefix.repeat(2)]);
        }
        command.envs(server.environment()).env("RUST_LOG", "error");
        // The process ends with this pipe, so that no member outlives the fleet.
        let mut member = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a process");
        let lines = BufReader::new(member.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
        let sender = self.said.0.clone();
        thread::spawn(move || {
            // A kill may cut off the last line.
            lines.filter_map(|line| line.parse().ok()).try_for_each(|news| sender.send((number, news)))
        });
        self.members.insert(number, member);
    }

    /// Counts the requests of all processes while nothing happens, and returns as many for an hour.
    ///
    /// # Panics
    ///
    /// If a lock changes its leader.
    pub async fn rest(&mut self, time: Duration) -> Requests {
        let before = self.proxy.inspect_traffic(requests);
        tokio::time::sleep(time).await;
        let after = self.proxy.inspect_traffic(requests);
        assert!(self.said.1.try_recv().is_err(), "nothing happens");
        after.since(before, HOUR.as_secs() / time.as_secs())
    }

    /// Kills the first process, and waits until others lead its locks.
    ///
    /// # Panics
    ///
    /// If a process does not do its part within minutes.
    pub async fn crash(&mut self) -> Takeover {
        let mut first = self.members.remove(&0).expect("a member");
        first.kill().expect("SIGKILL");
        first.wait().expect("its end");
        let killed = Utc::now();
        let renewed = self.last_renewal("node-0").await;
        self.wait_until("the others lead all locks", |fleet| fleet.led_by_first() == 0);
        let since = |moment: DateTime<Utc>| (moment - renewed).to_std().unwrap_or_default();
        let mut begun: Vec<_> = self.leaders.values().map(|(_, at)| since(*at)).collect();
        begun.sort();
        let (first, half, last) = (begun[0], begun[begun.len() / 2], begun[begun.len() - 1]);
        Takeover { killed: since(killed), first, half, last }
    }

    /// Lets the leader of one lock give it up. Returns the times from the end of the work, and from the server's answer to the
    /// release, to the next work.
    ///
    /// # Panics
    ///
    /// If no process takes the lock within minutes, or one takes it before that.
    pub fn hand_over(&mut self, lock: usize) -> [Duration; 2] {
        let (leader, since) = self.leaders[&lock];
        let input = self.members.get_mut(&leader).and_then(|member| member.stdin.as_mut()).expect("a pipe");
        writeln!(input, "{lock}").expect("a member that reads");
        self.wait_until("another process leads", |fleet| {
            let led = fleet.leaders.get(&lock).is_some_and(|(_, at)| *at > since);
            led && fleet.ended.get(&lock).is_some_and(|at| *at > since)
        });
        let released = self.proxy.inspect_traffic(|traffic| {
            let object = format!("/locks/lock-{lock}");
            let path =
                |one: &Exchange| one.request.target.split('?').next().is_some_and(|path| path.ends_with(&object));
            let releases = |one: &&Exchange| one.kind == Kind::Release && path(one);
            traffic.iter().rev().find(releases).and_then(|release| release.answered).expect("a release")
        });
        let released = Utc::now() - SystemClock.now().saturating_since(released);
        [self.ended[&lock], released]
            .map(|since| (self.leaders[&lock].1 - since).to_std().expect("one leader at a time"))
    }

    /// The time of the last renewal of a process's session.
    async fn last_renewal(&self, identity: &str) -> DateTime<Utc> {
        let listed = self.store.list(&format!("{}/sessions/", self.prefix)).await.expect("a listing");
        for key in ListedObject::keys(listed) {
            let found = self.store.get(&key).await.expect("an answer").expect("a session");
            let record: serde_json::Value = serde_json::from_slice(&found.body).expect("a record");
            if record["holderIdentity"] == identity {
                let renewed = record["renewTime"].as_str().expect("a time");
                return renewed.parse().expect("a time");
            }
        }
        panic!("{identity} has no session");
    }

    fn led_by_first(&self) -> usize {
        self.leaders.values().filter(|(leader, _)| *leader == 0).count()
    }

    fn wait_until(&mut self, what: &str, holds: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !holds(self) {
            let news = self.said.1.recv_timeout(deadline.saturating_duration_since(Instant::now()));
            let (member, news) = news.unwrap_or_else(|_| {
                let (led, steady) = (self.leaders.len(), &self.steady);
                panic!("waited in vain: {what}; {led} locks are led, and {steady:?} know every leader")
            });
            match news {
                News::Leads { lock, at } => drop(self.leaders.insert(lock, (member, at))),
                News::Ends { lock, at } => {
                    self.ended.insert(lock, at);
                    if self.leaders.get(&lock).is_some_and(|(leader, _)| *leader == member) {
                        self.leaders.remove(&lock);
                    }
                }
                News::Steady => self.steady.push(member),
            }
        }
    }
}

/// The requests so far, by their kinds.
fn requests(traffic: &[Exchange]) -> Requests {
    let count = |wanted: &dyn Fn(&Exchange) -> bool| traffic.iter().filter(|one| wanted(one)).count() as u64;
    let listings = count(&|one| one.request.lists());
    Requests {
        writes: count(&|one| one.request.method == Method::PUT),
        reads: count(&|one| one.request.method == Method::GET) - listings,
        listings,
        deletions: count(&|one| one.request.method == Method::DELETE),
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for member in self.members.values_mut() {
            let _ = member.kill();
            let _ = member.wait();
        }
    }
}
