//! Tests against servers: real ones, and one that misbehaves on command.

mod azure;
mod harness;
mod s3;
