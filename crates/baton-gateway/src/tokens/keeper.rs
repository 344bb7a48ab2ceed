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

/// Judges who comes. Without tokens everybody on this machine may do everything. Once there has been a token, or where one is
/// demanded, nobody gets in without, whatever becomes of the file; only [`TokenFile::open`] lifts that.
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

    /// Lets nobody in without a token from now on.
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

    /// Lets nobody in: who cannot be told from others stays out.
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
        assert_eq!(keeper.judge(None), (Access::Open, Vec::new()));
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
        let (access, news) = keeper.judge(Some(&secret));
        assert_eq!(access, Access::Wrong);
        assert!(matches!(&news[..], [GatewayEvent::TokensUnreadable { why }] if why.contains("can be read by others")));
        later(&keeper);
        assert_eq!(keeper.judge(Some(&secret)), (Access::Wrong, Vec::new()));
        fs::write(file.path(), "{}").unwrap();
        mode(0o600);
        later(&keeper);
        let news = keeper.judge(Some(&secret)).1;
        assert!(matches!(&news[..], [GatewayEvent::TokensUnreadable { why }] if why.contains("holds no tokens")));
    }

    fn told(keeper: &Keeper) -> Vec<String> {
        keeper.look_now().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn each_change_is_told_and_the_gateway_stays_closed_after_the_last_token_until_it_is_opened() {
        let folder = tempfile::TempDir::new().unwrap();
        let file = TokenFile::at(folder.path().join("tokens.json"));
        let keeper = Keeper::new(Some(file.clone())).unwrap();
        let name = Name::new("ci").unwrap();
        let is_open = || Keeper::new(Some(file.clone())).unwrap().standing().openness.is_open();
        assert!(is_open());
        let secret = file.add(&name, Right::Read).unwrap();
        let lines = told(&keeper);
        assert!(lines[0].contains("token ci was added, with the right to read"), "{lines:?}");
        assert!(lines[1].contains("closed to callers without a token from now on"), "{lines:?}");
        assert!(lines.len() == 2 && !lines.concat().contains(&secret), "{lines:?}");
        assert!(matches!(file.open(), Err(TokenError::Left(names)) if names == "ci"));
        file.revoke(&name).unwrap();
        let lines = told(&keeper);
        assert!(lines[0].contains("token ci was revoked") && lines[1].contains("no token is valid"), "{lines:?}");
        assert!(!is_open(), "after a restart too");
        assert_eq!(keeper.judge(None).0, Access::Missing);
        file.open().unwrap();
        assert!(told(&keeper)[0].contains("opened"));
        assert_eq!(keeper.judge(None).0, Access::Open);
        assert!(is_open());
        file.add(&name, Right::Read).unwrap();
        assert!(!is_open());
        keeper.demand();
        file.revoke(&name).unwrap();
        file.open().unwrap();
        keeper.look_now();
        assert_eq!(keeper.judge(None).0, Access::Missing, "other machines could reach it");
    }

    #[test]
    fn tokens_are_of_one_fleet_and_no_other_way_to_its_store_is_open() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = |name: &str| folder.path().join(name);
        let at = |store: &str, fleet: &str| {
            let file = TokenFile::at(path("tokens.json"));
            file.only(&store.parse().unwrap(), &Name::new(fleet).unwrap())
        };
        let sqlite = |name: &str| at(&format!("sqlite:{}", path(name).display()), "shop");
        let keeper = |file: TokenFile| Keeper::new(Some(file)).unwrap();
        let name = Name::new("ci").unwrap();
        fs::write(path("a.db"), "").unwrap();
        fs::write(path("b.db"), "").unwrap();
        let others = [sqlite("b.db"), sqlite("new.db"), at("redis://h", "shop"), at("memory:", "shop")];
        let others = others.map(keeper);
        let secret = sqlite("a.db").add(&name, Right::Operate).unwrap();
        let are_open = |why| {
            for other in &others {
                assert_eq!((told(other), other.judge(None).0), (Vec::new(), Access::Open), "{why}");
            }
        };
        are_open("tokens of another store");
        assert_eq!(keeper(sqlite("a.db")).judge(Some(&secret)).0, Access::Granted(Right::Operate));
        assert_eq!(keeper(sqlite("b.db")).judge(Some(&secret)).0, Access::Open);
        fs::rename(path("a.db"), path("moved.db")).unwrap();
        fs::write(path("unrelated"), "").unwrap();
        assert_eq!(keeper(sqlite("moved.db")).judge(Some(&secret)).0, Access::Granted(Right::Operate), "it was moved");
        assert_eq!(keeper(sqlite("a.db")).judge(None).0, Access::Missing, "it was deleted");
        // It may have been moved to another disk; that another one was not is known while it runs.
        assert_eq!(keeper(sqlite("c.db")).judge(None).0, Access::Missing);
        at("redis://h/7", "else").add(&name, Right::Read).unwrap();
        are_open("a change of the file");
        assert_eq!(
            keeper(at("redis://:secret@g/7", "else")).judge(None).0,
            Access::Missing,
            "another name of a server"
        );
        sqlite("c.db").open().unwrap();
        assert_eq!(keeper(sqlite("c.db")).judge(None).0, Access::Open);
        sqlite("moved.db").revoke(&name).unwrap();
        sqlite("moved.db").open().unwrap();
        assert_eq!(keeper(sqlite("moved.db")).judge(None).0, Access::Open);
        assert_eq!(keeper(sqlite("a.db")).judge(None).0, Access::Missing, "only the present one was opened");
        assert_eq!(keeper(TokenFile::at(path("tokens.json"))).judge(None).0, Access::Missing, "the file of all fleets");
    }
}
