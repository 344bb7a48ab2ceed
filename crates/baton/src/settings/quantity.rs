//! Durations and sizes as people write them, in flags, variables, files and addresses. What is refused is told as one
//! sentence that names the text.

use std::{ops::RangeInclusive, time::Duration};

use crate::{message::MAX_BODY_LIMIT, store::MAX_KEY_TTL_MS};

const LONGEST: Duration = Duration::from_secs(86_400);
const LARGEST: u64 = 1 << 50;

/// A time to wait: a plain number is seconds.
///
/// # Errors
/// Why the text is none.
pub fn seconds(text: &str) -> Result<Duration, String> {
    duration(text, Some(1.0), LONGEST)
}

/// A time with its unit; only 0 needs none.
///
/// # Errors
/// Why the text is none.
pub fn time(text: &str) -> Result<Duration, String> {
    duration(text, None, LONGEST)
}

/// How long something is kept, with its unit: a millisecond to 366 days.
///
/// # Errors
/// Why the text is none.
pub fn lifetime(text: &str) -> Result<Duration, String> {
    let time = duration(text, None, Duration::from_millis(MAX_KEY_TTL_MS))?;
    if time.as_millis() == 0 { Err(format!("{text:?} is less than a millisecond")) } else { Ok(time) }
}

/// A whole number.
///
/// # Errors
/// Why the text is none.
pub fn whole<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{text:?} is not a whole number, such as 3"))
}

/// How many there may be: 1 or more.
///
/// # Errors
/// Why the text is none.
pub fn count(text: &str) -> Result<u64, String> {
    let count = text.parse().ok().filter(|count| (1..=LARGEST).contains(count));
    count.ok_or_else(|| {
        let is_large =
            !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) && text.contains(|c| c != '0');
        match is_large {
            true => format!("{text:?} is too many: write {LARGEST} or less"),
            false => format!("{text:?} is no number: write 1 or more, in digits"),
        }
    })
}

/// Times from one to another, as `20ms` or `0..1000ms`; the first takes the unit of the second if it has none.
///
/// # Errors
/// Why the text is none.
pub fn range(text: &str) -> Result<RangeInclusive<Duration>, String> {
    let Some((least, most)) = text.split_once("..") else { return time(text).map(|time| time..=time) };
    let unit = most.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let bare = least.ends_with(|c: char| c.is_ascii_digit());
    let least = if bare { time(&format!("{least}{unit}")) } else { time(least) }?;
    let most = time(most)?;
    if least > most { Err(format!("{text:?} ends before it begins")) } else { Ok(least..=most) }
}

/// A share from 0 to 1.
///
/// # Errors
/// Why the text is none.
pub fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| format!("{text:?} is no share: write a number from 0 to 1"))
}

fn duration(text: &str, plain: Option<f64>, longest: Duration) -> Result<Duration, String> {
    let (number, unit) = split(text).ok_or_else(|| format!("{text:?} is no duration: write 0, 500ms, 2s or 1m"))?;
    let scale = match unit {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        "" if number == 0.0 => 1.0,
        "" => plain.ok_or_else(|| format!("{text:?} has no unit: write 500ms, 2s or 1m"))?,
        _ => return Err(format!("{text:?} has an unknown unit: use ms, s, m, h or d")),
    };
    let time = Duration::try_from_secs_f64(number * scale).unwrap_or(Duration::MAX);
    let most = if longest == LONGEST { "a day" } else { "366 days" };
    if time > longest { Err(format!("{text:?} is longer than {most}")) } else { Ok(time) }
}

/// A number of bytes: plain, or with KiB, MiB or GiB.
///
/// # Errors
/// Why the text is none.
pub fn bytes(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text).ok_or_else(|| format!("{text:?} is no size: write 65536, 64KiB or 1MiB"))?;
    let scale: u32 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kib" => 10,
        "m" | "mib" => 20,
        "g" | "gib" => 30,
        "t" | "tib" => 40,
        _ => return Err(format!("{text:?} has an unknown unit: use KiB, MiB or GiB")),
    };
    let size = number * (1_u64 << scale) as f64;
    if size < 1.0 {
        return Err(format!("{text:?} is less than a byte"));
    }
    if size > LARGEST as f64 { Err(format!("{text:?} is more than any store holds")) } else { Ok(size as u64) }
}

/// The size of a body, bounded by what travels as one span.
///
/// # Errors
/// Why the text is none.
pub fn body_bytes(text: &str) -> Result<usize, String> {
    let size = usize::try_from(bytes(text)?).map_err(|error| error.to_string())?;
    if size > MAX_BODY_LIMIT {
        return Err(format!("{text:?} is over {}MiB, the most a body may have", MAX_BODY_LIMIT >> 20));
    }
    Ok(size)
}

/// A number of digits with at most one point, and what follows it.
fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(end)?;
    Some((number.parse().ok()?, unit.trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_sizes_are_read() {
        assert_eq!(seconds("0"), Ok(Duration::ZERO));
        assert_eq!(seconds("1.5"), Ok(Duration::from_millis(1500)));
        assert_eq!(time("0"), Ok(Duration::ZERO));
        assert_eq!(time("1ms"), Ok(Duration::from_millis(1)));
        assert_eq!(time("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(bytes("64MiB"), Ok(64 << 20));
        assert_eq!(bytes("1000"), Ok(1000));
        for bad in ["", "x", "-1", "1e9", "inf", "NaN", "1y", ".", "99999999999999999999999", "25h"] {
            assert!(seconds(bad).is_err(), "{bad:?}");
        }
        assert!(time("5").is_err());
        assert_eq!(lifetime("30d"), Ok(Duration::from_secs(30 * 86_400)));
        assert_eq!(lifetime("1ms"), Ok(Duration::from_millis(1)));
        for bad in ["0", "0.1ms", "5", "367d", "x"] {
            assert!(lifetime(bad).is_err(), "{bad:?}");
        }
        assert_eq!(count("10000000"), Ok(10_000_000));
        for bad in ["0", "-1", "1e6", "1.5", "", "x"] {
            assert!(count(bad).is_err(), "{bad:?}");
        }
        assert_eq!(count(&LARGEST.to_string()), Ok(LARGEST));
        for large in ["1125899906842625", "99999999999999999999"] {
            assert_eq!(count(large), Err(format!("{large:?} is too many: write 1125899906842624 or less")));
        }
        for zero in ["0", "00", ""] {
            assert!(count(zero).unwrap_err().ends_with("1 or more, in digits"));
        }
        let ms = Duration::from_millis;
        assert_eq!(range("0..1000ms"), Ok(ms(0)..=ms(1000)));
        assert_eq!(range("5ms..2s"), Ok(ms(5)..=ms(2000)));
        assert_eq!((range("20ms"), range("0")), (Ok(ms(20)..=ms(20)), Ok(ms(0)..=ms(0))));
        for bad in ["..", "1..", "..5ms", "5", "0..5", "2s..1s", "0..1x"] {
            assert!(range(bad).is_err(), "{bad:?}");
        }
        assert_eq!((share("0"), share("0.15"), share("1")), (Ok(0.0), Ok(0.15), Ok(1.0)));
        for bad in ["", "-0.1", "1.1", "NaN", "x"] {
            assert!(share(bad).is_err(), "{bad:?}");
        }
        for bad in ["", "0", "MiB", "1XiB", "9999999TiB"] {
            assert!(bytes(bad).is_err(), "{bad:?}");
        }
        assert!(body_bytes("1GiB").is_err());
    }
}
