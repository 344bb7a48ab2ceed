//! Short messages pushed singly lie in the inbox of their queue until the next call that writes takes them in.

use std::{cell::Cell, time::Duration};

use baton::{
    SessionId,
    store::{message::*, *},
};

use crate::{RedisServer, behind, books, claim, join, name, settle, store, submit};

/// The same fleet by a user who may use no functions: what one call knows the next one does not.
fn without_functions(server: &RedisServer) -> RedisStore {
    let _: String = behind(server, "ACL SETUSER scripts on >secret ~* &* +@all -function -fcall");
    let url = server.url().replace("redis://", "redis://scripts:secret@");
    RedisStore::open(&url, name("fleet"), RedisOptions::default()).unwrap()
}

fn paging(server: &RedisServer) -> RedisStore {
    let paging = RedisOptions { recount_at_once: 1, ..RedisOptions::default() };
    RedisStore::open(&server.url(), name("fleet"), paging).unwrap()
}

/// Calls of a command so far.
fn calls_of(server: &RedisServer, command: &str) -> u64 {
    let stats: String = behind(server, "INFO commandstats");
    let line = stats.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{command}:calls=")));
    line.map_or(0, |rest| rest.split(',').next().unwrap().parse().unwrap())
}

fn in_inbox(server: &RedisServer) -> u64 {
    let lists: Vec<String> = behind(server, "KEYS {fleet/0}:I:q:*");
    assert!(lists.len() <= 1, "there is one inbox at most: {lists:?}");
    lists.iter().map(|list| behind::<u64>(server, &format!("LLEN {list}"))).sum()
}

async fn push(store: &RedisStore, session: SessionId, numbers: std::ops::RangeInclusive<u64>) {
    for no in numbers {
        let stored = ask(store, submit(session, no, &[no.to_string().as_bytes()])).await.unwrap().submissions;
        assert!(matches!(stored[..], [SubmissionVerdict::Stored { .. }]), "{stored:?}");
    }
}

fn is_balanced(recount: &Recounted) -> bool {
    recount.queues.iter().all(QueueRecount::balance)
}

