//! The tokens in force while a gateway runs.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use subtle::ConstantTimeEq as _;
use tokio::sync::watch;

use super::{Openness, Right, Standing, Token, TokenError, TokenFile, digest, file::Stamp, hex, place::Known};
use crate::GatewayEvent;

/// How often the file is looked at.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// What a caller may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// No token is needed, and none was looked at.
    Open,
    /// The bearer of a valid token.
    Granted(Right),
    /// No token was presented, and one is needed.
    Missing,
    /// The presented token is not valid.
    Wrong,
}

/// Decides what a caller may do. Without tokens everybody on this machine may do everything. Once there has been a token, or where one is
/// demanded, no caller gets in without one, whatever becomes of the file; only [`TokenFile::open`] lifts that.
#[derive(Debug)]
pub(crate) struct Keeper {
    file: Option<TokenFile>,
    state: Mutex<State>,
    /// How often the tokens in force have changed.
    changes: watch::Sender<u64>,
}

#[derive(Debug)]
struct State {
    /// The tokens in force.
    tokens: Vec<Token>,
    /// The tokens when the file was read last.
    read: Vec<Token>,
    openness: Openness,
    /// Fleets that were found to be others. A store that is moved while this gateway runs is none of its own.
    others: Vec<Known>,
    needed: bool,
    /// Whether a token is needed also once the gateway is opened.
    demanded: bool,
    stamp: Option<Stamp>,
    looked: Instant,
    trouble: Option<String>,
}

impl Keeper {
    pub(crate) fn new(file: Option<TokenFile>) -> Result<Self, TokenError> {
        let stamp = file.as_ref().and_then(TokenFile::stamp);
        let Standing { tokens, openness, others } =
            file.as_ref().map_or_else(|| Ok(Standing::default()), TokenFile::read)?;
        let needed = !openness.is_open();
        let (read, looked) = (tokens.clone(), Instant::now());
        let state = State { tokens, read, openness, others, needed, demanded: false, stamp, looked, trouble: None };
        Ok(Self { file, state: Mutex::new(state), changes: watch::Sender::new(0) })
    }

    /// Whether there is a token.
    pub(crate) fn has_some(&self) -> bool {
        !self.state.lock().unwrap_or_else(PoisonError::into_inner).tokens.is_empty()
    }

    /// Lets no caller in without a token from now on.
    pub(crate) fn demand(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        (state.needed, state.demanded) = (true, true);
    }

    /// The tokens in force, and whether callers need one.
    pub(crate) fn standing(&self) -> Standing {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).standing()
    }

    /// How often the tokens in force have changed. A judgement that was made after this was read holds at least until the
    /// number is another one.
    pub(crate) fn version(&self) -> u64 {
        *self.changes.borrow()
    }

    /// The same number, for those who wait for another one.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Looks at the file now. Returns what has changed.
    pub(crate) fn look_now(&self) -> Vec<GatewayEvent> {
        self.look(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner), Duration::ZERO)
    }

    /// What the bearer of this may do, and what has changed in the file.
    pub(crate) fn judge(&self, presented: Option<&str>) -> (Access, Vec<GatewayEvent>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut news = self.look(&mut state, LOOK_AGAIN);
        let mut access = state.access(presented);
        if access == Access::Wrong && state.trouble.is_none() {
            // It may have been made a moment ago.
            news.extend(self.look(&mut state, Duration::ZERO));
            access = state.access(presented);
        }
        (access, news)
    }

    /// Reads the file if it has changed, unless it was looked at less than `again` ago.
    fn look(&self, state: &mut State, again: Duration) -> Vec<GatewayEvent> {
        let Some(file) = self.file.as_ref().filter(|_| state.looked.elapsed() >= again) else { return Vec::new() };
        state.looked = Instant::now();
        let stamp = file.stamp();
        if stamp == state.stamp && state.trouble.is_none() {
            return Vec::new();
        }
        state.stamp = stamp;
        let (tokens, needed) = (state.tokens.clone(), state.needed);
        let read = file.read_unless(|known| state.others.iter().any(|other| other.meets(known)));
        let news = match read {
            Ok(standing) => state.follow(standing),
            Err(error) => state.close(error.to_string()),
        };
        if tokens != state.tokens || needed != state.needed {
            self.changes.send_modify(|version| *version += 1);
        }
        news
    }
}

impl State {
    fn standing(&self) -> Standing {
        let openness = match &self.openness {
            open if open.is_open() && self.needed => Openness::Closed,
            other => other.clone(),
        };
        Standing { tokens: self.tokens.clone(), openness, others: Vec::new() }
    }

    /// Goes by what the file says now.
    fn follow(&mut self, standing: Standing) -> Vec<GatewayEvent> {
        let before = self.needed;
        let (mut news, is_readable) = (Vec::new(), self.trouble.take().is_some());
        if is_readable {
            news.push(GatewayEvent::TokensReadable);
        }
        let gone = self.read.iter().filter(|it| !standing.tokens.contains(it));
        news.extend(gone.map(|it| GatewayEvent::TokenRevoked { name: it.name.clone() }));
        let come = standing.tokens.iter().filter(|it| !self.read.contains(it));
        news.extend(come.map(|it| GatewayEvent::TokenAdded { name: it.name.clone(), right: it.right }));
        self.others.extend(standing.others);
        self.needed = match standing.openness {
            Openness::Opened => self.demanded,
            // A file that is gone is not an invitation.
            Openness::Open => self.needed,
            Openness::Closed | Openness::Unclear(_) => true,
        };
        (self.read, self.tokens, self.openness) = (standing.tokens.clone(), standing.tokens, standing.openness);
        let is_shut = self.needed && self.tokens.is_empty() && !news.is_empty();
        let standing = self.standing().to_string();
        match (before, self.needed) {
            (false, true) => news.push(GatewayEvent::Closed { standing }),
            (true, false) => news.push(GatewayEvent::Opened { standing }),
            _ if is_shut => news.push(GatewayEvent::Shut { standing }),
            _ => {}
        }
        news
    }

    /// Lets no caller in, since no caller can be told from others.
    fn close(&mut self, why: String) -> Vec<GatewayEvent> {
        self.tokens.clear();
        self.needed = true;
        let is_new = self.trouble.as_deref() != Some(&why);
        self.trouble = Some(why.clone());
        is_new.then_some(GatewayEvent::TokensUnreadable { why }).into_iter().collect()
    }
}

impl State {
    fn access(&self, presented: Option<&str>) -> Access {
        match presented {
            _ if !self.needed => Access::Open,
            None => Access::Missing,
            Some(secret) => {
                let presented = hex(&digest(secret));
                // All of them are looked at, and each to its end.
                let granted = self.tokens.iter().fold(None, |granted, token| {
                    let is_it: bool = token.sha256.as_bytes().ct_eq(presented.as_bytes()).into();
                    if is_it { Some(token.right) } else { granted }
                });
                granted.map_or(Access::Wrong, Access::Granted)
            }
        }
    }
}

#[cfg(test)]
mod tests;
