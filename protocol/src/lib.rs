//! The safety kernel of `leaderelection`: the rules on which "at most one leader" and "fencing tokens grow" depend.
//!
//! Everything else is [*policy*](policy): how often a candidate reads, who goes first, how long it waits after an error. A policy
//! may use any permit of the kernel at any moment, and it cannot make a write or a term of its own. A bad policy makes elections
//! slow or expensive, and never unsafe.
//!
//! That is a matter of types. Whoever has a permit makes a write of it:
//!
//! ```
//! use leaderelection_protocol::lease::{Permit, Write};
//! use leaderelection_protocol::record::Record;
//!
//! fn write<R: Record>(permit: Permit<'_, R>, id: R::WriteId, decoration: R::Decoration) -> Write<R> {
//!     permit.write(|| id, decoration)
//! }
//! ```
//!
//! Nobody else makes one, and nobody makes a permit or a term:
//!
//! ```compile_fail,E0451
//! # use std::sync::Arc;
//! # use leaderelection_protocol::lease::{Kind, Write};
//! # use leaderelection_protocol::record::Record;
//! fn forged<R: Record>(kind: Kind, record: Arc<R>) -> Write<R> {
//!     Write { kind, record, expected: None }
//! }
//! ```
//!
//! ```compile_fail,E0451
//! # use leaderelection_protocol::LocalInstant;
//! # use leaderelection_protocol::lease::{Kind, Lease, Permit};
//! # use leaderelection_protocol::record::Record;
//! fn forged<R: Record>(lease: &mut Lease<R>, now: LocalInstant) -> Permit<'_, R> {
//!     Permit { lease, now, kind: Kind::Acquire }
//! }
//! ```
//!
//! ```compile_fail,E0451
//! # use leaderelection_protocol::lease::Term;
//! fn longer(term: Term, token: u64) -> Term {
//!     Term { token, ..term }
//! }
//! ```
//!
//! A permit counts for one write, and nothing changes in the lease before it is used:
//!
//! ```compile_fail,E0382
//! # use leaderelection_protocol::lease::{Permit, Write};
//! # use leaderelection_protocol::record::Record;
//! fn twice<R: Record>(permit: Permit<'_, R>, id: R::WriteId, other: R::WriteId, it: R::Decoration, too: R::Decoration) {
//!     permit.write(|| id, it);
//!     permit.write(|| other, too);
//! }
//! ```
//!
//! ```compile_fail,E0499
//! # use leaderelection_protocol::LocalInstant;
//! # use leaderelection_protocol::lease::{Lease, NoPermit, Write};
//! # use leaderelection_protocol::record::Record;
//! fn late<R: Record>(lease: &mut Lease<R>, now: LocalInstant, id: R::WriteId, it: R::Decoration) -> Result<Write<R>, NoPermit> {
//!     let permit = lease.may_acquire(now)?;
//!     lease.begin(now, None);
//!     Ok(permit.write(|| id, it))
//! }
//! ```
//!
//! The kernel performs no I/O, reads no clock and draws no random number. It is an internal crate: depend on `leaderelection`,
//! which makes the promises of stability.

mod instant;
pub mod lease;
pub mod policy;
pub mod quorum;
pub mod record;
pub mod session;

pub use instant::LocalInstant;
