//! The promises that a step may break. Some are promises of sessions, too.

use crate::kit::promises;

promises! {
    /// Two terms had one token, or the first write of a term was committed with a token that was not larger than those
    /// of all terms whose first write was committed before.
    ///
    /// With clocks within their bound, the terms also begin in this order. Without the bound, a late answer may
    /// begin a term after the next term has begun. The late term has the smaller token, and the fence refuses it.
    Tokens = "tokens",
    /// A term began although no committed write of the process gave it the lock, or not by a session that was open.
    Unearned = "no unearned term",
    /// A term that had ended was valid again.
    Revival = "no revival",
    /// A term was given up as taken over although the record, and the session if it has one, still was the term's own.
    SpuriousLoss = "no spurious loss",
    /// A write replaced the valid lease of another node, or its valid session.
    Erasure = "no erasure",
    /// A lease, or a session, was released while work that needed it still ran.
    EarlyRelease = "no early release",
    /// The work of a term ran on when its lease was over, although the machine had read the clock.
    Overrun = "no overrun",
    /// A candidacy was over although its work still ran and had not been given up.
    EarlyEnd = "no early end",
    /// A candidate that had been asked to stop competed for another term.
    Disobedience = "no disobedience",
    /// A node announced another leader before it ended its own term.
    Order = "stop before the next leader",
    /// A candidate created the record anew before the end of a lease that it had seen.
    Haste = "no haste",
    /// A request was sent before the time that the store had asked for, and was not the one that a leader may send in its
    /// last moment.
    Hurry = "no hurry",
    /// A leader would let its term end without having asked once more, because the store had asked it to wait.
    Resignation = "no resignation",
    /// A duplicate identity was reported, but neither another process nor an earlier process of this candidate wrote
    /// the object under the same identity.
    FalseDuplicate = "no false duplicate identity",
    /// A term or its work began for a job whose mark was committed.
    Repetition = "once per job",
    /// A mark was committed for work that had not succeeded, or by another write than the release of its term.
    FalseMark = "no false mark",
    /// A write dropped the mark.
    LostMark = "no lost mark",
    /// Work had succeeded, and its candidate released the lease without the mark, or ended its candidacy without a release
    /// although the lease was still its own.
    MissingMark = "no missing mark",
    /// A candidate said that the job was done before a mark was committed.
    FalseReport = "no false report of a job",
    /// A message without news changed the state of a candidate.
    Echo = "no echo",
    /// A term went on, or its lease was kept, although its work had failed.
    Futility = "no futility",
    /// A candidate took a free lease before the time of its rank.
    Pushing = "no pushing",
    /// A candidate asked for the lease without a better rank, or before its fail-back delay was over.
    Insolence = "no insolence",
    /// The count of requests was lost, or did not grow by a request.
    Oblivion = "no oblivion",
    /// A candidate would read later than two retry periods from now, although its leader may be silent from now on.
    Trust = "no trust in silence",
    /// A candidate whose read showed no renewal would read later than a retry period from now.
    Sloth = "no sloth",
}
