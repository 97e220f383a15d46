//! What the crate promises, through its public interface.

mod lifecycle;
mod observers;
mod semantics;
mod support;
