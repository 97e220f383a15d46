//! The documents whose examples are tested here, because the library cannot depend on the stores.

#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;

#[cfg(doctest)]
#[doc = include_str!("../../docs/many-locks.md")]
struct ManyLocks;

#[cfg(doctest)]
#[doc = include_str!("../../leaderelection/README.md")]
#[doc = include_str!("../../leaderelection/docs/start.md")]
#[doc = include_str!("../../docs/library.md")]
struct Library;
