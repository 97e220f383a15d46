//! Inputs whose numbers are at the ends of their ranges.

use std::ops::Range;
use std::sync::LazyLock;

use leaderelection_test_support::borders;

static NUMBERS: LazyLock<Vec<String>> = LazyLock::new(|| borders::numbers().collect());
static PARTS: LazyLock<Vec<String>> = LazyLock::new(|| borders::parts().collect());
static LONGEST: LazyLock<Vec<String>> = LazyLock::new(|| borders::beside_the_longest().collect());

/// Puts another number instead of one, or another duration instead of one. The seed decides which.
pub fn at_the_border(bytes: &mut Vec<u8>, seed: u64) {
    let mut draw = EntropySource(seed);
    let durations = runs(bytes, |byte| byte.is_ascii_alphanumeric() || *byte == b'.');
    let durations: Vec<_> = durations.into_iter().filter(|run| is_duration(&bytes[run.clone()])).collect();
    if !durations.is_empty() && draw.below(2) == 0 {
        let run = durations[draw.below(durations.len())].clone();
        let duration = match draw.below(4) {
            0 => LONGEST[draw.below(LONGEST.len())].clone(),
            more => (0..more).map(|_| PARTS[draw.below(PARTS.len())].as_str()).collect(),
        };
        bytes.splice(run, duration.into_bytes());
        return;
    }
    let numbers = runs(bytes, u8::is_ascii_digit);
    if !numbers.is_empty() {
        let run = numbers[draw.below(numbers.len())].clone();
        bytes.splice(run, NUMBERS[draw.below(NUMBERS.len())].bytes());
    }
}

/// Returns `true` if these bytes look like a duration: a digit first, and a letter last.
fn is_duration(run: &[u8]) -> bool {
    matches!(run, [b'0'..=b'9', .., last] if last.is_ascii_lowercase())
}

/// The places where such bytes follow one another.
fn runs(bytes: &[u8], is_part: impl Fn(&u8) -> bool) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (at, _) in bytes.iter().enumerate().filter(|(_, byte)| is_part(byte)) {
        match runs.last_mut().filter(|run| run.end == at) {
            Some(run) => run.end += 1,
            None => runs.push(at..at + 1),
        }
    }
    runs
}

/// Numbers from a seed, by SplitMix64.
struct EntropySource(u64);

impl EntropySource {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((mixed ^ (mixed >> 31)) % end as u64).expect("smaller than a length")
    }
}
