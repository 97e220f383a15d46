//! Inputs without a fuzzer: files of a corpus with damage, and bytes from nowhere.
//!
//! Bytes that are drawn at random are hardly ever a record. Damaged ones often are, and often nearly.

use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::borders::at_the_border;
use crate::corpus::{corpus, words};

/// The most times that a part is repeated.
const REPEATS: usize = 200;

#[derive(Clone, Debug)]
enum Damage {
    Insert(Index, Vec<u8>),
    /// Puts a number or a duration at the end of its range instead of another, so that the parts around it keep their meaning.
    Border(u64),
    Replace(Index, u8),
    Remove(Index, usize),
    Repeat(Index, usize, usize),
    /// Goes on with the end of another file.
    Cross(Index, Index, Vec<u8>),
}

/// Returns the inputs of a target.
pub fn inputs(target: &str) -> BoxedStrategy<Vec<u8>> {
    let files: Vec<Vec<u8>> = corpus(target).into_iter().map(|(_, content)| content).collect();
    let random = prop::collection::vec(any::<u8>(), 0..2_000);
    if files.is_empty() {
        return random.boxed();
    }
    let damaged = (select(files.clone()), prop::collection::vec(damage(files), 1..6))
        .prop_map(|(file, damages)| damages.into_iter().fold(file, Damage::apply_to));
    prop_oneof![19 => damaged, 1 => random].boxed()
}

fn damage(files: Vec<Vec<u8>>) -> impl Strategy<Value = Damage> {
    let at = any::<Index>;
    prop_oneof![
        3 => (at(), select(words())).prop_map(|(at, word)| Damage::Insert(at, word)),
        6 => any::<u64>().prop_map(Damage::Border),
        2 => (at(), any::<u8>()).prop_map(|(at, byte)| Damage::Replace(at, byte)),
        2 => (at(), 1..20usize).prop_map(|(at, length)| Damage::Remove(at, length)),
        1 => (at(), 1..20usize, 1..REPEATS).prop_map(|(at, length, times)| Damage::Repeat(at, length, times)),
        1 => (at(), at(), select(files)).prop_map(|(at, from, file)| Damage::Cross(at, from, file)),
    ]
}

impl Damage {
    fn apply_to(mut bytes: Vec<u8>, damage: Self) -> Vec<u8> {
        // One place behind the last byte counts too.
        let place = |at: Index, bytes: &[u8]| at.index(bytes.len() + 1);
        match damage {
            Self::Insert(at, word) => drop(bytes.splice(place(at, &bytes)..place(at, &bytes), word)),
            Self::Border(seed) => at_the_border(&mut bytes, seed),
            Self::Replace(at, byte) => {
                let at = at.index(bytes.len().max(1));
                if let Some(place) = bytes.get_mut(at) {
                    *place = byte;
                }
            }
            Self::Remove(at, length) => {
                let at = place(at, &bytes);
                bytes.drain(at..bytes.len().min(at + length));
            }
            Self::Repeat(at, length, times) => {
                let at = place(at, &bytes);
                let part = bytes[at..bytes.len().min(at + length)].repeat(times);
                bytes.splice(at..at, part);
            }
            Self::Cross(at, from, file) => {
                bytes.truncate(place(at, &bytes));
                bytes.extend_from_slice(&file[place(from, &file)..]);
            }
        }
        bytes
    }
}
