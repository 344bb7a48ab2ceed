//! How operations word what they tell people: spans of time, moments, names, texts from elsewhere.

use std::{
    fmt::{Display, Write as _},
    time::Duration,
};

/// Whether a character steers what shows it: control characters, ends of lines and paragraphs, directions of writing.
fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{206f}')
}

/// A text from elsewhere without anything that steers a terminal or ends a line.
#[must_use]
pub fn tame(text: &str) -> String {
    let mut tamed = String::with_capacity(text.len());
    for c in text.chars() {
        if steers(c) { tamed.extend(c.escape_default()) } else { tamed.push(c) }
    }
    tamed
}

/// A JSON text on one line, the same value without anything that steers a terminal.
#[must_use]
pub fn tame_json(json: &str) -> String {
    let mut tamed = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            // Within a string these are escaped already; between two tokens one blank is as good as another.
            '\n' | '\r' | '\t' => tamed.push(' '),
            // All others stand in strings; none takes more than four digits.
            c if steers(c) => drop(write!(tamed, "\\u{:04x}", u32::from(c))),
            c => tamed.push(c),
        }
    }
    tamed
}

/// The beginning of a text, of so many bytes at most, and how much of it is left out.
#[must_use]
pub fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let end = (0..=most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let (shown, left_out) = text.split_at(end);
    format!("{shown}… ({} bytes more)", left_out.len())
}

/// `s` unless it is one.
#[must_use]
pub const fn plural(count: u64) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// A number of bytes in the largest unit of which it is a whole number.
#[must_use]
pub fn size(bytes: u64) -> String {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let unit = units.into_iter().find(|(unit, _)| bytes > 0 && bytes.is_multiple_of(*unit));
    unit.map_or_else(|| format!("{bytes} bytes"), |(unit, name)| format!("{} {name}", bytes / unit))
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
        assert_eq!(tame("\u{202e}a\u{2028}b\u{9b}c\u{2066}"), "\\u{202e}a\\u{2028}b\\u{9b}c\\u{2066}");
    }

    #[test]
    fn json_is_the_same_value_without_control_characters() {
        let json = "{\n\t\"a\": \"\u{9b}31m\u{7f}\u{2029}\u{202e}\u{2067}é\\n\"}";
        let tamed = tame_json(json);
        assert_eq!(tamed, "{  \"a\": \"\\u009b31m\\u007f\\u2029\\u202e\\u2067é\\n\"}");
        let value = |text| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(value(&tamed), value(json));
    }

    #[test]
    fn sizes_are_whole_numbers_of_their_unit() {
        assert_eq!([4 << 30, 200 << 10, 1500, 0].map(size), ["4 GiB", "200 KiB", "1500 bytes", "0 bytes"]);
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("aéé", 4), "aé… (2 bytes more)");
    }
}
