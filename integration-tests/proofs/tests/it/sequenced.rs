//! The calls of a sequenced store, explored: every interleaving of the requests of two processes.

use crate::keeps_every_promise;

#[test]
fn every_interleaving_keeps_the_contract_of_a_store() {
    keeps_every_promise("sequenced");
}
