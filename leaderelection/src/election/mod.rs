//! The protocol as a pure state machine. It performs no I/O, reads no clock, draws no random numbers, and awaits nothing.
//!
//! A driver passes an [`Input`] and the time to [`Election::handle`], and then carries out every [`Effect`] that
//! [`Election::next`] returns, in order. The driver calls [`Election::handle`] again when an answer or a peer's message
//! arrives, the work ends or a command is given, and with [`Input::Tick`] at [`Election::wake_at`].
//! [`DefaultLeaderElector`](crate::DefaultLeaderElector) is a driver; so are tests and model checkers.
//!
//! The machine makes every decision: when to send a request and with which content, when a term begins and ends, when its work is dropped,
//! and when its lease is released. A driver decides none of this.
//!
//! Numbers in comments refer to the rules of [the protocol](crate::protocol).
//!
//! ```
//! use std::time::Duration;
//! use chrono::DateTime;
//! use leaderelection::clock::LocalInstant;
//! use leaderelection::election::{Answer, EntropySource, Effect, Election, Input, Jitter, Request, ElectionConfig, WriteMeta};
//!
//! struct Fixed;
//! impl EntropySource for Fixed {
//!     fn jitter(&mut self) -> Jitter {
//!         Jitter::default()
//!     }
//!     fn stamp(&mut self) -> WriteMeta {
//!         WriteMeta { write_id: "first".to_owned(), time: DateTime::UNIX_EPOCH }
//!     }
//! }
//!
//! let [lease, deadline, retry] = [15, 10, 2].map(Duration::from_secs);
//! let mut election = Election::new(ElectionConfig::new("node-1", lease, deadline, retry));
//! let now = LocalInstant::default();
//! election.handle(now, Input::Begin { stand_back: Duration::ZERO, ends_with_work: false, job: None }, &mut Fixed);
//! assert_eq!(election.next(), Some(Effect::Send(Request::Read)));
//! // There is no object yet, so the candidate creates it.
//! election.handle(now, Input::Answer(Answer::Read(Ok(None))), &mut Fixed);
//! let write = std::iter::from_fn(|| election.next()).find(|effect| matches!(effect, Effect::Send(_)));
//! assert!(matches!(write, Some(Effect::Send(Request::Write(_)))));
//! ```

mod answers;
mod candidate;
mod decoration;
mod duplicate_identity;
mod effect;
mod ending;
mod failback;
mod input;
mod listening;
mod machine;
mod new_timings;
mod rules;
mod term;
mod visit;

pub use duplicate_identity::DuplicateIdentityDetector;
pub use effect::{Effect, Fact, Operation, Purpose, Request, Term, Write};
pub use input::{Answer, Command, EntropySource, Failure, Input, PeerMessage};
#[cfg(feature = "sessions")]
pub(crate) use listening::patience;
pub use machine::Election;
#[cfg(test)]
pub(crate) use machine::STEPS;
pub use rules::ElectionConfig;
#[cfg(feature = "sessions")]
pub(crate) use visit::OfKernel;

pub use leaderelection_protocol::policy::peer_feed::IgnoredReason;
pub use leaderelection_protocol::policy::{Jitter, Visitor};

pub use crate::lock::record::WriteMeta;
pub use crate::term::{BeginReason, RunOutcome, TermEndReason, WorkEnd};
