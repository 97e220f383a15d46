//! The news about a lock of which a candidate needs all parts.

/// The holder of the first part, of another, or of each, who does not hold the other. Both are named if both renew. No decision
/// depends on it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Notice {
    /// The holder of the first part.
    pub old: Option<String>,
    /// The holder of another part.
    pub new: Option<String>,
}
