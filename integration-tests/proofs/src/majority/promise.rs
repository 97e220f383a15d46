//! The promises that a step may break.

use crate::kit::promises;

promises! {
    /// A term began whose token is not larger than that of every earlier term on either lock.
    TokenWentBack = "tokens rise",
    /// A term ended because the leader took its own write for another's.
    LostToItself = "no term is lost to itself",
    /// A candidate kept one lock, although the other was refused.
    KeptHalf = "no half is kept",
    /// A write erased the mark of the job.
    LostMark = "marks are kept",
    /// A write began a term for the job that the lock said is done.
    Repetition = "the job is done once",
}
