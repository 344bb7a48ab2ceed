//! Follow-ups and results: long ones past the script that settles, refused whole at maxmemory.

use baton::{
    Key,
    store::{message::*, *},
};

use crate::{behind, claim, join, monitor::Monitor, name, redis_server::RedisServer, settle, store, submit};

/// How often the server has carried out a command, in scripts or by itself.
fn count_of(server: &RedisServer, command: &str) -> u64 {
    let calls = behind::<String>(server, "INFO commandstats");
    let of_it = format!("cmdstat_{command}:calls=");
    let count = calls.lines().find_map(|line| line.strip_prefix(&of_it));
    count.map_or(0, |rest| rest.split(',').next().unwrap().parse().unwrap())
}

fn submission(bytes: usize) -> Submission {
    let body = format!("\"{}\"", "x".repeat(bytes));
    Submission {
        queue: name("next"),
        parcel: Parcel::single(Body::new(body.as_bytes()).unwrap()),
        key: None,
        call: None,
    }
}

async fn is_balanced(store: &RedisStore) -> bool {
    let recounted = ask(store, Recount { max_hold_ms: 10_000 }).await.unwrap();
    recounted.queues.iter().all(QueueRecount::balance)
}

async fn next(store: &RedisStore) -> Books {
    let queues = ask(store, TakeSurvey).await.unwrap().queues;
    queues.into_iter().find(|books| books.queue == name("next")).unwrap_or_else(|| Books::new(name("next")))
}

#[tokio::test]
async fn long_follow_ups_are_moved_into_place_and_repeats_leave_nothing() {
    let server = RedisServer::start(&[]);
    let store = store(&server);
    let session = join(&store, Kind::Node).await;
    ask(&store, submit(session, 1, &[b"1", b"2", b"3"])).await.unwrap();
    ask(&store, claim(session, 1, 3)).await.unwrap();
    // Fifteen of a megabyte and one that comes along, with keys; then the most there may be of those that are short.
    let keyed = |nth: usize, submission: Submission| {
        let digest = Digest::of(submission.parcel.bytes());
        Submission {
            key: Some(SubmissionKey { key: Key::new(&format!("k{nth}")).unwrap(), digest, lives_ms: 60_000 }),
            ..submission
        }
    };
    let long: Vec<Submission> = (0..15).map(|nth| keyed(nth, submission(1_000_000))).chain([submission(10)]).collect();
    let done = |follow_ups: &[Submission]| Outcome::Done { result: None, follow_ups: follow_ups.to_vec() };
    let run = |first, outcome| Run { claim_no: 1, queue: name("q"), range: Range { first, len: 1 }, outcome };
    let report = |settle_no, runs| Settle { session, settle_no, runs, max_results: baton::store::MAX_RESULTS };
    let (renamed, set) = (count_of(&server, "rename"), count_of(&server, "set"));
    for _ in 0..2 {
        let settled = ask(&store, report(1, vec![run(1, done(&long))])).await.unwrap();
        assert_eq!(settled.refused, [], "and a repeat says the same");
    }
    assert_eq!(count_of(&server, "rename") - renamed, 15, "each is moved once");
    assert!(count_of(&server, "set") - set < 2 * 15 + 5, "written by plain commands, and the books");
    assert_eq!(next(&store).await.pushed, 16);
    // The keys are known: what was staged for them is not kept, nor for a run that is refused.
    let again = vec![run(2, done(&long[..15])), run(1, done(&long))];
    assert_eq!(ask(&store, report(2, again)).await.unwrap().refused.len(), 1);
    assert_eq!(next(&store).await.pushed, 16);
    for key in behind::<Vec<String>>(&server, "KEYS *:t:*") {
        assert!(behind::<i64>(&server, &format!("PTTL {key}")) > 0, "{key} goes by itself");
    }
    let kept = behind::<Vec<String>>(&server, "KEYS *:b:next:*");
    assert_eq!(kept.len(), 15);
    assert!(kept.iter().all(|key| behind::<i64>(&server, &format!("PTTL {key}")) == -1), "they stay");
    let many = vec![submission(4_000); 1_000];
    ask(&store, report(3, vec![run(3, done(&many))])).await.unwrap();
    assert!(count_of(&server, "rename") - renamed > 15 + 950, "short ones that are many do not pass the script either");
    assert_eq!(next(&store).await.pushed, 1_016);
    assert!(is_balanced(&store).await);
    let claimed = ask(&store, Claim { queue: name("next"), ..claim(session, 1, 1_016) }).await.unwrap();
    assert_eq!(claimed.spans.len(), 1_016);
    assert_eq!(claimed.spans[0].1, long[0].parcel);
    assert_eq!(claimed.spans[1_015].1, many[0].parcel);
}

