//! The calls of a sequenced store, explored: every interleaving of the requests of two processes.

use leaderelection_protocol_tests::sequenced::standard;

use crate::assert_every_promise_is_kept;

#[test]
fn every_interleaving_keeps_the_contract_of_a_store() {
    assert_every_promise_is_kept("sequenced store", standard());
}