#[tokio::test]
async fn every_reader_counts_what_lies_in_an_inbox() {
    let server = RedisServer::start(&[]);
    let store = store(&server);
    let session = join(&store, Kind::Node).await;
    push(&store, session, 1..=10).await;
    assert_eq!(in_inbox(&server), 9, "the first one opens it");
    let Books { pushed, ready, bytes, .. } = books(&store).await;
    assert_eq!((pushed, ready), (10, 10));
    assert_eq!(ask(&store, Look { session }).await.unwrap().queues.len(), 1);
    assert!(is_balanced(&ask(&store, Recount { max_hold_ms: 1 }).await.unwrap()));
    assert_eq!(in_inbox(&server), 9, "reading changes nothing");

    let spans = ask(&store, claim(session, 1, 4)).await.unwrap().spans;
    assert_eq!(spans.iter().map(|(span, _)| span.range.first).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert_eq!(in_inbox(&server), 6);
    let taken_in = books(&store).await;
    assert_eq!((taken_in.pushed, taken_in.ready, taken_in.bytes), (10, 6, bytes));
    push(&store, session, 11..=12).await;
    ask(&store, settle(session, 1, 1, 4, Outcome::DONE)).await.unwrap();
    assert_eq!(in_inbox(&server), 8, "a report leaves it");
    assert!(is_balanced(&ask(&store, Recount { max_hold_ms: 1 }).await.unwrap()));
    let paging = paging(&server);
    assert!(is_balanced(&ask(&paging, Recount { max_hold_ms: 10_000 }).await.unwrap()));
    assert_eq!(in_inbox(&server), 0, "a recount in pages begins with what is counted");
    let rest = ask(&store, claim(session, 2, 100)).await.unwrap().spans;
    assert_eq!(rest.iter().map(|(span, _)| span.range.first).collect::<Vec<_>>(), (5..=12).collect::<Vec<_>>());
}

#[tokio::test]
async fn an_inbox_is_bounded_and_keeps_the_order() {
    let server = RedisServer::start(&[]);
    let store = store(&server);
    let session = join(&store, Kind::Node).await;
    push(&store, session, 1..=300).await;
    assert!(in_inbox(&server) <= 128);
    // What comes another way goes behind it.
    let several = ask(&store, submit(session, 301, &[b"301", b"302"])).await.unwrap().submissions;
    assert_eq!(several, [SubmissionVerdict::Stored { first: 301 }]);
    push(&store, session, 302..=310).await;
    let (mut ids, mut bodies) = (Vec::new(), Vec::new());
    for (claim_no, n) in [(1, 1), (2, 50), (3, 100), (4, 1_000)] {
        assert!(is_balanced(&ask(&store, Recount { max_hold_ms: 1 }).await.unwrap()));
        for (span, parcel) in ask(&store, claim(session, claim_no, n)).await.unwrap().spans {
            ids.extend(span.range.first..span.range.first + u64::from(span.range.len));
            bodies.extend(parcel.bodies());
        }
    }
    assert_eq!(ids, (1..=311).collect::<Vec<_>>());
    let whole: Vec<_> = (1..=302).chain(302..=310).map(|n: u64| n.to_string()).collect();
    assert_eq!(bodies, whole);
    assert_eq!(books(&store).await.ready, 0);
}

#[tokio::test]
async fn a_queue_near_its_bound_is_counted_exactly() {
    let server = RedisServer::start(&[]);
    let store = store(&server);
    let session = join(&store, Kind::Node).await;
    push(&store, session, 1..=50).await;
    let (held, inbox) = (books(&store).await.bytes, in_inbox(&server));
    assert_eq!(inbox, 49);
    let next = |submit_no, max_queue_bytes| Submit { max_queue_bytes, ..submit(session, submit_no, &[b"51"]) };
    let full = ask(&store, next(51, held)).await.unwrap().submissions;
    assert_eq!(full, [SubmissionVerdict::Full]);
    let stored = ask(&store, next(52, held + 100)).await.unwrap().submissions;
    assert_eq!(stored, [SubmissionVerdict::Stored { first: 51 }]);
}

#[tokio::test]
async fn a_repeated_push_into_an_inbox_is_answered_the_same() {
    let server = RedisServer::start(&[]);
    let store = store(&server);
    let session = join(&store, Kind::Node).await;
    push(&store, session, 1..=5).await;
    for no in [5, 4] {
        let again = ask(&store, submit(session, no, &[b"again"])).await.unwrap().submissions;
        assert_eq!(again, [SubmissionVerdict::Stored { first: no }]);
    }
    let early = ask(&store, submit(session, 7, &[b"7"])).await.unwrap_err();
    assert_eq!(early, StoreError::Refused(Refusal::OutOfTurn { last: 5 }));
    let stranger = ask(&store, submit(SessionId::random(), 1, &[b"1"])).await.unwrap_err();
    assert_eq!(stranger, StoreError::Refused(Refusal::Stale));
    assert_eq!(books(&store).await.pushed, 5);
}

#[tokio::test]
async fn most_pushes_are_two_commands_without_a_look() {
    let server = RedisServer::start(&[]);
    let store = store(&server);
    let session = join(&store, Kind::Node).await;
    push(&store, session, 1..=3).await;
    let before = ["get", "rpush", "rpushx"].map(|command| calls_of(&server, command));
    push(&store, session, 4..=60).await;
    let after = ["get", "rpush", "rpushx"].map(|command| calls_of(&server, command));
    assert_eq!((after[0], after[1], after[2]), (before[0], before[1], before[2] + 2 * 57));
    push(&store, session, 61..=200).await;
    let lines: Vec<String> = behind(&server, "LRANGE {fleet/0}:r:q 0 -1");
    let bundles: Vec<_> = lines.iter().filter(|line| line.starts_with('*')).collect();
    assert_eq!(bundles.len(), 1, "{lines:?}");
    assert_eq!(in_inbox(&server), 200 - 1 - 128);
}

#[tokio::test]
async fn what_is_known_of_an_inbox_does_not_outlive_it() {
    let server = RedisServer::start(&[]);
    let store = store(&server);
    let session = join(&store, Kind::Node).await;
    push(&store, session, 1..=30).await;
    let _: String = behind(&server, "FLUSHALL");
    let gone = ask(&store, submit(session, 31, &[b"31"])).await.unwrap_err();
    assert_eq!(gone, StoreError::Refused(Refusal::Stale));
    let session = join(&store, Kind::Node).await;
    for submit_no in 1..=40 {
        let stored = ask(&store, submit(session, submit_no, &[b"a longer one than before"])).await.unwrap().submissions;
        assert_eq!(stored, [SubmissionVerdict::Stored { first: submit_no }]);
    }
    let recount = ask(&store, Recount { max_hold_ms: 1 }).await.unwrap();
    assert!(is_balanced(&recount) && recount.queues[0].bytes() == recount.queues[0].books.bytes, "{recount:?}");
    ask(&store, submit(session, 41, &[b"two", b"at once"])).await.unwrap();
    assert_bundles(&server);

    // As many by another library, under the same ids.
    let _: String = behind(&server, "FLUSHALL");
    let without = without_functions(&server);
    let others = join(&without, Kind::Node).await;
    for submit_no in 1..=40 {
        ask(&without, submit(others, submit_no, &[b"1"])).await.unwrap();
    }
    let session = join(&store, Kind::Node).await;
    push(&store, session, 1..=1).await;
    let recount = ask(&without, Recount { max_hold_ms: 1 }).await.unwrap();
    assert_eq!(
        recount.queues[0].books.bytes,
        ask(&store, Recount { max_hold_ms: 1 }).await.unwrap().queues[0].books.bytes
    );
}

/// Each bundle in the line tells how many there are in its list, and what their parcels weigh.
fn assert_bundles(server: &RedisServer) -> usize {
    let lines: Vec<Vec<u8>> = behind(server, "LRANGE {fleet/0}:r:q 0 -1");
    let bundles: Vec<_> = lines.iter().filter(|line| line.starts_with(b"*")).collect();
    for bundle in &bundles {
        let numbers: Vec<u64> =
            String::from_utf8_lossy(&bundle[1..]).split(',').map(|number| number.parse().unwrap()).collect();
        let [_, count, bytes, home] = numbers[..] else { panic!("{numbers:?}") };
        let entries: Vec<Vec<u8>> = behind(server, &format!("LRANGE {{fleet/0}}:L:q:{home} 0 -1"));
        let weight: usize = entries.iter().map(|entry| entry.len() - 14).sum();
        assert_eq!((count, bytes), (entries.len() as u64, weight as u64), "{numbers:?}");
    }
    bundles.len()
}

/// One that pushes, claims and reports.
struct Member<'s> {
    store: &'s RedisStore,
    session: SessionId,
    submit_no: u64,
    claim_no: u64,
    settle_no: u64,
    held: Vec<Run>,
}

