//! The crash of a process that leads many locks through one session: the time until others lead all of these locks.

pub mod member;

use std::collections::BTreeMap;
use std::fmt;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use leaderelection::store::ListedObject;
use leaderelection::{ConditionalStore, Timings};
use leaderelection_backends::s3::S3Store;

use self::member::News;
use crate::servers::seaweedfs::SeaweedFs;
use crate::servers::unique_name;

/// A time limit far above the duration of any step.
const PATIENCE: Duration = Duration::from_secs(180);

/// A bucket of the server, which must exist.
pub const BUCKET: &str = "bucket";

/// A fleet of three processes, of which the one that leads every lock is killed.
#[derive(Debug)]
pub struct Crash {
    /// The program that runs [`member::take_part`].
    pub program: PathBuf,
    /// The number of locks.
    pub locks: usize,
    /// The timings of all three sessions.
    pub timings: Timings,
}

/// The end of a crash: others lead all locks. The times count from the last renewal of the killed process's session,
/// by the wall clock of the machine on which all processes run.
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

impl Crash {
    /// Lets the crash happen on a server.
    ///
    /// # Panics
    ///
    /// If a process does not do its part within minutes.
    pub async fn happen(&self, server: &SeaweedFs) -> Takeover {
        let (store, prefix) = (S3Store::new(server.client(), BUCKET), unique_name());
        let mut fleet = Fleet::new();
        self.start(server, &prefix, "node-0", &mut fleet);
        fleet.wait_until("the first process leads all locks", |fleet| fleet.led_by(&["node-0"]) == self.locks);
        for other in OTHERS {
            self.start(server, &prefix, other, &mut fleet);
        }
        fleet.wait_until("the others know every leader", |fleet| OTHERS.iter().all(|other| fleet.knows(other)));
        fleet.kill("node-0");
        let killed = Utc::now();
        let renewed = last_renewal(&store, &prefix, "node-0").await;
        fleet.wait_until("the others lead all locks", |fleet| fleet.led_by(&OTHERS) == self.locks);
        let since = |moment: DateTime<Utc>| (moment - renewed).to_std().unwrap_or_default();
        let mut begun: Vec<_> = fleet.leaders.values().map(|(_, at)| since(*at)).collect();
        begun.sort();
        let (first, half, last) = (begun[0], begun[begun.len() / 2], begun[begun.len() - 1]);
        Takeover { killed: since(killed), first, half, last }
    }

    fn start(&self, server: &SeaweedFs, prefix: &str, identity: &'static str, fleet: &mut Fleet) {
        let place = format!("s3://{BUCKET}/{prefix}?endpoint={}", server.url());
        let mut command = Command::new(&self.program);
        command.args(["member", &place, identity]).arg(self.locks.to_string());
        command.arg(serde_json::to_string(&self.timings).expect("timings as JSON"));
        command.envs(server.environment()).env("RUST_LOG", "error");
        fleet.start(&mut command, identity);
    }
}

const OTHERS: [&str; 2] = ["node-1", "node-2"];

/// The time of the last renewal of a process's session.
async fn last_renewal(store: &dyn ConditionalStore, prefix: &str, identity: &str) -> DateTime<Utc> {
    let listed = store.list(&format!("{prefix}/sessions/")).await.expect("a listing");
    for key in ListedObject::keys(listed) {
        let found = store.get(&key).await.expect("an answer").expect("a session");
        let record: serde_json::Value = serde_json::from_slice(&found.body).expect("a record");
        if record["holderIdentity"] == identity {
            let renewed = record["renewTime"].as_str().expect("a time");
            return renewed.parse().expect("a time");
        }
    }
    panic!("{identity} has no session");
}

/// The news of the process of this name.
type Said = (&'static str, News);

/// The processes, and their news.
struct Fleet {
    members: BTreeMap<&'static str, Child>,
    said: (Sender<Said>, Receiver<Said>),
    /// The leader of each lock, and the moment at which its work began.
    leaders: BTreeMap<usize, (&'static str, DateTime<Utc>)>,
    /// The processes that know the leader of every lock.
    settled: Vec<&'static str>,
}

impl Fleet {
    fn new() -> Self {
        Self { members: BTreeMap::new(), said: channel(), leaders: BTreeMap::new(), settled: Vec::new() }
    }

    fn start(&mut self, command: &mut Command, identity: &'static str) {
        // The process ends with this pipe, so that no member outlives the fleet.
        let mut member = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a process");
        let lines = BufReader::new(member.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
        let sender = self.said.0.clone();
        thread::spawn(move || {
            // A kill may cut off the last line.
            lines.filter_map(|line| line.parse().ok()).try_for_each(|news| sender.send((identity, news)))
        });
        self.members.insert(identity, member);
    }

    fn led_by(&self, identities: &[&str]) -> usize {
        self.leaders.values().filter(|(leader, _)| identities.contains(leader)).count()
    }

    fn knows(&self, identity: &&'static str) -> bool {
        self.settled.contains(identity)
    }

    fn wait_until(&mut self, what: &str, holds: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !holds(self) {
            let news = self.said.1.recv_timeout(deadline.saturating_duration_since(Instant::now()));
            let (identity, news) = news.unwrap_or_else(|_| {
                let (led, settled) = (self.leaders.len(), &self.settled);
                panic!("waited in vain: {what}; {led} locks are led, and {settled:?} know every leader")
            });
            match news {
                News::Leads { lock, at } => drop(self.leaders.insert(lock, (identity, at))),
                News::Ends { lock } => {
                    if self.leaders.get(&lock).is_some_and(|(leader, _)| *leader == identity) {
                        self.leaders.remove(&lock);
                    }
                }
                News::Settled => self.settled.push(identity),
            }
        }
    }

    fn kill(&mut self, identity: &str) {
        let mut member = self.members.remove(identity).expect("a member");
        member.kill().expect("SIGKILL");
        member.wait().expect("its end");
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
