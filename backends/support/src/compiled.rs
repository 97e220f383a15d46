//! The place at which a client's code is compiled.

use std::pin::Pin;

/// A future whose code is compiled in the crate of its author. The code of an `async fn` is compiled in every program that awaits the
/// function, and a cloud's client is more than a million lines of it: each program would take half a minute longer to build.
pub type CompiledHere<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
