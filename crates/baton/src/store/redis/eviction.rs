//! Whether the server may drop what is stored: its `maxmemory-policy` can change while it runs.
//!
//! **Invariant.** While the policy that was seen last is not `noeviction`, this process brings no new message into the
//! store and begins no fleet there; it goes on with what is stored. A request with new messages is sent only if the policy was
//! looked at within [`LOOK_EVERY`]. Beats look too, so that a node warns also where nothing is pushed. The same look tells
//! whether the server still keeps a log.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;

use super::{RedisState, conn::Link, failure::ends_connection, keeping};
use crate::store::{Ear, Request, StoreError, StoreEvent, event::tell};

/// How old what is known of the policy may be.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The policy that drops nothing.
const KEEPS_ALL: &str = "noeviction";

/// What is known of the policy of a server.
#[derive(Default)]
pub(super) struct Eviction {
    /// Whether [`Seen::policy`] is one: every request asks.
    evicts: AtomicBool,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    /// The policy seen last, if it may drop what is stored.
    policy: Option<String>,
    /// Whether this process has seen the server with the right policy.
    was_right: bool,
    /// How many keys the server had dropped when its policy was last seen right.
    dropped: u64,
    at: Option<Instant>,
}

impl Eviction {
    /// Notes what `INFO` says, and tells `ear` if that has changed.
    pub(super) fn note(&self, info: &str, server: &str, ear: Option<&Ear>) {
        let field = |name: &str| info.lines().find_map(|line| line.trim_end().strip_prefix(name)?.strip_prefix(':'));
        // A server that does not tell its policy does not let it be set either.
        let policy = field("maxmemory_policy").filter(|policy| *policy != KEEPS_ALL).map(str::to_owned);
        let dropped: u64 = field("evicted_keys").and_then(|count| count.parse().ok()).unwrap_or(0);
        let server = server.to_owned();
        let event = {
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.at = Some(Instant::now());
            let before = std::mem::replace(&mut seen.policy, policy.clone());
            self.evicts.store(policy.is_some(), Ordering::Relaxed);
            match policy {
                Some(policy) => before.is_none().then_some(StoreEvent::MayEvict { server, policy }),
                None => {
                    seen.was_right = true;
                    // A server that was restarted counts from nothing.
                    let meanwhile = dropped.checked_sub(seen.dropped).unwrap_or(dropped);
                    seen.dropped = dropped;
                    before.map(|_| StoreEvent::EvictsNoMore { server, dropped: meanwhile })
                }
            }
        };
        if let Some(event) = event {
            tell(ear, &event);
        }
    }

    /// Whether the server may drop what is stored, by the policy seen last.
    pub(super) fn is_possible(&self) -> bool {
        self.evicts.load(Ordering::Relaxed)
    }

    /// Whether the policy has to be looked at; the one who is told so does.
    fn is_due(&self) -> bool {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = seen.at.is_none_or(|at| at.elapsed() >= LOOK_EVERY);
        if is_due {
            seen.at = Some(Instant::now());
        }
        is_due
    }

    /// Why nothing new may be stored, and whether this process has seen the server with the right policy.
    fn refusal(&self, server: &str) -> Option<(String, bool)> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let policy = seen.policy.as_ref()?;
        let why = format!(
            "Redis at {server} may drop stored messages (maxmemory-policy {policy}): set it to noeviction there \
             (`CONFIG SET maxmemory-policy noeviction`)"
        );
        Some((why, seen.was_right))
    }
}

impl RedisState {
    /// Looks at the policy if that is due, and refuses what may not be asked of the server as it is.
    pub(super) async fn may_be_asked(&self, link: &mut Link, request: &Request) -> Result<(), StoreError> {
        let brings = match request {
            // What was done is reported, also with its result, which nobody's work depends on. A follow-up is a message.
            Request::Settle(settle) => settle.runs.iter().any(|run| run.outcome.has_follow_ups()),
            request => request.new_bodies().is_some(),
        };
        let eviction = &self.connector.eviction;
        if (brings || matches!(request, Request::Beat(_))) && eviction.is_due() {
            Box::pin(self.look_at_policy(link)).await?;
        }
        if eviction.is_possible() && (brings || matches!(request, Request::Join(_))) {
            Box::pin(self.refuse_on_evicting(link, brings)).await?;
        }
        Ok(())
    }

    async fn look_at_policy(&self, link: &mut Link) -> Result<(), StoreError> {
        let mut info = redis::cmd("INFO");
        info.arg("memory").arg("stats").arg("persistence");
        match info.query_async::<String>(&mut link.connection).await {
            Ok(info) => {
                self.connector.note(&info);
                if self.connector.has_lost_log() {
                    keeping::warn(self).await;
                }
            }
            Err(error) if ends_connection(&error) => return Err(self.failed(link, &error)),
            // It was answered when the connection was made: what was seen then stands.
            Err(_) => {}
        }
        Ok(())
    }

    /// Nothing new comes into a fleet, and no fleet begins. One that is there is joined: what it holds can be worked off.
    async fn refuse_on_evicting(&self, link: &mut Link, brings: bool) -> Result<(), StoreError> {
        let Some((why, was_right)) = self.connector.eviction.refusal(self.connector.server()) else { return Ok(()) };
        if brings {
            return Err(StoreError::NoRoom(why));
        }
        let there = redis::cmd("EXISTS").arg(self.root.as_str()).query_async::<bool>(&mut link.connection).await;
        match there.map_err(|error| self.failed(link, &error))? {
            true => Ok(()),
            // A fleet whose data is gone is waited for by those who knew it.
            false if was_right => Err(StoreError::Unreachable(why)),
            false => Err(StoreError::Unfit(why)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_change_of_the_policy_is_told_once() {
        let told = Arc::<Mutex<Vec<StoreEvent>>>::default();
        let ear: Ear = Arc::new({
            let told = told.clone();
            move |event: &StoreEvent| told.lock().unwrap().push(event.clone())
        });
        let eviction = Eviction::default();
        let note = |policy: &str, dropped: u64| {
            eviction.note(&format!("maxmemory_policy:{policy}\r\nevicted_keys:{dropped}\r\n"), "s", Some(&ear));
        };
        note("noeviction", 2);
        note("allkeys-lru", 2);
        assert!(matches!(eviction.refusal("s"), Some((why, true)) if why.contains("allkeys-lru")));
        note("allkeys-lfu", 6);
        note("noeviction", 9);
        note("noeviction", 9);
        assert_eq!(eviction.refusal("s"), None);
        let (server, policy) = ("s".to_owned(), "allkeys-lru".to_owned());
        let events =
            [StoreEvent::MayEvict { server: server.clone(), policy }, StoreEvent::EvictsNoMore { server, dropped: 7 }];
        assert_eq!(*told.lock().unwrap(), events);
        assert!(!eviction.is_due(), "it was just seen");
    }
}
