//! Work on many Leases, in parts: one thread answers all requests, and the others wait for the part that goes on.

use tokio::task::yield_now;

/// The bytes of Leases that are read in one go, which takes less than a millisecond.
pub(crate) const BYTES_AT_ONCE: usize = 128 * 1024;

/// What each Lease costs beside its bytes.
const EACH: usize = 100;

/// The bytes that were read since all others had a turn.
#[derive(Debug, Default)]
pub(crate) struct Pace(usize);

impl Pace {
    /// Gives all others a turn, unless there is room for so many bytes more.
    pub(crate) async fn spend(&mut self, bytes: usize) {
        self.0 = self.0.saturating_add(bytes).saturating_add(EACH);
        if self.0 > BYTES_AT_ONCE {
            self.0 = 0;
            yield_now().await;
        }
    }
}
