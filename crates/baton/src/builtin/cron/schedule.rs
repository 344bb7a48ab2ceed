//! Due times: the calendar alone, without a clock.

use std::fmt;

use croner::{Cron, errors::CronError};
use jiff::{Timestamp, tz::TimeZone};

use crate::SourceError;

/// The reasons to refuse a schedule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidCron {
    /// It is not a cron expression.
    #[error("{expression:?} is not a cron expression: {cause}; write minute, hour, day of month, month, day of week")]
    Expression {
        /// The text that was given.
        expression: String,
        /// The fault in it.
        cause: String,
    },
    /// No date matches it.
    #[error("the cron expression {0:?} is never due: there is no such date")]
    Never(String),
    /// The system does not know the time zone.
    #[error(
        "the time zone {0:?} is not known here: take UTC, or a name like Europe/Berlin from the system's zone data"
    )]
    Zone(String),
}

/// An expression in a time zone.
#[derive(Debug, Clone)]
pub(super) struct Schedule {
    expression: String,
    cron: Cron,
    zone: TimeZone,
    /// None: UTC.
    zone_name: Option<String>,
}

impl Schedule {
    pub(super) fn new(expression: &str) -> Result<Self, InvalidCron> {
        // One text however it is spaced: it is the source's definition.
        let expression = expression.split_whitespace().collect::<Vec<_>>().join(" ");
        let refuse =
            |_: CronError| InvalidCron::Expression { cause: fault(&expression), expression: expression.clone() };
        let cron: Cron = expression.parse().map_err(refuse)?;
        let schedule = Self { expression, cron, zone: TimeZone::UTC, zone_name: None };
        // From the beginning, not from now: an expression whose years are over has ended and is no mistake.
        match schedule.after(Timestamp::UNIX_EPOCH) {
            Ok(Some(_)) => Ok(schedule),
            _ => Err(InvalidCron::Never(schedule.expression)),
        }
    }

    pub(super) fn in_zone(self, name: &str) -> Result<Self, InvalidCron> {
        if name.eq_ignore_ascii_case("UTC") {
            return Ok(Self { zone: TimeZone::UTC, zone_name: None, ..self });
        }
        let zone = TimeZone::get(name).map_err(|_| InvalidCron::Zone(name.to_owned()))?;
        // As the zone data spells it: the name is part of the source's definition.
        let zone_name = Some(zone.iana_name().unwrap_or(name).to_owned());
        Ok(Self { zone, zone_name, ..self })
    }

    /// The first due time after `last`, if there is one.
    pub(super) fn after(&self, last: Timestamp) -> Result<Option<Timestamp>, SourceError> {
        let failed = |cause: &dyn fmt::Display| SourceError::new(format_args!("no due time behind {last}: {cause}"));
        // Due times are whole seconds.
        let second = Timestamp::from_second(last.as_second()).map_err(|error| failed(&error))?;
        match self.cron.find_next_occurrence(&second.to_zoned(self.zone.clone()), false) {
            // A due time must never repeat, whatever the calendar does.
            Ok(due) if due.timestamp() <= last => Err(failed(&"the calendar goes back")),
            Ok(due) => Ok(Some(due.timestamp())),
            Err(CronError::TimeSearchLimitExceeded) => Ok(None),
            Err(_) => Err(failed(&"the calendar has none")),
        }
    }

    /// The last due time up to `now`; `next` is one of them.
    ///
    /// A binary search: a year of missed seconds takes 25 steps.
    pub(super) fn latest(&self, next: Timestamp, now: Timestamp) -> Result<Timestamp, SourceError> {
        let mut due = next;
        // `low` is the last due time known; there is none between `high` and now.
        let (mut low, mut high) = (next.as_second(), now.as_second());
        while low < high {
            let middle = Timestamp::from_second(low + (high - low) / 2).map_err(SourceError::new)?;
            match self.after(middle)? {
                Some(found) if found <= now => {
                    due = found;
                    low = found.as_second();
                }
                _ => high = middle.as_second(),
            }
        }
        Ok(due)
    }

    /// A due time by the clocks of the zone, with its offset from UTC.
    pub(super) fn show(&self, due: Timestamp) -> String {
        match self.zone_name {
            None => due.to_string(),
            Some(_) => due.display_with_offset(self.zone.to_offset(due)).to_string(),
        }
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.zone_name.as_deref().unwrap_or("UTC"), self.expression)
    }
}

/// The fields of an expression, and the values each may have.
const FIELDS: [(&str, &str); 7] = [
    ("second", "0 to 59"),
    ("minute", "0 to 59"),
    ("hour", "0 to 23"),
    ("day of month", "1 to 31"),
    ("month", "1 to 12, or JAN to DEC"),
    ("day of week", "0 to 7, or SUN to SAT"),
    ("year", "1 to 9999"),
];

/// The fault of an invalid expression: the first field that is refused even if all others are `*`.
fn fault(expression: &str) -> String {
    let fields: Vec<&str> = expression.split(' ').filter(|field| !field.is_empty()).collect();
    if fields.is_empty() {
        return "it is empty".to_owned();
    }
    if expression.starts_with('@') {
        return "there is no such name".to_owned();
    }
    if !(5..=7).contains(&fields.len()) {
        return format!("it has {} field{}, not 5 to 7", fields.len(), if fields.len() == 1 { "" } else { "s" });
    }
    // Seconds are left out first, then years.
    let known = FIELDS.iter().skip(usize::from(fields.len() == 5));
    for (nth, (field, (name, range))) in fields.iter().zip(known).enumerate() {
        let alone = (0..fields.len()).map(|place| if place == nth { field } else { "*" });
        if alone.collect::<Vec<_>>().join(" ").parse::<Cron>().is_err() {
            return format!("its {name}, {field:?}, is not made of {range}");
        }
    }
    "its fields do not go together".to_owned()
}
