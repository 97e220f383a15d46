//! A command, the processes that watch over it, and all that it starts. Nothing here knows of elections.

pub(crate) mod channel;
pub(crate) mod command;
pub(crate) mod guard;
pub(crate) mod guards;
pub(crate) mod helper;
pub(crate) mod input;
pub(crate) mod messages;
pub(crate) mod process_tree;
pub(crate) mod reexec;
pub(crate) mod signals;
pub(crate) mod start;
pub(crate) mod terminal;
pub(crate) mod watchdog;
