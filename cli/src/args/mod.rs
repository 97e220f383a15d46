//! Arguments that several commands share.

pub(crate) mod election;
pub(crate) mod parts;
pub(crate) mod peers;
pub(crate) mod timing;

/// Sets what the arguments contain, and leaves everything else at its default.
fn set<B, T>(builder: B, value: Option<T>, setter: impl FnOnce(B, T) -> B) -> B {
    match value {
        Some(value) => setter(builder, value),
        None => builder,
    }
}
