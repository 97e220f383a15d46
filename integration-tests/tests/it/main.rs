//! Tests against servers: real ones, and one that misbehaves on command.

mod azure;
mod gcs;
mod harness;
mod s3;
mod url;
