//! What happens to a node, as values: its log, users' observers and `tracing` read the same ones.
//!
//! The text of an event is one line for a person. Nobody needs to read that line to know what happened: all that is in
//! it is in the fields too.

use std::{fmt, time::Duration};

use super::source::SourceError;
use crate::{
    Level,
    message::{MessageId, Name, SessionId},
    store::{Refusal, StoreError, StoreEvent},
};

/// Something that happened to a node or to its store. Its text is one line for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The node has joined the fleet.
    Joined {
        /// As which session.
        session: SessionId,
        /// Where it runs, as others see it.
        host: String,
        /// Its process id there.
        pid: u32,
    },
    /// The store no longer knows the session: what it held goes to others, and the node joins again.
    SessionOver {
        /// Which session.
        session: SessionId,
    },
    /// The node has left in good order.
    Left {
        /// Which session.
        session: SessionId,
    },
    /// The node has gone and could not notify the store: others take over when the lease has ended.
    LeftUnheard {
        /// Which session.
        session: SessionId,
    },
    /// Another node died: this one found it past its lease and took its messages back. One node of the fleet reports it.
    NodeDied {
        /// Where it ran: host and process id, as `host/7`.
        node: String,
        /// How long it was silent; nothing if another process began to take its messages back.
        silent: Option<Duration>,
        /// How many messages go back to which queue.
        back: Vec<(Name, u64)>,
        /// How many messages failed for good since too many nodes died with them.
        failed: u64,
    },
    /// An admin stops the node.
    StopOrdered {
        /// Whether it hands everything back at once; otherwise it finishes what runs.
        at_once: bool,
    },
    /// The store has not answered for a while; the node waits for it.
    StoreAway {
        /// Why, as the last call says.
        error: StoreError,
    },
    /// The end of [`Event::StoreAway`].
    StoreBack {
        /// How long the store was away.
        after: Duration,
    },
    /// The store has taken nothing new for a while: sources wait, and so do results and follow-ups.
    StoreFull {
        /// Why, as the last call says.
        error: StoreError,
    },
    /// The end of [`Event::StoreFull`].
    StoreTakes {
        /// How long it took nothing new.
        after: Duration,
    },
    /// The node has joined again and found other data than before: the former data are gone from the store, or a backup
    /// has taken their place.
    StoreRenewed {
        /// As which session it has joined.
        session: SessionId,
    },
    /// The node has taken a baton and begins to generate.
    BatonTaken {
        /// For which session.
        session: SessionId,
        /// Of which source.
        source: Name,
        /// The queue the source feeds.
        queue: Name,
        /// The epoch of the baton.
        epoch: u64,
        /// Where the source goes on; empty at its start.
        cursor: String,
    },
    /// A batch of a source was stored.
    Pushed {
        /// The source.
        source: Name,
        /// The queue it went to.
        queue: Name,
        /// The epoch of the baton.
        epoch: u64,
        /// Which batch of the epoch.
        batch_no: u64,
        /// The cursor before it.
        from: String,
        /// The cursor after it.
        to: String,
        /// How many messages it had.
        count: u64,
        /// The id of the first, if the store still knew it.
        first: Option<u64>,
        /// Whether an earlier attempt had stored it already.
        duplicate: bool,
    },
    /// A batch was refused because its queue is full, or because of a gap: one before it is not stored. It is sent again.
    PushRefused {
        /// The source.
        source: Name,
        /// The queue it goes to.
        queue: Name,
        /// The epoch of the baton.
        epoch: u64,
        /// Which batch of the epoch.
        batch_no: u64,
        /// [`Refusal::Full`] or [`Refusal::Gap`].
        refusal: Refusal,
    },
    /// The source has no more messages.
    SourceEnded {
        /// The source.
        source: Name,
        /// The epoch of the baton.
        epoch: u64,
    },
    /// The baton is another's now, or is taken again.
    BatonPassed {
        /// The source.
        source: Name,
        /// The epoch of the baton that this node had.
        epoch: u64,
    },
    /// A source cannot go on. If that is [for good](SourceError::is_for_good), this node leaves it alone from now on.
    SourceFailed {
        /// The source.
        source: Name,
        /// The epoch of the baton.
        epoch: u64,
        /// Why.
        error: SourceError,
    },
    /// A handler failed, panicked or took too long.
    MessageFailed {
        /// The queue of the message.
        queue: Name,
        /// Its id there.
        id: MessageId,
        /// Which attempt this was, from 1.
        attempt: u32,
        /// Why.
        error: String,
        /// After what time it is to be tried again; if not at all, it goes to the errors.
        retry_after: Option<Duration>,
    },
    /// A result was too long to be kept; its message is done.
    ResultLeftOut {
        /// The queue of the message.
        queue: Name,
        /// Its id there.
        id: MessageId,
        /// How long the result was.
        bytes: usize,
    },
    /// The store has no room for the results and follow-ups of some messages: they are reported again until it has, or go
    /// back when the node stops.
    NoRoom {
        /// The queue.
        queue: Name,
        /// How many messages.
        messages: u64,
    },
    /// Outcomes were refused: others have the messages.
    RunsRefused {
        /// The queue of the messages.
        queue: Name,
        /// How many runs of messages.
        runs: usize,
        /// How many messages.
        messages: u64,
    },
    /// The session was over before messages that were begun here were reported: others run them again.
    RunsLost {
        /// The queue of the messages.
        queue: Name,
        /// How many messages.
        messages: u64,
    },
    /// The observer of the node panicked, for the first time: nothing else comes of it.
    ObserverPanicked {
        /// What the panic says.
        error: String,
    },
    /// Something happened to the store.
    Store(StoreEvent),
}

