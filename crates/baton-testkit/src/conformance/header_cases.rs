//! Headers: whatever is done to messages, each keeps its own, known or not.

use baton::store::{
    Claim, Disposal,
    message::{Body, Fields, Headers, LAST_ERROR, Outcome, Parcel, ParcelBuilder},
};

use super::scene::{Scene, dead, queue, range, ranges, run, spans, submission};

/// Tags of a release to come.
const SHARED: u8 = 77;
const OWN: u8 = 201;

fn field(tag: u8, value: &str) -> Fields {
    Fields::default().with(tag, Some(value.as_bytes())).unwrap()
}

/// Message `nth` of [`headed`]: every second has a header of its own.
fn headers(nth: u32) -> Headers {
    let own = if nth.is_multiple_of(2) { field(OWN, &nth.to_string()) } else { Fields::default() };
    Headers { shared: field(SHARED, "all"), own }
}

/// A parcel with headers, its bodies `0`, `1`, `2` … padded to this length.
fn headed(count: u32, length: usize) -> Parcel {
    let mut builder = ParcelBuilder::default().shared(field(SHARED, "all"));
    for nth in 0..count {
        builder.add_with(&headers(nth).own, Body::new(format!("{nth:<length$}").as_bytes()).unwrap()).unwrap();
    }
    builder.finish().unwrap()
}

fn body_number(body: &[u8]) -> u32 {
    std::str::from_utf8(body).unwrap().trim_end().parse().unwrap()
}

/// In whole and in part, short and long, retried, dead and requeued.
pub async fn headers_travel_with_their_messages(scene: &mut Scene) {
    let node = scene.node().await;
    for length in [1, 400] {
        let first = scene.books().await.pushed + 1;
        let parcel = headed(30, length);
        let submit = scene.a_submit(node, vec![submission(parcel.clone())]);
        scene.ask(submit).await.unwrap();
        assert_eq!(scene.books().await.bytes, parcel.bytes().len() as u64);
        // By messages, by bytes, and the rest at once.
        let (one, some) = (scene.claim(node, 7).await, Claim { max_bytes: 2_000, ..scene.a_claim(node, 20) });
        let (some_no, some) = (some.claim_no, spans(scene.ask(some).await.unwrap()));
        let rest = scene.claim(node, 99).await;
        assert!(some[0].1.weight() <= 2_000 && !rest.1.is_empty());
        let mut seen = Vec::new();
        for (span, parcel) in one.1.iter().chain(&some).chain(&rest.1) {
            for (nth, body) in (0..).zip(parcel.bodies()) {
                let number = body_number(&body);
                assert_eq!(parcel.headers(nth), headers(number));
                seen.push((span.range.first + u64::from(nth), number));
            }
        }
        assert_eq!(seen, (0..30).map(|nth| (first + u64::from(nth), nth)).collect::<Vec<_>>());
        scene.balanced().await;

        let retry = Outcome::Retry { after_ms: 0, error: "again".to_owned() };
        scene.settle(node, vec![run(one.0, range(first, 2), retry), run(one.0, range(first + 2, 5), dead("no"))]).await;
        for (claim_no, given) in [(some_no, &some), (rest.0, &rest.1)] {
            scene
                .settle(node, ranges(given).into_iter().map(|range| run(claim_no, range, Outcome::DONE)).collect())
                .await;
        }
        let (claim_no, retried) = scene.claim(node, 2).await;
        for (nth, (_, parcel)) in (0..).zip(&retried) {
            let given = parcel.headers(0);
            assert_eq!((given.last_error().as_deref(), &given.shared), (Some("again"), &headers(nth).shared));
            assert_eq!(given.get(OWN), headers(nth).own.get(OWN));
        }
        scene
            .settle(node, ranges(&retried).into_iter().map(|range| run(claim_no, range, Outcome::DONE)).collect())
            .await;
        let errors = scene.peek(0, 99).await;
        assert!(errors.iter().all(|it| it.headers == headers(body_number(&it.body))), "{errors:?}");
        let ids: Vec<u64> = errors.iter().map(|it| it.id.0).collect();
        scene.drain(node).await;
        let requeue = scene.a_dispose(node, &ids, Disposal::Requeue);
        assert_eq!(scene.ask(requeue).await.unwrap().count, 5);
        let (claim_no, again) = scene.claim(node, 99).await;
        assert!(again.iter().all(|(_, parcel)| parcel.headers(0) == headers(body_number(&parcel.body(0).unwrap()))));
        scene.settle(node, ranges(&again).into_iter().map(|range| run(claim_no, range, Outcome::DONE)).collect()).await;
        assert_eq!(scene.books().await.bytes, 0);
    }
}

/// The text of the last attempt, and no other; a message that never had one stays as it was.
pub async fn the_last_error_stays_with_a_retried_message(scene: &mut Scene) {
    let node = scene.node().await;
    scene.fill(node, 1).await;
    let plain = scene.books().await.bytes;
    let long = "x".repeat(1_024);
    for (error, told) in
        [("", None), ("first", Some("first")), (&long, Some(&*long)), ("", None), ("last", Some("last"))]
    {
        scene.finish(node, 1, Outcome::Retry { after_ms: 0, error: error.to_owned() }).await;
        let (claim_no, given) = scene.claim(node, 1).await;
        let headers = given[0].1.headers(0);
        assert_eq!((headers.last_error().as_deref(), given[0].1.body(0).unwrap()), (told, "0".into()));
        assert_eq!(headers.get(LAST_ERROR).is_some(), told.is_some());
        let books = scene.books().await;
        assert_eq!(books.bytes, given[0].1.bytes().len() as u64);
        assert_eq!(books.bytes == plain, told.is_none());
        scene.settle(node, vec![run(claim_no, range(1, 1), Outcome::Back)]).await;
    }
    let (claim_no, _) = scene.claim(node, 1).await;
    scene.settle(node, vec![run(claim_no, range(1, 1), dead("for good"))]).await;
    let errors = scene.peek(0, 9).await;
    assert_eq!((errors[0].error.as_str(), errors[0].headers.last_error().as_deref()), ("for good", Some("last")));
    assert_eq!((errors[0].id.0, scene.books().await.queue), (1, queue()));
}
