//! The rights that README names are enough.

use std::time::Duration;

use baton::{
    Context, Done, Failure, Fleet, SessionId, Shutdown,
    admin::Admin,
    store::{
        Join, Kind, QueueRecount, Recount, RedisOptions, RedisStore, StoreError, SubmissionVerdict, TakeSurvey, ask,
    },
};

use crate::{RedisServer, behind, name, store, submit, used};

/// As in README, for the fleet `baton`; with the two rights that are good to have.
const RIGHTS: &str = "ACL SETUSER baton on >secret ~{baton/0}* +@read +@write +@scripting +@transaction +@connection \
                      +time -@dangerous +info +config|get +bgrewriteaof";

#[tokio::test(flavor = "multi_thread")]
async fn a_user_with_the_rights_that_are_named_is_denied_nothing() {
    let server = RedisServer::start(&["--appendonly", "yes"]);
    behind::<()>(&server, RIGHTS);
    let fleet = Fleet::connect(&format!("redis://baton:secret@127.0.0.1:{}/", server.port)).unwrap();
    let shutdown = Shutdown::new();
    let node = fleet.node().source_into("messages", "ticks", baton::builtin::Tick::every(Duration::ZERO).count(50));
    let node = node.handler("messages", async |body: serde_json::Value, _: Context| match body["tick"].as_u64() {
        Some(tick) if tick % 10 == 0 => Err(Failure::new("no")),
        _ => Ok(Done::with(&7)?.then("later", &1)?),
    });
    let node = tokio::spawn(node.run(shutdown.clone()));
    let admin = Admin::new(&fleet);
    assert_eq!(admin.until_done(&[name("messages")], &[name("ticks")], |_, _| {}).await, [(name("messages"), 5)]);
    admin.pause(&name("messages")).await.unwrap();
    let errors = admin.errors(&baton::admin::Wanted::default()).await.unwrap();
    admin.requeue(&name("messages"), vec![errors[0].id]).await.unwrap();
    admin.remove(&name("messages"), vec![errors[1].id]).await.unwrap();
    assert!(admin.audit(None, Some(Duration::from_secs(1))).await.unwrap().balanced);
    shutdown.graceful();
    node.await.unwrap().unwrap();
    admin.migrate(|_| {}).await.unwrap();
    admin.destroy().await.unwrap();
    let denied: Vec<redis::Value> = behind(&server, "ACL LOG");
    assert!(denied.is_empty(), "{denied:?}");
}

/// Changes the rights of a user who has all others.
fn limit(server: &RedisServer, rules: &str) {
    behind::<()>(server, &format!("ACL SETUSER limited on >secret ~* +@all {}", rules.to_lowercase()));
}

/// The store of that user.
fn limited(server: &RedisServer, rules: &str) -> RedisStore {
    limit(server, rules);
    let url = server.url().replace("redis://", "redis://limited:secret@");
    RedisStore::open(&url, name("fleet"), RedisOptions::default()).unwrap()
}

fn joining() -> Join {
    let (host, pid, queues, offers) = ("here".to_owned(), 1, vec![name("q")], Vec::new());
    let (session, kind, former) = (SessionId::random(), Kind::Client, None);
    Join { session, kind, host, pid, queues, lease_ms: 60_000, heartbeat_ms: 100, offers, former }
}

#[tokio::test]
async fn a_right_that_is_missing_is_named_before_anything_is_stored() {
    let server = RedisServer::start(&[]);
    let store = limited(&server, "");
    // What a visitor reads needs no session.
    ask(&store, TakeSurvey).await.unwrap();
    for command in used::commands() {
        limit(&server, &format!("-{command}"));
        let joined = ask(&store, joining()).await;
        let Err(StoreError::Unfit(why)) = joined else { panic!("-{command}: {joined:?}") };
        let rule = format!("`ACL SETUSER limited +{}`", command.to_lowercase());
        assert!(why.contains(&rule) && why.contains("does not let user limited"), "-{command}: {why}");
        assert_eq!(behind::<u64>(&server, "DBSIZE"), 0, "-{command}");
    }
    // A visitor is refused by the server itself, which names no command.
    limit(&server, "-hmget -time");
    let why = ask(&store, TakeSurvey).await.unwrap_err().to_string();
    assert!(why.contains("+hmget +time`"), "{why}");
    let several = limited(&server, "-unlink -rpop -bgrewriteaof -config -function");
    let why = ask(&several, joining()).await.unwrap_err().to_string();
    assert!(why.contains("`ACL SETUSER limited +rpop +unlink`"), "{why}");
    let why = ask(&limited(&server, "-info"), joining()).await.unwrap_err().to_string();
    assert!(why.contains("`ACL SETUSER limited +info`"), "{why}");
}

