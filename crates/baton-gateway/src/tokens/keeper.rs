//! The tokens in force while a gateway runs.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use subtle::ConstantTimeEq as _;
use tokio::sync::watch;

use super::{Right, Token, TokenError, TokenFile, digest, file::Stamp, hex};

/// How often the file is looked at.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// What somebody may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// No token is needed, and none was looked at.
    Open,
    /// The bearer of a valid token.
    Granted(Right),
    /// No token was presented, and one is needed.
    Missing,
    /// What was presented is none, or none any more.
    Wrong,
}

/// Judges who comes. Without tokens everybody may do everything, which is for loopback alone. Once there has been a token, or
/// where one is demanded, nobody gets in without, whatever becomes of the file.
#[derive(Debug)]
pub(crate) struct Keeper {
    file: Option<TokenFile>,
    state: Mutex<State>,
    /// How often the tokens in force have changed.
    changes: watch::Sender<u64>,
}

#[derive(Debug)]
struct State {
    tokens: Vec<Token>,
    needed: bool,
    stamp: Option<Stamp>,
    looked: Instant,
    trouble: Option<String>,
}

impl Keeper {
    pub(crate) fn new(file: Option<TokenFile>) -> Result<Self, TokenError> {
        let stamp = file.as_ref().and_then(TokenFile::stamp);
        let tokens = file.as_ref().map_or_else(|| Ok(Vec::new()), TokenFile::read)?;
        let needed = !tokens.is_empty();
        let state = State { tokens, needed, stamp, looked: Instant::now(), trouble: None };
        Ok(Self { file, state: Mutex::new(state), changes: watch::Sender::new(0) })
    }

    /// Whether there is a token.
    pub(crate) fn has_some(&self) -> bool {
        !self.state.lock().unwrap_or_else(PoisonError::into_inner).tokens.is_empty()
    }

    /// Lets nobody in without a token from now on.
    pub(crate) fn demand(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).needed = true;
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

    /// Looks at the file now. If the tokens cannot be read any more, why not, once.
    pub(crate) fn look_now(&self) -> Option<String> {
        self.look(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner), Duration::ZERO)
    }

    /// What the bearer of this may do. If the tokens cannot be read any more, why not, once.
    pub(crate) fn judge(&self, presented: Option<&str>) -> (Access, Option<String>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut trouble = self.look(&mut state, LOOK_AGAIN);
        let mut access = state.access(presented);
        if access == Access::Wrong && state.trouble.is_none() {
            // It may have been made a moment ago.
            trouble = trouble.or(self.look(&mut state, Duration::ZERO));
            access = state.access(presented);
        }
        (access, trouble)
    }

    /// Reads the file if it has changed, unless that was looked at so recently.
    fn look(&self, state: &mut State, again: Duration) -> Option<String> {
        let file = self.file.as_ref().filter(|_| state.looked.elapsed() >= again)?;
        state.looked = Instant::now();
        let stamp = file.stamp();
        if stamp == state.stamp && state.trouble.is_none() {
            return None;
        }
        state.stamp = stamp;
        let (is_other, trouble) = match file.read() {
            Ok(tokens) => {
                let is_other = tokens != state.tokens;
                state.needed |= !tokens.is_empty();
                (state.tokens, state.trouble) = (tokens, None);
                (is_other, None)
            }
            Err(error) => {
                let is_other = !state.tokens.is_empty() || !state.needed;
                // Who cannot be told from others is not let in.
                state.tokens.clear();
                state.needed = true;
                let told = error.to_string();
                let is_new = state.trouble.as_deref() != Some(&told);
                state.trouble = Some(told.clone());
                (is_other, is_new.then_some(told))
            }
        };
        if is_other {
            self.changes.send_modify(|version| *version += 1);
        }
        trouble
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
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use baton::Name;

    use super::*;

    /// As if a while had passed.
    fn later(keeper: &Keeper) {
        keeper.state.lock().unwrap().looked = Instant::now().checked_sub(LOOK_AGAIN).unwrap();
    }

    #[test]
    fn tokens_come_and_go_and_once_there_was_one_nobody_gets_in_without() {
        let folder = tempfile::TempDir::new().unwrap();
        let file = TokenFile::at(folder.path().join("state/tokens.json"));
        let keeper = Keeper::new(Some(file.clone())).unwrap();
        assert_eq!(keeper.judge(None), (Access::Open, None));
        let (reader, writer) = (Name::new("reader").unwrap(), Name::new("writer").unwrap());
        let read = file.add(&reader, Right::Read).unwrap();
        let admin = file.add(&writer, Right::Operate).unwrap();
        assert!(matches!(file.add(&reader, Right::Read), Err(TokenError::Taken(_))));
        let mode = fs::metadata(file.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let text = fs::read_to_string(file.path()).unwrap();
        assert!(!text.contains(&read) && !text.contains(&admin), "{text}");
        later(&keeper);
        assert_eq!(keeper.judge(Some(&read)).0, Access::Granted(Right::Read));
        assert_eq!(keeper.judge(Some(&admin)).0, Access::Granted(Right::Operate));
        assert_eq!(keeper.judge(None).0, Access::Missing);
        assert_eq!(keeper.judge(Some("baton_x")).0, Access::Wrong);
        let new = file.add(&Name::new("new").unwrap(), Right::Read).unwrap();
        assert_eq!(keeper.judge(Some(&new)).0, Access::Granted(Right::Read), "at once");
        file.revoke(&reader).unwrap();
        file.revoke(&writer).unwrap();
        assert!(matches!(file.revoke(&writer), Err(TokenError::Unknown(_))));
        later(&keeper);
        assert_eq!(keeper.judge(Some(&admin)).0, Access::Wrong);
        assert_eq!(keeper.judge(None).0, Access::Missing);
    }

    #[test]
    fn a_file_that_others_can_read_or_nobody_can_lets_nobody_in() {
        let folder = tempfile::TempDir::new().unwrap();
        let file = TokenFile::at(folder.path().join("tokens.json"));
        let secret = file.add(&Name::new("one").unwrap(), Right::Operate).unwrap();
        let keeper = Keeper::new(Some(file.clone())).unwrap();
        let mode = |mode| fs::set_permissions(file.path(), fs::Permissions::from_mode(mode)).unwrap();
        mode(0o640);
        assert!(matches!(Keeper::new(Some(file.clone())), Err(TokenError::Exposed { .. })));
        later(&keeper);
        let (access, trouble) = keeper.judge(Some(&secret));
        assert_eq!(access, Access::Wrong);
        assert!(trouble.unwrap().contains("can be read by others"));
        later(&keeper);
        assert_eq!(keeper.judge(Some(&secret)), (Access::Wrong, None));
        fs::write(file.path(), "{}").unwrap();
        mode(0o600);
        later(&keeper);
        assert!(keeper.judge(Some(&secret)).1.unwrap().contains("holds no tokens"));
    }
}