impl<'s> Member<'s> {
    async fn join(store: &'s RedisStore) -> Self {
        let session = join(store, Kind::Node).await;
        Self { store, session, submit_no: 0, claim_no: 0, settle_no: 0, held: Vec::new() }
    }

    async fn push(&mut self, body: &str) -> SubmissionVerdict {
        self.submit_no += 1;
        ask(self.store, submit(self.session, self.submit_no, &[body.as_bytes()])).await.unwrap().submissions[0]
    }

    /// What it is given, as ids and bodies.
    async fn claim(&mut self, n: u32) -> Vec<(u64, String)> {
        let claimed = ask(self.store, claim(self.session, self.claim_no + 1, n)).await.unwrap().spans;
        self.claim_no += u64::from(!claimed.is_empty());
        let claim_no = self.claim_no;
        let run =
            |(span, _): &(Span, Parcel)| Run { claim_no, queue: name("q"), range: span.range, outcome: Outcome::DONE };
        self.held.extend(claimed.iter().map(run));
        let given = claimed.iter().flat_map(|(span, parcel)| {
            span.range
                .ids()
                .zip(parcel.bodies())
                .map(|(id, body)| (id.0, String::from_utf8(body.to_vec()).unwrap()))
                .collect::<Vec<_>>()
        });
        given.collect()
    }

    async fn settle(&mut self) {
        self.settle_no += 1;
        let runs = std::mem::take(&mut self.held);
        let settle = Settle { runs, ..settle(self.session, self.settle_no, 1, 1, Outcome::DONE) };
        assert_eq!(ask(self.store, settle).await.unwrap().refused, []);
    }
}

