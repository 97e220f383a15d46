//! The safety kernel of `leaderelection`: the rules on which "at most one leader" and "fencing tokens grow" depend.
//!
//! Everything else is [*policy*](policy): how often a candidate reads, who goes first, how long it waits after an error. The kernel
//! gives a policy *permits*, each for one write. A policy may use any permit at any moment, but it can make neither a write nor a term
//! without the kernel. So a bad policy makes elections slow or expensive, but never unsafe.
//!
//! The types enforce this. A write is made from a permit:
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
//! Without a permit, no write can be made. Permits and terms can be made only by the kernel:
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
//! A permit is for one write only, and the lease cannot change before the permit is used:
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
//! The kernel performs no I/O, reads no clock and draws no random numbers. It is an internal crate: depend on `leaderelection`
//! instead, which promises a stable API.

mod instant;
pub mod lease;
pub mod policy;
pub mod quorum;
pub mod record;
pub mod session;

pub use instant::LocalInstant;
