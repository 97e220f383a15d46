//! Numbers and durations at the ends of their ranges, where sums overflow and units carry.

/// The places around which numbers are taken: 0, the carries of units, and the ends of the integers and of the whole numbers
/// that a float has.
const PLACES: [u128; 11] = [0, 24, 60, 1_000, 1_000_000, 1_000_000_000, 1 << 31, 1 << 32, 1 << 53, 1 << 63, 1 << 64];

/// Numbers that no integer is.
const OTHERS: [&str; 6] =
    ["-1", "-9223372036854775809", "340282366920938463463374607431768211456", "1.5", "1e999", "00000000000000000002"];

/// The units of durations, one for each length.
pub const UNITS: [&str; 10] = ["ns", "us", "ms", "s", "m", "h", "days", "weeks", "months", "years"];

/// Whole numbers: each place, the one before and the one behind.
pub fn whole_numbers() -> impl Iterator<Item = u128> + Clone {
    PLACES.into_iter().flat_map(|place| place.saturating_sub(1)..=place + 1)
}

/// Everything that may stand in the place of a number.
pub fn numbers() -> impl Iterator<Item = String> {
    whole_numbers().map(|number| number.to_string()).chain(OTHERS.map(str::to_owned))
}

/// Durations of one part.
pub fn parts() -> impl Iterator<Item = String> + Clone {
    whole_numbers().flat_map(|number| UNITS.map(|unit| format!("{number}{unit}")))
}

/// Durations beside the longest that there is: the last seconds, and a part that is nearly one more, is one, or is more.
pub fn beside_the_longest() -> impl Iterator<Item = String> {
    let seconds = [u64::MAX - 1, u64::MAX].into_iter();
    let rests = [(1_000_000_000u64, "ns"), (1_000_000, "us"), (1_000, "ms")];
    let rests =
        rests.into_iter().flat_map(|(carry, unit)| (carry - 1..=carry + 1).map(move |rest| format!("{rest}{unit}")));
    seconds.flat_map(move |seconds| rests.clone().map(move |rest| format!("{seconds}s{rest}")))
}
