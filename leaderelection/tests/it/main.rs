//! What the crate promises, through its public interface.

mod semantics;
mod support;
