//! What the integration tests stand on.

pub mod model;