impl Event {
    /// How much it matters.
    #[must_use]
    pub const fn level(&self) -> Level {
        match self {
            Self::Pushed { .. } | Self::PushRefused { .. } => Level::Debug,
            Self::Joined { .. }
            | Self::Left { .. }
            | Self::StopOrdered { .. }
            | Self::StoreBack { .. }
            | Self::StoreTakes { .. }
            | Self::BatonTaken { .. }
            | Self::SourceEnded { .. }
            | Self::BatonPassed { .. }
            | Self::MessageFailed { retry_after: Some(_), .. } => Level::Info,
            Self::SessionOver { .. }
            | Self::LeftUnheard { .. }
            | Self::StoreAway { .. }
            | Self::StoreFull { .. }
            | Self::StoreRenewed { .. }
            | Self::NodeDied { .. }
            | Self::MessageFailed { retry_after: None, .. }
            | Self::ResultLeftOut { .. }
            | Self::NoRoom { .. }
            | Self::RunsRefused { .. }
            | Self::RunsLost { .. } => Level::Warn,
            Self::SourceFailed { error, .. } if error.is_for_good() => Level::Error,
            Self::SourceFailed { .. } => Level::Warn,
            Self::ObserverPanicked { .. } => Level::Error,
            Self::Store(event) => event.level(),
        }
    }

    /// The name of its kind, for programs that read logs.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Joined { .. } => "joined",
            Self::SessionOver { .. } => "session-over",
            Self::Left { .. } => "left",
            Self::LeftUnheard { .. } => "left-unheard",
            Self::NodeDied { .. } => "node-died",
            Self::StopOrdered { .. } => "stop-ordered",
            Self::StoreAway { .. } => "store-away",
            Self::StoreBack { .. } => "store-back",
            Self::StoreFull { .. } => "store-full",
            Self::StoreTakes { .. } => "store-takes",
            Self::StoreRenewed { .. } => "store-renewed",
            Self::BatonTaken { .. } => "baton-taken",
            Self::Pushed { .. } => "pushed",
            Self::PushRefused { .. } => "push-refused",
            Self::SourceEnded { .. } => "source-ended",
            Self::BatonPassed { .. } => "baton-passed",
            Self::SourceFailed { .. } => "source-failed",
            Self::MessageFailed { .. } => "message-failed",
            Self::ResultLeftOut { .. } => "result-left-out",
            Self::NoRoom { .. } => "no-room",
            Self::RunsRefused { .. } => "runs-refused",
            Self::RunsLost { .. } => "runs-lost",
            Self::ObserverPanicked { .. } => "observer-panicked",
            Self::Store(event) => event.name(),
        }
    }

    /// Whether healthy nodes have many of its kind: pushes, pushes that are sent again, messages that failed. A log for
    /// people leaves these out or sums them up.
    #[must_use]
    pub const fn is_routine(&self) -> bool {
        matches!(self, Self::Pushed { .. } | Self::PushRefused { .. } | Self::MessageFailed { .. })
    }
}

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
            Self::StopOrdered { at_once: false } => f.write_str("an admin stops this node: it finishes what runs"),
            Self::StopOrdered { at_once: true } => f.write_str("an admin stops this node at once: what runs goes back"),
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
                let at = if cursor.is_empty() { "the start" } else { cursor };
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

#[cfg(test)]
mod tests {
    use super::*;

    /// People look for these lines in logs.
    #[test]
    fn the_text_of_an_event_says_what_happened() {
        let (name, session) = (|text| Name::new(text).unwrap(), SessionId::from_u128(7));
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
