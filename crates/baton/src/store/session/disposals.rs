//! Dispose numbers: one disposal, or one step of a purge, at a time.

use tokio::sync::Mutex;

use super::{Session, finishing::Finishing};
use crate::{
    message::{MessageId, Name},
    store::{Disposal, Dispose, Disposed, Operation, Purge, Purged, Refusal, StoreError},
};

/// Errors in one call: a store that runs one call at a time is to be free again within milliseconds.
const DISPOSED_AT_ONCE: usize = 1_000;

/// The last number used.
#[derive(Default)]
pub(super) struct Disposals(Mutex<u64>);

/// Disposes; a caller that goes away abandons no number.
pub(super) async fn dispose(
    session: &Session, queue: Name, ids: Vec<MessageId>, disposal: Disposal,
) -> Result<Disposed, StoreError> {
    let session = session.clone();
    Finishing::new(async move {
        let mut last = session.disposals.0.lock().await;
        let mut count = 0;
        for ids in ids.chunks(DISPOSED_AT_ONCE) {
            let (queue, ids) = (queue.clone(), ids.to_vec());
            let dispose = Dispose { session: session.id(), dispose_no: *last + 1, queue, ids, disposal };
            count += numbered(&session, &mut last, dispose).await?.count;
        }
        Ok(Disposed { count })
    })
    .await
}

/// One step of a purge, under the next number.
pub(super) async fn purge(
    session: &Session, queue: Name, upto: Option<u64>, failed: bool,
) -> Result<Purged, StoreError> {
    let session = session.clone();
    Finishing::new(async move {
        let mut last = session.disposals.0.lock().await;
        let purge = Purge { session: session.id(), dispose_no: *last + 1, queue, upto, failed };
        numbered(&session, &mut last, purge).await
    })
    .await
}

/// Makes a call under the number behind `last`, and counts it as used.
async fn numbered<O: Operation>(session: &Session, last: &mut u64, operation: O) -> Result<O::Answer, StoreError> {
    let answered = session.caller.repeat_from::<O>(&operation.request(), false).await;
    match &answered.result {
        Ok(_) => *last += 1,
        // An unanswered attempt may still execute under this number: it can stand for nothing else.
        Err(_) if answered.ambiguous => session.caller.end(Refusal::Stale.into()),
        Err(_) => {}
    }
    answered.result
}
