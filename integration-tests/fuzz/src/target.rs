//! A target, and the bounds that hold for all.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use allocation_counter::{measure, opt_out};

/// The memory that a target may take at once beside what grows with its input, in bytes.
const MEMORY: u64 = 1 << 20;

/// The most bytes of memory for each byte of an input.
const MEMORY_PER_BYTE: u64 = 100;

/// A reader of the bytes of others.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The name of the target, and of the folder of its corpus.
    pub name: &'static str,
    read: fn(&[u8]),
}

impl Target {
    pub(crate) const fn new(name: &'static str, read: fn(&[u8])) -> Self {
        Self { name, read }
    }

    /// Lets the target read an input.
    ///
    /// # Panics
    ///
    /// If a promise is broken, or if memory grows beyond what the input explains.
    pub fn check(&self, input: &[u8]) {
        let mut read = Ok(());
        // A panic must not pass through the measurement, which would count on.
        let taken = measure(|| read = catch_unwind(AssertUnwindSafe(|| (self.read)(input)))).bytes_max;
        if let Err(panic) = read {
            resume_unwind(panic);
        }
        let most = MEMORY + MEMORY_PER_BYTE * input.len() as u64;
        assert!(taken <= most, "{}: {} bytes of input take {taken} bytes of memory at once", self.name, input.len());
    }
}

/// Does what [`Target::check`] does not count: memory that no input explains, or of code that this project cannot bound.
pub(crate) fn uncounted<T>(work: impl FnOnce() -> T) -> T {
    let mut done = None;
    // After a panic that passes through `opt_out`, nothing would be counted any more.
    opt_out(|| done = Some(catch_unwind(AssertUnwindSafe(work))));
    done.expect("what is called ends").unwrap_or_else(|panic| resume_unwind(panic))
}
