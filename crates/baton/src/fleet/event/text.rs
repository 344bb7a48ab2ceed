//! The text of an event: one line for a person.

use std::{fmt, time::Duration};

use super::Event;

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Joined { session, host, pid } => write!(f, "joined as {host}/{pid}, session {session}"),
            Self::SessionOver { .. } => f.write_str("the store no longer knows this session; joining again"),
            Self::Left { .. } => f.write_str("left"),
            Self::LeftUnheard { .. } => {
                f.write_str("left without notice, since the store is away; others wait for the lease to end")
            }
            Self::NodeDied { node, silent, back, failed } => {
                write!(f, "node {node} died")?;
                if let Some(silent) = silent {
                    write!(f, ": silent for {}", span(*silent))?;
                }
                for (nth, (queue, count)) in back.iter().enumerate() {
                    match (nth, count) {
                        (0, 1) => write!(f, "; 1 message goes back to `{queue}`")?,
                        (0, _) => write!(f, "; {count} messages go back to `{queue}`")?,
                        _ => write!(f, ", {count} to `{queue}`")?,
                    }
                }
                match failed {
                    0 => Ok(()),
                    _ => write!(f, "; {failed} failed for good, since nodes died with them again and again"),
                }
            }
            Self::StopOrdered { at_once: false } => f.write_str("asked to stop: it finishes what runs"),
            Self::StopOrdered { at_once: true } => f.write_str("asked to stop at once: what runs goes back"),
            Self::StoreAway { error } => write!(f, "{error}; this node waits for it"),
            Self::StoreBack { after } => write!(f, "the store is back after {:.1} s", after.as_secs_f64()),
            Self::StoreFull { error } => write!(f, "{error}; new messages wait until it takes them again"),
            Self::StoreTakes { after } => {
                write!(f, "the store takes new messages again after {:.1} s", after.as_secs_f64())
            }
            Self::StoreRenewed { .. } => f.write_str(
                "the store has other data since its restart or restore: what it held before is gone from it",
            ),
            Self::BatonTaken { source, epoch, cursor, .. } => {
                let at = match (cursor.as_str(), lines_read(cursor)) {
                    ("", _) => "the start".to_owned(),
                    (_, Some(lines)) => format!("line {}", lines.saturating_add(1)),
                    (cursor, None) => cursor.to_owned(),
                };
                write!(f, "source {source} runs on this node from {at} (epoch {epoch})")
            }
            Self::Pushed { source, batch_no, count, .. } => {
                write!(f, "batch {batch_no} of source {source} is stored: {count} message{}", plural(*count))
            }
            Self::PushRefused { source, batch_no, refusal, .. } => {
                write!(f, "batch {batch_no} of source {source} was refused and is sent again: {refusal}")
            }
            Self::SourceEnded { source, .. } => write!(f, "source {source} has ended"),
            Self::BatonPassed { source, .. } => {
                write!(f, "source {source} no longer runs on this node: its baton passed on")
            }
            Self::SourceFailed { source, error, .. } => {
                let what = if error.is_for_good() { "has failed for good" } else { "cannot go on" };
                write!(f, "source {source} {what}: {error}")
            }
            Self::MessageFailed { queue, id, attempt, error, retry_after } => {
                // The other lines are in the field.
                let error = error.lines().next().unwrap_or_default();
                match (retry_after, attempt) {
                    (Some(after), _) => write!(f, "{queue}/{id} failed: {error}; again in {}", span(*after)),
                    (None, 0..=1) => write!(f, "{queue}/{id} failed for good: {error}"),
                    (None, _) => write!(f, "{queue}/{id} failed for good after {attempt} attempts: {error}"),
                }
            }
            Self::ResultLeftOut { queue, id, bytes } => {
                write!(f, "{queue}/{id} is done, and its result is not kept: {bytes} bytes are more than 1 MiB")
            }
            Self::NoRoom { queue, messages } => write!(
                f,
                "the store has no room for the results and follow-ups of {messages} message{} of {queue}; this node reports \
                 them again until it has",
                plural(*messages)
            ),
            Self::RunsRefused { queue, messages, .. } => write!(
                f,
                "the store refused the outcomes of {messages} message{} of {queue}: other nodes have them",
                plural(*messages)
            ),
            Self::RunsLost { queue, messages } => write!(
                f,
                "the session ended before this node reported {messages} message{} of {queue}; other nodes run them again",
                plural(*messages)
            ),
            Self::ObserverPanicked { error } => {
                write!(f, "the observer of this node panicked; the node goes on, and says this once: {error}")
            }
            Self::Store(event) => event.fmt(f),
        }
    }
}

