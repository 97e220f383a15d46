//! Counts allocations and bytes on one thread and in simulated time, so that every run of one build counts the same.
//! Shared by the test that guards the targets and the benchmark that prints the figures.

use std::ops::Range;

use allocation_counter::measure;
use leaderelection::implement::{ConditionalStore, Precondition};
use leaderelection::{MemoryLock, MemoryStore};

use super::leader::{KEY, RETRY, campaign, one_leader, pass, runtime, writes};

/// Allocations per write of a body that is encoded already.
pub(crate) fn allocations_per_bare_write(writes: u32) -> f64 {
    let (leading, store) = one_leader();
    drop(leading);
    let runtime = runtime();
    let object = runtime.block_on(store.get(KEY)).unwrap().unwrap();
    let mut expected = Precondition::Matches(object.version);
    let info = measure(|| {
        runtime.block_on(async {
            for _ in 0..writes {
                expected = Precondition::Matches(store.put(KEY, object.body.clone(), &expected).await.unwrap());
            }
        });
    });
    info.count_total as f64 / f64::from(writes)
}

/// Allocations per renewal of a leader that nothing disturbs, the write in the store included.
pub(crate) fn allocations_per_renewal(renewals: u32) -> f64 {
    let (runtime, store) = one_leader();
    let before = writes(&runtime, &store);
    let info = measure(|| pass(&runtime, RETRY * renewals));
    assert_eq!(writes(&runtime, &store) - before, renewals, "one write per retry period");
    info.count_total as f64 / f64::from(renewals)
}

/// Bytes that one more leader of a lock of its own holds between two renewals: the elector, its task,
/// the task of its work, the lock, and the object in the store.
pub(crate) fn bytes_per_leader(electors: usize) -> f64 {
    bytes_per_elector(electors, |store, index| MemoryLock::new(store, format!("{KEY}-{index}"), "node-1"))
}

/// Bytes that one more follower holds between two reads: the elector, its task, and the lock.
pub(crate) fn bytes_per_follower(electors: usize) -> f64 {
    bytes_per_elector(electors, |store, index| MemoryLock::new(store, KEY, format!("node-1-{index}")))
}

/// The bytes that each of `electors` more electors holds. Memory that a process needs only once does not count.
fn bytes_per_elector(electors: usize, lock: impl Fn(MemoryStore, usize) -> MemoryLock) -> f64 {
    let (runtime, store) = one_leader();
    let start = |range: Range<usize>| {
        range.for_each(|index| drop(runtime.spawn(campaign(lock(store.clone(), index)))));
        pass(&runtime, RETRY * 10);
    };
    start(0..electors);
    let info = measure(|| start(electors..2 * electors));
    info.bytes_current as f64 / electors as f64
}
