//! The network: requests in flight, answers in flight, and requests for whose answers nobody waits.

/// The requests of all nodes. A node has at most one request to a target.
#[derive(Clone, Debug, Hash)]
pub struct Net<T, Q, A> {
    flights: Vec<Vec<(T, Flight<Q, A>)>>,
    /// The requests that may arrive although nobody waits for their answers.
    pub late: Vec<Late<T, Q>>,
}

/// A request for whose answer a node waits.
#[derive(Clone, Debug, Hash)]
pub enum Flight<Q, A> {
    /// The request is in flight to the store.
    Sent(Q),
    /// The store has handled the request, and the answer is in flight back.
    Answered(A),
}

/// A request for whose answer nobody waits.
#[derive(Clone, Debug, Hash)]
pub struct Late<T, Q> {
    /// The node that has sent the request; `None` if the node has crashed since.
    pub sender: Option<usize>,
    /// The subject of the request.
    pub about: T,
    /// The request.
    pub request: Q,
}

impl<T: Clone + Ord, Q, A> Net<T, Q, A> {
    /// Creates the network of a number of nodes.
    pub fn new(nodes: usize) -> Self {
        Self { flights: (0..nodes).map(|_| Vec::new()).collect(), late: Vec::new() }
    }

    /// The requests of a node, in the order of their targets.
    pub fn of(&self, node: usize) -> &[(T, Flight<Q, A>)] {
        &self.flights[node]
    }

    /// All requests for whose answers a node waits.
    pub fn flights(&self) -> impl Iterator<Item = &Flight<Q, A>> {
        self.flights.iter().flatten().map(|(_, flight)| flight)
    }

    /// The request of a node to a target.
    pub fn get(&self, node: usize, to: &T) -> Option<&Flight<Q, A>> {
        self.flights[node].iter().find(|(target, _)| target == to).map(|(_, flight)| flight)
    }

    /// Takes the request of a node to a target off the network.
    pub fn take(&mut self, node: usize, to: &T) -> Option<Flight<Q, A>> {
        let at = self.flights[node].iter().position(|(target, _)| target == to)?;
        Some(self.flights[node].remove(at).1)
    }

    /// Puts a request of a node, or the answer to it, in flight.
    pub fn put(&mut self, node: usize, to: T, flight: Flight<Q, A>) {
        let at = self.flights[node].partition_point(|(target, _)| *target < to);
        self.flights[node].insert(at, (to, flight));
    }

    /// Leaves a request of a node that no longer waits in flight, if no more than `most` are. Further ones are lost.
    pub fn leave(&mut self, node: usize, to: T, request: Q, most: usize) {
        if self.late.len() < most {
            self.late.push(Late { sender: Some(node), about: to, request });
        }
    }

    /// Forgets who has sent the late requests of a node.
    pub fn forget(&mut self, node: usize) {
        for late in &mut self.late {
            late.sender.take_if(|sender| *sender == node);
        }
    }

    /// Brings the late requests into an order, because their order makes no difference.
    pub fn sort(&mut self) {
        self.late.sort_by(|a, b| (a.sender, &a.about).cmp(&(b.sender, &b.about)));
    }
}