/// `s` unless it is one.
const fn plural(count: u64) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// A duration for people.
fn span(time: Duration) -> String {
    match time.as_millis() {
        ms @ 0..1000 => format!("{ms} ms"),
        ms if ms % 1000 < 100 => format!("{} s", ms / 1000),
        ms => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
    }
}

/// How many lines a cursor of a file, `lines:offset:digest`, has behind it.
fn lines_read(cursor: &str) -> Option<u64> {
    let mut parts = cursor.split(':');
    let (lines, offset, digest) = (parts.next()?.parse().ok()?, parts.next()?.parse::<u64>(), parts.next()?);
    let is_of_file = offset.is_ok() && u32::from_str_radix(digest, 16).is_ok() && parts.next().is_none();
    is_of_file.then_some(lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Level,
        fleet::source::SourceError,
        message::{MessageId, Name, SessionId},
        store::StoreEvent,
    };

    /// People look for these lines in logs.
    #[test]
    fn the_text_of_an_event_says_what_happened() {
        let (name, session) = (|text: &str| Name::new(text).unwrap(), SessionId::from_u128(7));
        let failed = |error| Event::SourceFailed { source: name("s"), epoch: 2, error };
        let message = |retry_after| Event::MessageFailed {
            queue: name("q"),
            id: MessageId(5),
            attempt: 2,
            error: "no\nand why".to_owned(),
            retry_after,
        };
        let taken = |cursor: &str| Event::BatonTaken {
            session,
            source: name("s"),
            queue: name("q"),
            epoch: 2,
            cursor: cursor.into(),
        };
        let died = |back: &[(&str, u64)], failed| Event::NodeDied {
            node: "vm/4711".to_owned(),
            silent: Some(Duration::from_millis(1_210)),
            back: back.iter().map(|(queue, count)| (name(queue), *count)).collect(),
            failed,
        };
        let path = "/x.db".into();
        for (event, line) in [
            (
                Event::Joined { session, host: "here".to_owned(), pid: 7 },
                format!("joined as here/7, session {session}").as_str(),
            ),
            (Event::SessionOver { session }, "the store no longer knows this session; joining again"),
            (
                Event::LeftUnheard { session },
                "left without notice, since the store is away; others wait for the lease to end",
            ),
            (taken(""), "source s runs on this node from the start (epoch 2)"),
            (taken("9"), "source s runs on this node from 9 (epoch 2)"),
            (taken("500:4410:2e6bc095"), "source s runs on this node from line 501 (epoch 2)"),
            (Event::SourceEnded { source: name("s"), epoch: 2 }, "source s has ended"),
            (
                Event::BatonPassed { source: name("s"), epoch: 2 },
                "source s no longer runs on this node: its baton passed on",
            ),
            (failed(SourceError::new("no")), "source s cannot go on: no"),
            (failed(SourceError::for_good("no")), "source s has failed for good: no"),
            (failed(SourceError::until_rewound("no")), "source s has failed for good: no"),
            (message(None), "q/5 failed for good after 2 attempts: no"),
            (message(Some(Duration::from_millis(1500))), "q/5 failed: no; again in 1.5 s"),
            (message(Some(Duration::from_secs(1))), "q/5 failed: no; again in 1 s"),
            (
                died(&[("a", 5), ("b", 2)], 1),
                "node vm/4711 died: silent for 1.2 s; 5 messages go back to `a`, 2 to `b`; 1 failed for good, since nodes died with them again and again",
            ),
            (died(&[("a", 1)], 0), "node vm/4711 died: silent for 1.2 s; 1 message goes back to `a`"),
            (died(&[], 0), "node vm/4711 died: silent for 1.2 s"),
            (
                Event::RunsRefused { queue: name("q"), runs: 2, messages: 9 },
                "the store refused the outcomes of 9 messages of q: other nodes have them",
            ),
            (Event::Store(StoreEvent::Replaced { path }), "/x.db is another file now; this process uses that one"),
        ] {
            assert_eq!(event.to_string(), line);
        }
        let levels = [message(None), message(Some(Duration::ZERO)), failed(SourceError::for_good("no"))];
        assert_eq!(levels.map(|event| event.level()), [Level::Warn, Level::Info, Level::Error]);
        assert!(message(None).is_routine() && !failed(SourceError::new("no")).is_routine());
    }
}
