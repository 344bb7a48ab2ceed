//! The books of a queue as the scripts give them.

use super::reply::Reply;
use crate::{
    message::IdSum,
    store::{Books, StoreError},
};

/// The books of a queue: its name, then the counters in the order of the scripts' list.
pub(in crate::store) fn read_books(mut it: Reply) -> Result<Books, StoreError> {
    let mut books = Books::new(it.parsed()?);
    let counters: Vec<u64> = it.rest(Reply::parsed)?;
    let [
        pushed,
        ready,
        delayed,
        in_flight,
        done,
        dead,
        drained,
        requeued,
        done_sum,
        drained_sum,
        bytes,
        stale_pushes,
        stale_settles,
        dead_seq,
        paused,
    ] = counters[..]
    else {
        return Err(StoreError::Damaged(format!("the books of {} are incomplete", books.queue)));
    };
    (books.pushed, books.ready, books.delayed, books.in_flight) = (pushed, ready, delayed, in_flight);
    (books.done, books.dead, books.drained, books.requeued) = (done, dead, drained, requeued);
    (books.done_sum, books.drained_sum) = (IdSum::from_u64(done_sum), IdSum::from_u64(drained_sum));
    (books.bytes, books.stale_pushes, books.stale_settles) = (bytes, stale_pushes, stale_settles);
    (books.dead_seq, books.paused) = (dead_seq, paused == 1);
    Ok(books)
}
