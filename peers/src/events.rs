//! The events of a stream, cut out of its bytes. What is no event takes no memory.

use crate::refusal::Refusal;
use crate::wire::LARGEST;

/// The bytes of an event that is not complete.
#[derive(Debug, Default)]
pub(crate) struct Events(Vec<u8>);

impl Events {
    /// Takes bytes of the stream, up to the end of the next event. Returns the data of this event, and removes the bytes
    /// that were taken. An event without data, such as a comment, is none.
    pub(crate) fn next(&mut self, bytes: &mut &[u8]) -> Result<Option<Vec<u8>>, Refusal> {
        while let Some((byte, rest)) = bytes.split_first() {
            *bytes = rest;
            if *byte == b'\r' {
                continue;
            }
            if self.0.len() >= LARGEST {
                return Err(Refusal::TooLarge(LARGEST));
            }
            self.0.push(*byte);
            if self.0.ends_with(b"\n\n") {
                let event = std::mem::take(&mut self.0);
                if let Some(data) = data(&event) {
                    return Ok(Some(data));
                }
            }
        }
        Ok(None)
    }
}

fn data(event: &[u8]) -> Option<Vec<u8>> {
    let mut lines = event.split(|byte| *byte == b'\n').filter_map(|line| line.strip_prefix(b"data:"));
    let first = lines.next()?;
    Some(first.strip_prefix(b" ").unwrap_or(first).to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(events: &mut Events, mut bytes: &[u8]) -> Vec<String> {
        std::iter::from_fn(|| events.next(&mut bytes).unwrap()).map(|data| String::from_utf8(data).unwrap()).collect()
    }

    #[test]
    fn events_are_found_however_they_are_cut() {
        let stream = b": comment\n\nevent: renewal\ndata: {\"a\":1}\n\ndata:{}\r\n\r\n\n\ndata: half";
        for cut in 0..stream.len() {
            let mut events = Events::default();
            let (first, second) = stream.split_at(cut);
            let mut found = all(&mut events, first);
            found.extend(all(&mut events, second));
            assert_eq!(found, ["{\"a\":1}", "{}"], "cut at {cut}");
        }
    }

    #[test]
    fn an_event_without_end_is_refused() {
        let mut events = Events::default();
        let flood = vec![b'x'; LARGEST + 1];
        assert_eq!(events.next(&mut flood.as_slice()), Err(Refusal::TooLarge(LARGEST)));
    }
}
