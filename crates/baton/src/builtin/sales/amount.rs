//! Amounts and their sums, as integers of minor units: hundredths.

use std::{fmt, str::FromStr};

/// The amount of one sale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Amount {
    /// In hundredths; negative where money was given back.
    pub minor_units: i64,
}

/// A text that is no amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an amount is a number with up to two decimals, as 12 or -3.50, between ±92233720368547758.07")]
pub struct InvalidAmount;

impl FromStr for Amount {
    type Err = InvalidAmount;

    fn from_str(text: &str) -> Result<Self, InvalidAmount> {
        let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
        let (whole, fraction) = digits.split_once('.').map_or((digits, None), |(whole, rest)| (whole, Some(rest)));
        let are_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let hundredths = match fraction {
            None => Some(0),
            Some(one) if one.len() == 1 && are_digits(one) => one.parse::<i64>().ok().map(|tenths| tenths * 10),
            Some(two) if two.len() == 2 && are_digits(two) => two.parse().ok(),
            Some(_) => None,
        };
        let whole = are_digits(whole).then(|| whole.parse::<i64>().ok()).flatten();
        let units = whole
            .zip(hundredths)
            .and_then(|(whole, hundredths)| (sign * whole).checked_mul(100)?.checked_add(sign * hundredths));
        units.map(|minor_units| Self { minor_units }).ok_or(InvalidAmount)
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Total { minor_units: i128::from(self.minor_units) }.fmt(f)
    }
}

/// A sum of amounts: exact, since it is wide enough for as many as a database can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Total {
    /// In hundredths.
    pub minor_units: i128,
}

/// A whole sum without decimals, any other with two.
impl fmt::Display for Total {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.minor_units < 0 { "-" } else { "" };
        let (whole, hundredths) = (self.minor_units.unsigned_abs() / 100, self.minor_units.unsigned_abs() % 100);
        match hundredths {
            0 => write!(f, "{sign}{whole}"),
            hundredths => write!(f, "{sign}{whole}.{hundredths:02}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_and_shown_exactly() {
        for (text, units, shown) in [
            ("0", 0, "0"),
            ("12", 1200, "12"),
            ("12.5", 1250, "12.50"),
            ("12.50", 1250, "12.50"),
            ("007.00", 700, "7"),
            ("-0.01", -1, "-0.01"),
            ("-3.5", -350, "-3.50"),
            ("0.1", 10, "0.10"),
            ("92233720368547758.07", i64::MAX, "92233720368547758.07"),
            ("-92233720368547758.08", i64::MIN, "-92233720368547758.08"),
        ] {
            let amount: Amount = text.parse().unwrap();
            assert_eq!((amount.minor_units, amount.to_string().as_str()), (units, shown), "{text}");
        }
        for bad in [
            "",
            "-",
            ".",
            "1.",
            ".5",
            "1.234",
            "1e3",
            "+1",
            " 1",
            "1 ",
            "1,5",
            "NaN",
            "--1",
            "1.-5",
            "٣",
            "92233720368547758.08",
        ] {
            assert_eq!(bad.parse::<Amount>(), Err(InvalidAmount), "{bad:?}");
        }
        assert_eq!(Total { minor_units: i128::from(i64::MAX) * 3 }.to_string(), "276701161105643274.21");
    }
}
