//! A command, the processes that watch over it, and all that it starts. Nothing here knows of elections.

pub(crate) mod channel;
pub(crate) mod command;
pub(crate) mod family;
pub(crate) mod guard;
pub(crate) mod guards;
pub(crate) mod helper;
pub(crate) mod input;
pub(crate) mod itself;
pub(crate) mod signals;
pub(crate) mod start;
pub(crate) mod terminal;
pub(crate) mod watchdog;
pub(crate) mod words;