/// Two libraries see a queue, or one that forgets: neither may trust what it saw last.
#[tokio::test]
async fn who_uses_no_functions_shares_inboxes_with_who_does() {
    let server = RedisServer::start(&[]);
    let (with, without) = (store(&server), without_functions(&server));
    let seed = std::env::var("BATON_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed: u64 = seed.unwrap_or_else(|| u64::from(std::process::id()));
    println!("BATON_SEED={seed}");
    let mut chance = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut below = |bound: u64| {
        chance ^= chance << 13;
        chance ^= chance >> 7;
        chance ^= chance << 17;
        chance % bound
    };
    let mut members = [Member::join(&with).await, Member::join(&without).await];
    let (mut pushed, mut given, mut bundles) = (0, Vec::new(), 0);
    for _ in 0..150 {
        let member = &mut members[below(2) as usize];
        match below(5) {
            0 => {
                let most = if below(3) == 0 { 200 } else { 9 };
                given.extend(member.claim(1 + below(most) as u32).await);
            }
            1 => member.settle().await,
            _ => {
                for _ in 0..below(60) {
                    pushed += 1;
                    let body = format!("{pushed} {}", "x".repeat(below(4) as usize));
                    assert_eq!(member.push(&body).await, SubmissionVerdict::Stored { first: pushed });
                }
            }
        }
        bundles += assert_bundles(&server);
        let recount = ask(member.store, Recount { max_hold_ms: 1 }).await.unwrap();
        let is_weighed = recount.queues.iter().all(|queue| queue.bytes() == queue.books.bytes);
        assert!(is_balanced(&recount) && is_weighed, "{recount:?}");
    }
    loop {
        let rest = members[0].claim(1_000).await;
        if rest.is_empty() {
            break;
        }
        given.extend(rest);
    }
    assert!(bundles > 0, "none was looked at");
    assert_eq!(given.iter().map(|(id, _)| *id).collect::<Vec<_>>(), (1..=pushed).collect::<Vec<_>>());
    for (id, body) in given {
        assert_eq!(body.split(' ').next(), Some(id.to_string().as_str()));
    }
}

#[tokio::test]
async fn recounts_in_pages_balance_beside_single_pushes_and_let_them_through() {
    let server = RedisServer::start(&[]);
    let (store, paging) = (store(&server), paging(&server));
    let member = Member::join(&store).await;
    let (pushed, done) = (Cell::new(0), Cell::new(false));
    let pushing = async {
        let mut held = 0;
        while !done.get() {
            match ask(member.store, submit(member.session, pushed.get() + 1, &[b"1"])).await {
                Ok(_) => pushed.set(pushed.get() + 1),
                Err(StoreError::Refused(Refusal::Held { .. })) => {
                    held += 1;
                    // As the library does.
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
                Err(other) => panic!("{other}"),
            }
        }
        held
    };
    let recounting = async {
        while pushed.get() == 0 {
            tokio::task::yield_now().await;
        }
        for _ in 0..8 {
            let before = pushed.get();
            assert!(is_balanced(&ask(&paging, Recount { max_hold_ms: 60_000 }).await.unwrap()));
            assert!(pushed.get() > before, "nobody got a turn");
        }
        done.set(true);
    };
    let (held, ()) = tokio::join!(pushing, recounting);
    assert!(held > 0, "no push met a hold");
    assert_eq!(books(&store).await.pushed, pushed.get());
}

#[tokio::test]
async fn a_bundle_whose_list_is_missing_ends_as_errors() {
    let server = RedisServer::start(&[]);
    let store = store(&server);
    let mut member = Member::join(&store).await;
    for n in 1..=140 {
        member.push(&n.to_string()).await;
    }
    assert_eq!(assert_bundles(&server), 1);
    assert_eq!(member.claim(5).await.len(), 5);
    let bundle: Vec<String> = behind(&server, "KEYS {fleet/0}:L:q:*");
    let _: u64 = behind(&server, &format!("DEL {}", bundle[0]));
    let recount = ask(&store, Recount { max_hold_ms: 1 }).await.unwrap();
    assert_eq!(recount.queues[0].lacking.count, 124, "{recount:?}");
    let mut given = Vec::new();
    for _ in 0..20 {
        given.extend(member.claim(100).await.into_iter().map(|(id, _)| id));
    }
    assert_eq!(given, (130..=140).collect::<Vec<_>>());
    let books = books(&store).await;
    assert_eq!((books.pushed, books.ready, books.failed), (140, 0, 124));
}
