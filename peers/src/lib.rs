//! Followers that get the leader's messages over HTTP, instead of asking the store.
//!
//! A follower holds one stream to the address that the leader
//! [advertises](leaderelection::LeaderElectionConfigBuilder::advertise) in the lock. While the leader reports its
//! renewals there, it reads the store every 30 s instead of every 2 to 4.4 s. When the leader releases its lease, the
//! next leader begins after one read and one write. Whatever a peer says, true or not, at most one candidate leads: a
//! message delays or hastens reads of the store, and the store decides. Rules 15 to 17 of the
//! [protocol](leaderelection::protocol) say what a message counts for, and how long a false one can delay a takeover.
//!
//! ```
//! use leaderelection::{DefaultLeaderElector, LeaderCallbacks, LeaderElectionConfig, MemoryLock, MemoryStore};
//! use leaderelection_peers::{Peers, SharedKey};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let secret = "0123456789abcdef0123456789abcdef";
//! let key = SharedKey::new(secret)?;
//! // Use TLS where others can listen: `ca`, `certificate`, and an address that begins with https.
//! let peers = Peers::builder().key(key).plain_http(true).allow("10.0.0.0/8".parse()?).listen("127.0.0.1:0".parse()?).build()?;
//! let lock = MemoryLock::new(MemoryStore::new(), "locks/scheduler", "node-1");
//! let config = LeaderElectionConfig::builder(lock, LeaderCallbacks::new())
//!     .advertise("http://10.0.1.42:8443/health/leadership")
//!     .build()?;
//! let elector = DefaultLeaderElector::new(config);
//! let attached = peers.attach(&elector)?;
//! # drop(attached);
//! # Ok(())
//! # }
//! ```
//!
//! # The server
//!
//! `GET /health/leadership?lock=KEY&nonce=TEXT` is answered only while the elector's term is valid at that moment: the record
//! as it last was committed, its version, the number of the write in the term, the nonce, and a code of the shared key. Any
//! other elector answers 409 with `{"leading": false}`. With `Accept: text/event-stream`, the answer is a stream: one event
//! per committed renewal, and one when the lease is released. A process that serves one lock needs no `lock`. With mutual
//! TLS:
//!
//! ```text
//! curl -N -H 'Accept: text/event-stream' --cacert ca.pem --cert node.pem --key node.key https://10.0.1.42:8443/health/leadership
//! ```
//!
//! With a shared key, a question without its code in `leaderelection-code` gets 401 and nothing else. The code is HMAC-SHA-256
//! over four fields, each with its length before it in eight bytes: `leaderelection-peers/1`, `question`, the lock and the nonce.
//!
//! A server takes 256 streams, and answers 503 beyond. A client that reads nothing for 10 s is dropped. All servers of a process
//! share a budget of connections, which leaves half of the process's files to everything else: at the limit, the connection that
//! has been silent for longest makes room. The server runs in the runtime in which [`build`](PeersBuilder::build) was called.
//! Where strangers reach the port, build it in a runtime of its own, so that no number of requests delays the elector.
//!
//! # Who speaks, and where to
//!
//! Either all candidates share a [key](SharedKey), or each has a certificate of an authority of your own, or both.
//! Nothing secret is ever sent to an address from the lock. Whoever can write the lock can name any address, so a
//! follower connects only to networks and names that are [allowed](Allowed), resolves a name once, follows no redirect
//! and uses no proxy. A [`Refusal`] says why it gets no messages from an address.

mod allow;
mod builder;
mod caller;
mod describe;
mod events;
mod follower;
mod key;
mod members;
mod peers;
mod refusal;
mod renewal;
mod report;
mod served;
mod server;
#[cfg(feature = "unstable-stream")]
pub mod stream;
#[cfg(not(feature = "unstable-stream"))]
#[allow(unreachable_pub, reason = "fuzzers use it from outside")]
mod stream;
mod tls;
mod wire;

pub use allow::Allowed;
pub use builder::{DEFAULT_PATH, PeersBuilder};
pub use describe::describe_metrics;
pub use key::SharedKey;
pub use peers::{Attached, AttachedSession, Peers};
pub use refusal::Refusal;
pub use report::PeerStatus;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
