//! How a line of the log looks: for a person at a terminal, in a file, for a program.

use baton::Level;
use jiff::Timestamp;

use super::record::Record;
use crate::output::{cut, moment, tame, tame_json};

/// The most bytes of a line's text: an error may quote a whole body.
const LONGEST: usize = 4 << 10;
/// The same on a terminal, where a line takes several rows then.
const LONGEST_SHOWN: usize = 400;

/// A way to write a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// The local time of day, and colours if the terminal has them.
    Short {
        colours: bool,
    },
    /// Time, level, text and where it happened.
    Full {
        colours: bool,
    },
    Json,
}

impl Look {
    /// The text alone, as a remark has it.
    pub(super) fn text(record: &Record) -> String {
        cut(&format!("{}{}", record.speaker(), record.message), LONGEST)
    }

    /// The line without its end.
    pub(super) fn line(self, record: &Record, now_ms: u64) -> String {
        let (level, speaker) = (record.level, record.speaker());
        let text = |most| tame(&cut_with_hint(&format!("{speaker}{}", record.message), most));
        match self {
            Self::Short { colours } => {
                let painter = Painter(colours);
                let message = painter.paint(ink(level), &text(LONGEST_SHOWN));
                format!("{} {message}", painter.paint(FAINT, &time_of_day(now_ms)))
            }
            Self::Full { colours } => {
                let painter = Painter(colours);
                let message = painter.paint(ink(level), &format!("{level} {}", text(LONGEST)));
                let fleet = record.fleet.iter().map(|it| format!(" fleet={it}"));
                // The number of a worker tells it from others, and people can read it.
                let session = record.session.iter().filter(|_| record.worker.is_none());
                let place = fleet.chain(session.map(|it| format!(" session={it}"))).collect::<String>();
                let place = painter.paint(FAINT, &place);
                format!("{} {message}{place}", painter.paint(FAINT, &moment(now_ms)))
            }
            Self::Json => {
                let record = Record {
                    time: moment(now_ms),
                    message: cut(&record.message, LONGEST),
                    error: record.error.as_deref().map(|error| cut(error, LONGEST)),
                    ..record.clone()
                };
                serde_json::to_string(&record).map(|json| tame_json(&json)).unwrap_or_default()
            }
        }
    }
}

/// The beginning of a text, with a way to see more where there is one.
fn cut_with_hint(text: &str, most: usize) -> String {
    let shown = cut(text, most);
    match shown.strip_suffix(" bytes more)") {
        Some(shown) if most == LONGEST_SHOWN && text.len() > most => format!("{shown} bytes more; -v shows them)"),
        _ => shown,
    }
}

const FAINT: &str = "2";

const fn ink(level: Level) -> &'static str {
    match level {
        Level::Error => "31",
        Level::Warn => "33",
        Level::Info => "",
        Level::Debug => FAINT,
    }
}

struct Painter(bool);

impl Painter {
    fn paint(&self, ink: &str, text: &str) -> String {
        if self.0 && !ink.is_empty() && !text.is_empty() {
            format!("\x1b[{ink}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }
}

/// The time of day where this machine is, or in UTC where nothing says where that is.
fn time_of_day(ms: u64) -> String {
    let time = i64::try_from(ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok()).unwrap_or_default();
    let here = time.to_zoned(jiff::tz::TimeZone::system());
    format!("{:02}:{:02}:{:02}", here.hour(), here.minute(), here.second())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::log::record::OUTPUT;

    fn record() -> Record {
        Record {
            fleet: Some("shop".to_owned()),
            session: Some("5e55".to_owned()),
            queue: Some("receipt".to_owned()),
            id: Some(6),
            ..Record::new(Level::Warn, "receipt/6 failed: boom")
        }
    }

    #[test]
    fn a_terminal_gets_the_time_of_day_and_the_text() {
        let line = Look::Short { colours: false }.line(&record(), 0);
        assert_eq!(line.get(8..), Some(" receipt/6 failed: boom"), "{line}");
        let line = Look::Short { colours: true }.line(&record(), 0);
        assert!(line.ends_with(" \x1b[33mreceipt/6 failed: boom\x1b[0m") && line.starts_with("\x1b[2m"), "{line:?}");
        let long = Record { message: "x".repeat(5_000), ..record() };
        let line = Look::Short { colours: false }.line(&long, 0);
        assert!(line.ends_with("x… (4600 bytes more; -v shows them)"), "{line}");
    }

    #[test]
    fn a_file_gets_the_whole_time_the_level_and_where_it_happened() {
        let look = Look::Full { colours: false };
        let line = look.line(&record(), 0);
        assert_eq!(line, "1970-01-01T00:00:00.000Z warn receipt/6 failed: boom fleet=shop session=5e55");
        let line = look.line(&Record { worker: Some(2), ..record() }, 0);
        assert_eq!(line, "1970-01-01T00:00:00.000Z warn worker 2: receipt/6 failed: boom fleet=shop");
    }

    #[test]
    fn a_program_gets_one_object_with_fields() {
        let json = Look::Json.line(&record(), 0);
        let fields = r#""fleet":"shop","session":"5e55","queue":"receipt","id":6"#;
        let head = r#"{"time":"1970-01-01T00:00:00.000Z","level":"warn","message":"receipt/6 failed: boom""#;
        assert_eq!(json, format!("{head},{fields}}}"));
        let read: Record = serde_json::from_str(&json).unwrap();
        assert_eq!((read.level, read.id), (Level::Warn, Some(6)));
    }

    #[test]
    fn output_of_children_names_the_message_or_the_child() {
        let look = Look::Short { colours: false };
        let said = Record { event: Some(OUTPUT.to_owned()), message: "warning: \x1b".to_owned(), ..record() };
        assert_eq!(look.line(&said, 0).get(9..), Some("receipt/6 | warning: \\u{1b}"));
        let idle = Record { id: None, child: Some(3), worker: Some(1), ..said };
        assert_eq!(look.line(&idle, 0).get(9..), Some("worker 1: receipt child 3 | warning: \\u{1b}"));
    }
}
