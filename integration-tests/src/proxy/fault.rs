//! The faults of a network.

/// The delivery of a request, and the reply to its sender. The two are independent of each other, and that is
/// the central difficulty of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The delivery to the server.
    pub delivery: Delivery,
    /// The reply to the client.
    pub reply: Reply,
}

/// The delivery to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// No delivery.
    Never,
    /// One delivery.
    Once,
    /// One delivery and, after its answer, a second one.
    Twice,
    /// No delivery before [`Proxy::deliver_held`](super::Proxy::deliver_held) or before a request with
    /// [`BehindHeld`](Self::BehindHeld).
    Held,
    /// Delivery of all held requests and, after their answers, of this request.
    BehindHeld,
}

/// The reply to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The server's answer.
    Honest,
    /// The server's second answer to a request that is delivered [`Twice`](Delivery::Twice).
    Second,
    /// No answer: the connection stays open.
    Silence,
    /// A closed connection.
    Cut,
    /// This status, with an empty body.
    Status(u16),
    /// 429, with a `Retry-After` of this number of seconds.
    Throttled(u32),
}

impl Fault {
    /// Combines a delivery and a reply.
    #[must_use]
    pub const fn new(delivery: Delivery, reply: Reply) -> Self {
        Self { delivery, reply }
    }

    pub(super) const NONE: Self = Self::new(Delivery::Once, Reply::Honest);

    /// Returns `true` if the reply has to wait for the server's answer.
    pub(super) fn waits_for_the_server(self) -> bool {
        match self.delivery {
            Delivery::Never => false,
            // A gateway may answer by itself while the request waits in its queue.
            Delivery::Held => matches!(self.reply, Reply::Honest | Reply::Second),
            Delivery::Once | Delivery::Twice | Delivery::BehindHeld => true,
        }
    }
}
