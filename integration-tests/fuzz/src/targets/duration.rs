//! Durations as people write them.

use std::time::Duration;

use leaderelection::timings::parse_duration;

/// The longest numbers whose sums cannot overflow, whatever their units, so that humantime cannot panic.
const SAFE_DIGITS: usize = 6;

pub(super) fn duration(input: &[u8]) {
    let Ok(text) = str::from_utf8(input) else { return };
    let read = parse_duration(text);
    if let Ok(duration) = read {
        assert_eq!(parse_duration(&humantime::format_duration(duration).to_string()), Ok(duration));
    }
    let numbers = text.split(|character: char| !character.is_ascii_digit());
    if numbers.clone().all(|number| number.len() <= SAFE_DIGITS) && numbers.count() < 1_000 {
        assert_eq!(read.map_err(|error| error.to_string()), judged(text).map_err(|error| error.to_string()));
    }
}

#[allow(clippy::disallowed_methods, reason = "these sums are small")]
fn judged(text: &str) -> Result<Duration, humantime::DurationError> {
    humantime::parse_duration(text)
}
