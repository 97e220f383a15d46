//! Inputs without a fuzzer: files of a corpus with damage, and bytes from nowhere.
//!
//! Bytes that are drawn at random are hardly ever a record. Damaged ones often are, and often nearly.

use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::corpus::{corpus, words};

/// The most times that a part is repeated.
const REPEATS: usize = 200;

#[derive(Clone, Debug)]
enum Damage {
    Insert(Index, Vec<u8>),
    /// Puts a word in place of a number, so that parts around it keep their meaning.
    Number(Index, Vec<u8>),
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
    let (numbers, others): (Vec<_>, Vec<_>) = words().into_iter().partition(|word| word[0].is_ascii_digit());
    let word = prop_oneof![select(numbers.clone()), select(others)];
    prop_oneof![
        3 => (at(), word).prop_map(|(at, word)| Damage::Insert(at, word)),
        6 => (at(), select(numbers)).prop_map(|(at, number)| Damage::Number(at, number)),
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
            Self::Number(at, number) => {
                let is_digit = |place: usize| bytes.get(place).is_some_and(u8::is_ascii_digit);
                let starts: Vec<usize> =
                    (0..bytes.len()).filter(|&at| is_digit(at) && (at == 0 || !is_digit(at - 1))).collect();
                if !starts.is_empty() {
                    let start = starts[at.index(starts.len())];
                    let end = (start..).find(|&place| !is_digit(place)).unwrap_or(bytes.len());
                    bytes.splice(start..end, number);
                }
            }
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
