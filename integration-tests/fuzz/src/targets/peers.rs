//! The stream of a peer.

use std::time::Duration;

use leaderelection::LeaderElectionRecord;
use leaderelection_peers::stream::{Said, Stream};

pub(super) fn peers(input: &[u8]) {
    // However the network cuts it, a stream says the same.
    assert_eq!(said(input, 7), said(input, input.len().max(1)));
}

/// Returns what is believed of a stream that comes in pieces, up to its end or its first fault.
fn said(input: &[u8], length: usize) -> Vec<String> {
    let mut stream = Stream::new("lock", "nonce", None);
    let mut all = Vec::new();
    for mut bytes in input.chunks(length) {
        while let Some(said) = stream.next(&mut bytes, "a", 7).transpose() {
            all.push(format!("{said:?}"));
            match said {
                Ok(Said::Committed { record, .. }) => {
                    let again = LeaderElectionRecord::from_json(&record.to_json(), Duration::MAX);
                    assert_eq!(again.unwrap(), *record);
                }
                Ok(Said::Ended) | Err(_) => return all,
            }
        }
    }
    all
}
