//! Which lines are written.

use baton::Level;

/// Levels in their order, as `BATON_LOG` names them.
const LEVELS: [(&str, Option<Level>); 5] = [
    ("off", None),
    ("error", Some(Level::Error)),
    ("warn", Some(Level::Warn)),
    ("info", Some(Level::Info)),
    ("debug", Some(Level::Debug)),
];

/// The least level that is written, by the name of a queue or a source; nothing is written where it is off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Filter {
    general: Option<Level>,
    named: Vec<(String, Option<Level>)>,
}

impl Filter {
    pub(super) const fn least(level: Level) -> Self {
        Self { general: Some(level), named: Vec::new() }
    }

    /// `LEVEL` or `NAME=LEVEL`, several of them separated by commas; what is wrong with the text otherwise.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let level = |word: &str| {
            let known = LEVELS.iter().find(|(name, _)| word.eq_ignore_ascii_case(name));
            known.map(|(_, level)| *level).ok_or_else(|| format!("{word:?} is no level"))
        };
        let mut filter = Self::least(Level::Info);
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            match part.split_once('=') {
                Some((name, word)) => filter.named.push((name.trim().to_owned(), level(word.trim())?)),
                None => filter.general = level(part)?,
            }
        }
        Ok(filter)
    }

    /// Whether an event of this level about this queue or source is written. A level for either of them goes before the
    /// general one.
    pub(super) fn admits(&self, level: Level, queue: Option<&str>, source: Option<&str>) -> bool {
        let about = |name: &str| queue == Some(name) || source == Some(name);
        let named = self.named.iter().rev().find(|(name, _)| about(name));
        named.map_or(self.general, |(_, least)| *least).is_some_and(|least| level >= least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_for_a_queue_goes_before_the_general_one() {
        let filter = Filter::parse("warn, resize=debug,ticks=off").unwrap();
        for (level, queue, source, is_written) in [
            (Level::Warn, None, None, true),
            (Level::Info, None, None, false),
            (Level::Debug, Some("resize"), None, true),
            (Level::Info, Some("other"), Some("other"), false),
            (Level::Error, Some("other"), Some("ticks"), false),
        ] {
            assert_eq!(filter.admits(level, queue, source), is_written, "{level} {queue:?} {source:?}");
        }
        assert_eq!(Filter::parse(""), Ok(Filter::least(Level::Info)));
        assert_eq!(Filter::parse("WARN"), Ok(Filter::least(Level::Warn)));
        assert_eq!(Filter::parse("loud"), Err("\"loud\" is no level".to_owned()));
        assert!(!Filter::parse("off").unwrap().admits(Level::Error, None, None));
    }
}