#[tokio::test]
async fn short_follow_ups_cost_no_more_commands() {
    let server = RedisServer::start(&[]);
    let store = store(&server);
    let session = join(&store, Kind::Node).await;
    ask(&store, submit(session, 1, &[b"1"])).await.unwrap();
    ask(&store, claim(session, 1, 1)).await.unwrap();
    let before = ["rename", "exec", "strlen"].map(|command| count_of(&server, command));
    let follow_ups = vec![submission(100), submission(3_000)];
    ask(&store, settle(session, 1, 1, 1, Outcome::Done { result: None, follow_ups })).await.unwrap();
    assert_eq!(["rename", "exec", "strlen"].map(|command| count_of(&server, command)), before);
    assert_eq!(next(&store).await.pushed, 2);
}

#[tokio::test]
async fn at_maxmemory_what_brings_something_is_refused_whole_and_its_number_is_free() {
    let server = RedisServer::start(&[]);
    let store = store(&server);
    let session = join(&store, Kind::Node).await;
    ask(&store, submit(session, 1, &[b"1", b"2", b"3", b"4"])).await.unwrap();
    ask(&store, claim(session, 1, 4)).await.unwrap();
    let run = |first, outcome| Run { claim_no: 1, queue: name("q"), range: Range { first, len: 1 }, outcome };
    let report = |settle_no, runs| Settle { session, settle_no, runs, max_results: baton::store::MAX_RESULTS };
    let _: String = behind(&server, "CONFIG SET maxmemory 1");
    let result = Outcome::Done { result: Some("1".into()), follow_ups: Vec::new() };
    for bringing in [
        result.clone(),
        Outcome::Done { result: None, follow_ups: vec![submission(10)] },
        Outcome::Done { result: None, follow_ups: vec![submission(10), submission(1_000_000)] },
    ] {
        let refused = ask(&store, report(1, vec![run(1, bringing), run(2, Outcome::DONE)])).await.unwrap_err();
        assert!(matches!(&refused, StoreError::NoRoom(why) if why.contains("maxmemory")), "{refused:?}");
    }
    // Failures and what is handed back pass, as what is done.
    let dead = Outcome::Failed { error: "in vain".to_owned() };
    let plain = vec![run(2, Outcome::DONE), run(3, dead), run(4, Outcome::Back)];
    assert_eq!(ask(&store, report(1, plain)).await.unwrap().refused, []);
    let _: String = behind(&server, "CONFIG SET maxmemory 0");
    assert_eq!(ask(&store, report(2, vec![run(1, result)])).await.unwrap().refused, []);
    assert!(is_balanced(&store).await);
}

#[tokio::test]
async fn the_most_follow_ups_in_as_many_queues_with_keys_are_a_bounded_number_of_commands() {
    let server = RedisServer::start(&[]);
    let store = store(&server);
    let session = join(&store, Kind::Node).await;
    ask(&store, submit(session, 1, &[b"1"])).await.unwrap();
    ask(&store, claim(session, 1, 1)).await.unwrap();
    let one = |nth: usize| {
        let key =
            SubmissionKey { key: Key::new(&format!("k{nth}")).unwrap(), digest: Digest::of(b"x"), lives_ms: 60_000 };
        Submission { queue: name(&format!("n{nth}")), key: Some(key), ..submission(16_000) }
    };
    let follow_ups = (0..1_000).map(one).collect();
    let look = Monitor::start(&server);
    ask(&store, settle(session, 1, 1, 1, Outcome::Done { result: None, follow_ups })).await.unwrap();
    let seen = look.end(&server);
    assert!(seen["settle_bringing"].commands <= 12_050, "{seen:?}");
    assert!(is_balanced(&store).await);
}
