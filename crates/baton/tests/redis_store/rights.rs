//! The rights that README names are enough.

use std::time::Duration;

use baton::{Cancel, Context, Done, Failure, Fleet, operate::Operator};

use crate::{RedisServer, behind, name};

/// As in README, for the fleet `baton`; with the two rights that are good to have.
const RIGHTS: &str = "ACL SETUSER baton on >secret ~{baton/0}* +@read +@write +@scripting +@transaction +@connection \
                      +time -@dangerous +info +config|get +bgrewriteaof";

#[tokio::test(flavor = "multi_thread")]
async fn a_user_with_the_rights_that_are_named_is_denied_nothing() {
    let server = RedisServer::start(&["--appendonly", "yes"]);
    behind::<()>(&server, RIGHTS);
    let fleet = Fleet::connect(&format!("redis://baton:secret@127.0.0.1:{}/", server.port)).unwrap();
    let cancel = Cancel::new();
    let node = fleet.node().source_into("jobs", "ticks", baton::jobs::Tick::every(Duration::ZERO).count(50));
    let node = node.handler("jobs", async |body: serde_json::Value, _: Context| match body["tick"].as_u64() {
        Some(tick) if tick % 10 == 0 => Err(Failure::new("no")),
        _ => Ok(Done::with(&7)?.then("later", &1)?),
    });
    let node = tokio::spawn(node.run(cancel.clone()));
    let operator = Operator::new(&fleet);
    assert_eq!(operator.until_done(&[name("jobs")], &[name("ticks")], |_, _| {}).await, [(name("jobs"), 5)]);
    operator.pause(&name("jobs")).await.unwrap();
    let errors = operator.errors(&baton::operate::Wanted::default()).await.unwrap();
    operator.requeue(&name("jobs"), vec![errors[0].id]).await.unwrap();
    operator.drain(&name("jobs"), vec![errors[1].id]).await.unwrap();
    assert!(operator.audit(None, Some(Duration::from_secs(1))).await.unwrap().balanced);
    cancel.drain();
    node.await.unwrap().unwrap();
    operator.migrate(|_| {}).await.unwrap();
    operator.purge().await.unwrap();
    let denied: Vec<redis::Value> = behind(&server, "ACL LOG");
    assert!(denied.is_empty(), "{denied:?}");
}
