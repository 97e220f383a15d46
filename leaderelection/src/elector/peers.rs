//! The channel of an elector to its peers: followers that get the leader's messages read the store less often.
//!
//! The crate `leaderelection-peers` connects electors over HTTP. Another transport needs only this module: on the leader's side, it sends
//! what [`PeerChannel::led`] shows, and on the follower's side, it passes each message to [`PeerChannel::deliver`]. Rules 15 to 17 of the
//! [protocol](crate::protocol) define the effect of a message. Even if a peer sends false messages, at most one candidate leads, and
//! tokens grow. A false message can delay a takeover, up to the bound in rule 16.
//!
//! ```
//! use std::time::Duration;
//! use leaderelection::peers::PeerMessage;
//! use leaderelection::{DefaultLeaderElector, Elector, LeaderElectionConfig, MemoryLock, MemoryStore};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let store = MemoryStore::new();
//! let elector = |identity: &str| {
//!     let lock = MemoryLock::new(store.clone(), "locks/scheduler", identity);
//!     LeaderElectionConfig::builder(lock, ()).build().map(DefaultLeaderElector::new)
//! };
//! let (leader, follower) = (elector("a")?, elector("b")?);
//! let (leaders_channel, followers_channel) = (leader.peer_channel(), follower.peer_channel());
//! let mut led = leaders_channel.led();
//! tokio::spawn(async move { leader.run(std::future::pending()).await });
//! // A real transport sends the message over a network here.
//! led.changed().await?;
//! if let Some(term) = led.borrow_and_update().as_ref() {
//!     followers_channel.deliver(PeerMessage::Committed {
//!         holder: term.last.record.holder_identity.clone(),
//!         fencing_token: term.leadership.fencing_token(),
//!         write_id: term.last.record.write_id.clone().unwrap_or_default(),
//!         number: term.last.number,
//!     });
//! }
//! # Ok(())
//! # }
//! ```

pub use super::line::{CommittedWrite, LeaderTerm, ObservedTerm, PeerChannel, Releases};
pub use crate::election::PeerMessage;
