//! The canonical form of a state, and the ids in it: one number for all states that differ only in the names of their ids.
//!
//! The protocol compares ids for equality only, so the hash has the place of each id in the order of appearance instead of
//! the id. Two states that nothing but their ids tells apart have the same futures.

use std::hash::{Hash, Hasher};

use chrono::DateTime;
use leaderelection::election::{EntropySource, Jitter, WriteMeta};
use leaderelection::implement::Version;

/// More ids than a state has.
const MOST_IDS: usize = 64;

/// Returns the number of a state.
pub fn fingerprint(state: &impl Hash) -> u64 {
    let mut hash = Canonical { hash: 0, seen: [0; MOST_IDS], count: 0 };
    state.hash(&mut hash);
    hash.finish()
}

/// The orders of a number of nodes in which a state is one of its mirror images.
pub fn orders(nodes: usize, is_alike: bool) -> &'static [&'static [usize]] {
    match nodes {
        2 if is_alike => &[&[0, 1], &[1, 0]],
        3 if is_alike => &[&[0, 1, 2], &[0, 2, 1], &[1, 0, 2], &[1, 2, 0], &[2, 0, 1], &[2, 1, 0]],
        1 => &[&[0]],
        2 => &[&[0, 1]],
        _ => &[&[0, 1, 2]],
    }
}

/// One number for all mirror images of a state, each of which is hashed in its order of the nodes. The sketches of the nodes,
/// which are the same in each image, decide about most orders: a fingerprint takes long.
pub fn least_image<S: PartialOrd, I: Hash>(
    orders: &'static [&'static [usize]],
    sketch: impl Fn(usize) -> S,
    image: impl Fn(&'static [usize]) -> I,
) -> u64 {
    let is_first = |order: &&&'static [usize]| order.is_sorted_by_key(|node| sketch(*node));
    let chosen = orders.iter().filter(|order| orders.len() == 1 || is_first(order));
    chosen.map(|order| fingerprint(&image(order))).min().expect("at least one order")
}

struct Canonical {
    hash: u64,
    seen: [u64; MOST_IDS],
    count: usize,
}

impl Canonical {
    fn place_of(&mut self, id: u64) -> usize {
        let known = self.seen[..self.count].iter().position(|seen| *seen == id);
        known.unwrap_or_else(|| {
            self.seen[self.count] = id;
            self.count += 1;
            self.count - 1
        })
    }

    fn text(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }
}

impl Hasher for Canonical {
    /// Each step is a permutation for a given word, so that no two states become one before the last word.
    fn write_u64(&mut self, word: u64) {
        self.hash = (self.hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.hash ^= self.hash >> 32;
    }

    fn write(&mut self, bytes: &[u8]) {
        let mut parts = bytes.split(|byte| *byte == MARK);
        self.text(parts.next().unwrap_or_default());
        for part in parts {
            let digits = part.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
            let id = part[..digits].iter().fold(0, |id, digit| id << 8 | u64::from(*digit));
            let place = self.place_of(id);
            self.write_u64(!(place as u64));
            self.text(&part[digits..]);
        }
    }

    fn write_u8(&mut self, number: u8) {
        self.write_u64(number.into());
    }

    fn write_u16(&mut self, number: u16) {
        self.write_u64(number.into());
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(number.into());
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn finish(&self) -> u64 {
        let hash = (self.hash ^ self.hash >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash ^ hash >> 32
    }
}

/// The first character of every id, and of nothing else.
const MARK: u8 = b'#';

/// A source of ids without chance.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ids(u32);

impl Ids {
    /// Returns an id that was never used.
    pub fn unused(&mut self) -> String {
        self.0 += 1;
        format!("{}{}", char::from(MARK), self.0)
    }

    /// Returns a version that was never used.
    pub fn version(&mut self) -> Version {
        Version::new(self.unused())
    }
}

impl EntropySource for Ids {
    fn jitter(&mut self) -> Jitter {
        Jitter::default()
    }

    fn stamp(&mut self) -> WriteMeta {
        WriteMeta { write_id: self.unused(), time: DateTime::UNIX_EPOCH }
    }
}

/// The number of ids that were used makes no difference.
impl Hash for Ids {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}
