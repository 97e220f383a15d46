//! What a network does to a request that it should just carry.

/// What becomes of a request, and what its sender is told: two things that have nothing to do with each
/// other, which is the whole difficulty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What reaches the server.
    pub delivery: Delivery,
    /// What reaches the client.
    pub reply: Reply,
}

/// What reaches the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// Nothing.
    Never,
    /// The request, as it should be.
    Once,
    /// The request, and when it is answered, the request again.
    Twice,
    /// Nothing before [`Proxy::deliver_held`](super::Proxy::deliver_held) or a request that is
    /// [`BehindHeld`](Self::BehindHeld).
    Held,
    /// Everything that is held, and when that is answered, the request.
    BehindHeld,
}

/// What reaches the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// What the server answered.
    Honest,
    /// What the server answered to a request that it got [`Twice`](Delivery::Twice), the second time.
    Second,
    /// Nothing: the connection stays open.
    Silence,
    /// The end of the connection.
    Cut,
    /// This status, with an empty body.
    Status(u16),
    /// 429, with a `Retry-After` of so many seconds.
    Throttled(u32),
}

impl Fault {
    /// A fault.
    #[must_use]
    pub const fn new(delivery: Delivery, reply: Reply) -> Self {
        Self { delivery, reply }
    }

    pub(super) const NONE: Self = Self::new(Delivery::Once, Reply::Honest);

    /// Whether the client is answered only after the server was.
    pub(super) fn waits_for_the_server(self) -> bool {
        match self.delivery {
            Delivery::Never => false,
            // A gateway that has the request in a queue may well answer by itself.
            Delivery::Held => matches!(self.reply, Reply::Honest | Reply::Second),
            Delivery::Once | Delivery::Twice | Delivery::BehindHeld => true,
        }
    }
}
