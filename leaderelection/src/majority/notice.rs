//! The news about a lock of which a candidate needs all parts.

/// Something that people should know about the first part and another. No decision depends on it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Notice {
    /// Somebody holds the first part and not the others.
    OldAlone {
        /// The holder.
        leader: String,
    },
    /// Somebody holds another part and not the first.
    NewAlone {
        /// The holder.
        leader: String,
    },
    /// Both are renewed, by different holders.
    TwoLeaders {
        /// The holder of the first part.
        old: String,
        /// The holder of the other.
        new: String,
    },
}
