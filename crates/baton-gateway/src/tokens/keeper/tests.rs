//! The tokens in force, as files come, change and go.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
};

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
    file.open().unwrap();
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
    file.open().unwrap();
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
    fs::create_dir(path("disk")).unwrap();
    assert_eq!(keeper(sqlite("disk/a.db")).judge(None).0, Access::Missing);
    assert_eq!(keeper(sqlite("c.db")).judge(None).0, Access::Open, "a store of another name");
    at("redis://h/7", "else").add(&name, Right::Read).unwrap();
    are_open("a change of the file");
    assert_eq!(keeper(at("redis://:secret@g/7", "else")).judge(None).0, Access::Missing, "another name of a server");
    sqlite("disk/a.db").open().unwrap();
    assert_eq!(keeper(sqlite("disk/a.db")).judge(None).0, Access::Open);
    sqlite("moved.db").revoke(&name).unwrap();
    sqlite("moved.db").open().unwrap();
    assert_eq!(keeper(sqlite("moved.db")).judge(None).0, Access::Open);
    assert_eq!(keeper(sqlite("a.db")).judge(None).0, Access::Missing, "only the present one was opened");
    assert_eq!(keeper(TokenFile::at(path("tokens.json"))).judge(None).0, Access::Missing, "the file of all fleets");
}

#[test]
fn a_named_file_that_is_not_there_is_refused_and_one_without_an_entry_lets_nobody_in() {
    let folder = tempfile::TempDir::new().unwrap();
    let file = TokenFile::at(folder.path().join("tokens.json"));
    let start = || Keeper::new(Some(file.clone()));
    assert!(matches!(start(), Err(TokenError::Missing { .. })));
    fs::write(file.path(), r#"{"entries":[]}"#).unwrap();
    fs::set_permissions(file.path(), fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(start().unwrap().judge(None).0, Access::Missing);
    file.open().unwrap();
    let keeper = start().unwrap();
    assert_eq!(keeper.judge(None).0, Access::Open);
    fs::remove_file(file.path()).unwrap();
    assert!(told(&keeper).concat().contains("there is no file"));
    assert_eq!(keeper.judge(None).0, Access::Missing, "it went while the gateway ran");
}

#[test]
fn a_link_that_leads_nowhere_lets_nobody_in_at_the_start_and_later() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name);
    let of_fleet = |at| TokenFile::at(at).only(&"memory:".parse().unwrap(), &Name::new("shop").unwrap());
    let file = of_fleet(path("tokens.json"));
    let keeper = Keeper::new(Some(file.clone())).unwrap();
    assert_eq!(keeper.judge(None).0, Access::Open, "the fleet never had a token");
    symlink(path("away"), file.path()).unwrap();
    assert!(told(&keeper).concat().contains("tokens.json is a symbolic link that leads nowhere"));
    assert_eq!(keeper.judge(None).0, Access::Missing);
    assert!(matches!(Keeper::new(Some(file)), Err(TokenError::Dangling { .. })));
    symlink(path("away"), path("state")).unwrap();
    let below = Keeper::new(Some(of_fleet(path("state/tokens.json"))));
    assert!(matches!(below, Err(TokenError::Dangling { path: link }) if link == path("state")));
}
