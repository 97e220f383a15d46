//! The promises that a step may break.

use crate::kit::promises;

promises! {
    /// Two terms of a lock had one token, or the first write of a term landed with a token that was not larger than all
    /// before.
    Tokens = "tokens",
    /// A term that had ended was valid again.
    Revival = "no revival",
    /// A term was given up as taken over although lock and session still were the term's own.
    SpuriousLoss = "no spurious loss",
    /// A write replaced the lock of a valid term, or a session that was valid, of another node.
    Erasure = "no erasure",
    /// A lock or a session was released while work ran that needed it.
    EarlyRelease = "no early release",
    /// The work of a term ran on when its lease was over, although the machine had looked at the clock.
    Overrun = "no overrun",
}