#[tokio::test]
async fn a_user_of_other_keys_is_named_those_of_the_fleet() {
    let server = RedisServer::start(&[]);
    for rules in ["resetkeys ~{other/0}*", "resetkeys %R~{fleet/0}*"] {
        let why = ask(&limited(&server, rules), joining()).await.unwrap_err().to_string();
        assert!(why.contains("`ACL SETUSER limited ~{fleet/0}*`"), "{rules}: {why}");
        assert_eq!(behind::<u64>(&server, "DBSIZE"), 0);
    }
}

#[tokio::test]
async fn a_command_that_the_server_was_denied_is_named() {
    for command in ["UNLINK", "BLPOP", "EXEC", "INFO"] {
        let server = RedisServer::start(&["--rename-command", command, ""]);
        let why = ask(&store(&server), joining()).await.unwrap_err().to_string();
        assert!(why.contains(&format!("has no command {command}")) && why.contains("rename-command"), "{why}");
        assert_eq!(behind::<u64>(&server, "DBSIZE"), 0);
    }
}

#[tokio::test]
async fn without_functions_on_the_server_the_same_runs_as_scripts() {
    for renamed in [&["FCALL"][..], &["FUNCTION"], &["EVALSHA", "FCALL"]] {
        let settings: Vec<_> = renamed.iter().flat_map(|command| ["--rename-command", *command, ""]).collect();
        let server = RedisServer::start(&settings);
        let store = store(&server);
        for _ in 0..2 {
            ask(&store, joining()).await.unwrap();
        }
    }
}

/// A single push that comes once more is found out after it was written, and what it wrote is taken back.
#[tokio::test]
async fn a_push_that_comes_twice_is_taken_back_with_a_right_less() {
    let server = RedisServer::start(&[]);
    let store = limited(&server, "");
    let joining = joining();
    let session = joining.session;
    ask(&store, joining).await.unwrap();
    for submit_no in 1..=3 {
        ask(&store, submit(session, submit_no, &[b"1"])).await.unwrap();
    }
    limit(&server, "-rpop");
    let why = ask(&store, submit(session, 2, &[b"1"])).await.unwrap_err().to_string();
    assert!(why.contains("`ACL SETUSER limited +rpop`"), "{why}");
    limit(&server, "");
    let submissions = ask(&store, submit(session, 2, &[b"1"])).await.unwrap().submissions;
    assert_eq!(submissions, [SubmissionVerdict::Stored { first: 2 }]);
    let submissions = ask(&store, submit(session, 4, &[b"1"])).await.unwrap().submissions;
    assert_eq!(submissions, [SubmissionVerdict::Stored { first: 4 }]);
    assert!(ask(&store, Recount { max_hold_ms: 1_000 }).await.unwrap().queues.iter().all(QueueRecount::balance));
}

/// A page of submits is turned by the push that fills it, which is stored whether or not that is allowed.
#[tokio::test]
async fn a_page_that_could_not_be_turned_is_turned_later() {
    let server = RedisServer::start(&[]);
    let store = limited(&server, "");
    let joining = joining();
    let session = joining.session;
    ask(&store, joining).await.unwrap();
    for submit_no in 1..=150 {
        if submit_no == 60 {
            limit(&server, "-unlink -rename -rpush");
        }
        let answer = ask(&store, submit(session, submit_no, &[b"1"])).await;
        let submissions = match answer {
            Ok(submitted) => submitted.submissions,
            Err(error) => {
                assert!(error.to_string().contains("+rename +rpush +unlink"), "{submit_no}: {error}");
                limit(&server, "");
                ask(&store, submit(session, submit_no, &[b"1"])).await.unwrap().submissions
            }
        };
        assert_eq!(submissions, [SubmissionVerdict::Stored { first: submit_no }]);
    }
    assert!(ask(&store, Recount { max_hold_ms: 1_000 }).await.unwrap().queues.iter().all(QueueRecount::balance));
}
