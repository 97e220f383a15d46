//! The faults that a network can apply to one write.

use leaderelection_integration_tests::proxy::{Delivery, Fault, Reply};

/// A fault of one write.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lie {
    pub(crate) name: &'static str,
    pub(crate) fault: Fault,
    /// The fault of the next write of the same kind.
    pub(crate) next: Option<Fault>,
    /// The write takes effect before its sender gets an answer.
    pub(crate) commits: bool,
}

const fn lost(name: &'static str, reply: Reply) -> Lie {
    Lie { name, fault: Fault::new(Delivery::Never, reply), next: None, commits: false }
}

const fn committed(name: &'static str, delivery: Delivery, reply: Reply) -> Lie {
    Lie { name, fault: Fault::new(delivery, reply), next: None, commits: true }
}

const fn late(name: &'static str, next: Option<Fault>) -> Lie {
    Lie { name, fault: Fault::new(Delivery::Held, Reply::Silence), next, commits: false }
}

pub(crate) const LIES: [Lie; 15] = [
    lost("lost", Reply::Silence),
    lost("lost with the connection", Reply::Cut),
    lost("lost, and answered 503", Reply::Status(503)),
    committed("committed, and the connection dropped", Delivery::Once, Reply::Cut),
    committed("committed, and answered 500", Delivery::Once, Reply::Status(500)),
    committed("committed, and answered 503", Delivery::Once, Reply::Status(503)),
    committed("committed, and answered 412", Delivery::Once, Reply::Status(412)),
    committed("committed, and never answered", Delivery::Once, Reply::Silence),
    committed("delivered twice, and the first answer", Delivery::Twice, Reply::Honest),
    committed("delivered twice, and the second answer", Delivery::Twice, Reply::Second),
    late("late, but before the next try", Some(Fault::new(Delivery::BehindHeld, Reply::Honest))),
    late("late, after the next try", None),
    lost("throttled", Reply::Throttled(1)),
    lost("refused with 409", Reply::Status(409)),
    lost("denied", Reply::Status(403)),
];

/// The faults of a store that does not answer.
pub(crate) const HANGS: [(&str, Fault); 2] = [
    ("a store that hangs", Fault::new(Delivery::Never, Reply::Silence)),
    ("a store that carries out and hangs", Fault::new(Delivery::Once, Reply::Silence)),
];

/// The faults that a network or a store can apply to every request for a while.
pub(crate) const OUTAGES: [(&str, Fault); 5] = [
    ("connections that break", Fault::new(Delivery::Never, Reply::Cut)),
    ("connections that break after the effect", Fault::new(Delivery::Once, Reply::Cut)),
    ("a store that fails", Fault::new(Delivery::Never, Reply::Status(500))),
    ("a store that throttles", Fault::new(Delivery::Never, Reply::Throttled(1))),
    ("a store that denies", Fault::new(Delivery::Never, Reply::Status(403))),
];
