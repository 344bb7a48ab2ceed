//! How operations word what they tell people: spans of time, moments, names, texts from elsewhere.

use std::{fmt::Display, time::Duration};

/// A text from elsewhere without anything that steers a terminal.
#[must_use]
pub fn tame(text: &str) -> String {
    let mut tamed = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() { tamed.extend(c.escape_default()) } else { tamed.push(c) }
    }
    tamed
}

/// `s` unless it is one.
#[must_use]
pub const fn plural(count: u64) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// The names there are, for somebody who named another; nothing if there are none.
pub(super) fn one_of(names: &[impl Display]) -> String {
    const SHOWN: usize = 10;
    let more = names.len().saturating_sub(SHOWN);
    let shown = names.iter().take(SHOWN).map(ToString::to_string).collect::<Vec<_>>().join(", ");
    match (names.is_empty(), more) {
        (true, _) => String::new(),
        (_, 0) => format!(" (there are: {shown})"),
        (_, more) => format!(" (there are: {shown} and {more} more)"),
    }
}

/// A duration in the unit that suits it.
#[must_use]
pub fn span(time: Duration) -> String {
    match time.as_millis() {
        ms @ 0..1000 => format!("{ms} ms"),
        ms @ 1000..60_000 if ms % 1000 < 100 => format!("{} s", ms / 1000),
        ms @ 1000..60_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        ms @ 60_000..3_600_000 => format!("{} min", ms / 60_000),
        ms => format!("{} h {} min", ms / 3_600_000, ms % 3_600_000 / 60_000),
    }
}

/// Milliseconds since 1970 as a date and time in UTC.
#[must_use]
pub fn moment(ms: u64) -> String {
    let (days, of_day) = (ms / 86_400_000, ms % 86_400_000);
    // Civil date from a day count, in eras of 400 years that begin on 1 March.
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (of_day / 3_600_000, of_day / 60_000 % 60, of_day / 1000 % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", of_day % 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_in_utc() {
        assert_eq!(moment(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(moment(951_782_400_123), "2000-02-29T00:00:00.123Z");
        assert_eq!(moment(1_767_225_599_999), "2025-12-31T23:59:59.999Z");
    }

    #[test]
    fn control_characters_are_not_printed() {
        assert_eq!(tame("a\u{1b}[31mé\n"), "a\\u{1b}[31mé\\n");
    }
}
