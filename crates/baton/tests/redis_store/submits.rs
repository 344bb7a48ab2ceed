//! Submits are serial and answered once each, whatever page of answers their numbers are on.

use baton::{
    SessionId,
    store::{message::*, *},
};

use crate::{RedisServer, behind, books, claim, join, settle, store, submit};

/// Numbers to a page.
const PAGE: u64 = 64;

/// One message by the short way.
fn one(session: SessionId, submit_no: u64) -> Submit {
    submit(session, submit_no, &[submit_no.to_string().as_bytes()])
}

/// Two submissions, which go the long way.
fn two(session: SessionId, submit_no: u64) -> Submit {
    let Submit { submissions, .. } = one(session, submit_no);
    Submit { submissions: [submissions.clone(), submissions].concat(), ..one(session, submit_no) }
}

fn pages(server: &RedisServer, session: SessionId) -> Vec<String> {
    let mut pages: Vec<String> = behind(server, &format!("KEYS {{fleet/0}}:n:{session}:*"));
    pages.sort();
    pages
}

#[tokio::test]
async fn the_last_answers_are_kept_across_pages_and_no_number_is_used_twice() {
    let server = RedisServer::start(&[]);
    let store = store(&server);
    let session = join(&store, Kind::Node).await;
    let (mut answers, mut pushed) = (vec![Submitted { submissions: Vec::new() }], 0);
    for no in 1..=3 * PAGE + 5 {
        // Both ways keep their answers side by side.
        let submit = |no| if no % 5 == 0 { two(session, no) } else { one(session, no) };
        let answer = ask(&store, submit(no)).await.unwrap();
        pushed += answer.submissions.len() as u64;
        answers.push(answer);
        if no % 7 == 0 || no % PAGE < 2 {
            for repeated in no.saturating_sub(20)..=no {
                let again = ask(&store, submit(repeated)).await;
                if repeated + SUBMIT_WINDOW > no && repeated > 0 {
                    assert_eq!(again.unwrap(), answers[repeated as usize], "{repeated} after {no}");
                } else {
                    assert_eq!(again.unwrap_err(), Refusal::OutOfTurn { last: no }.into(), "{repeated} after {no}");
                }
            }
            // Copies of former pages, and numbers of pages to come, at the place of the next one.
            for other in [no + 2, no + 1 + PAGE, (no + 1).saturating_sub(PAGE), (no + 1).saturating_sub(2 * PAGE)] {
                let refused = ask(&store, one(session, other)).await.unwrap_err();
                assert_eq!(refused, Refusal::OutOfTurn { last: no }.into(), "{other} after {no}");
            }
        }
        assert_eq!(books(&store).await.pushed, pushed);
    }
    assert_eq!(pages(&server, session).len(), 2);
    let recounted = ask(&store, Recount { max_hold_ms: 1_000 }).await.unwrap();
    assert!(recounted.queues.iter().all(QueueRecount::balance), "{recounted:?}");
}

#[tokio::test]
async fn a_session_that_is_over_leaves_no_page_and_stores_nothing() {
    let server = RedisServer::start(&[]);
    let store = store(&server);
    let (leaving, other) = (join(&store, Kind::Node).await, join(&store, Kind::Node).await);
    for no in 1..=PAGE + 3 {
        ask(&store, one(leaving, no)).await.unwrap();
    }
    ask(&store, Leave { session: leaving }).await.unwrap();
    assert_eq!(pages(&server, leaving), [] as [String; 0]);
    for no in [1, 2, PAGE, PAGE + 3, PAGE + 4, 2 * PAGE + 1] {
        assert_eq!(ask(&store, one(leaving, no)).await.unwrap_err(), Refusal::Stale.into());
        assert_eq!(ask(&store, two(leaving, no)).await.unwrap_err(), Refusal::Stale.into());
    }
    assert_eq!(pages(&server, leaving), [] as [String; 0]);
    assert_eq!(books(&store).await.pushed, PAGE + 3);
    assert_eq!(ask(&store, claim(other, 1, 1_000)).await.unwrap().spans.len() as u64, PAGE + 3);
    ask(&store, settle(other, 1, 1, (PAGE + 3) as u32, Outcome::DONE)).await.unwrap();
    assert_eq!(books(&store).await.done, PAGE + 3);
}
