//! The arguments and the answer of `claim.lua`, and the bodies of claimed messages.
//!
//! A claim gives short parcels at once and only points to long ones, which are read here by plain commands. Bodies of
//! claimed messages stay as they are until they are settled; if one is not there any more, the claim has been lost
//! meanwhile, and claiming again under the same number tells how.

use bytes::{Bytes, BytesMut};
use redis::{Pipeline, RedisError, aio::ConnectionLike as _, aio::MultiplexedConnection};

use crate::{
    message::{Name, Parcel, Span},
    store::{
        CLAIM_WINDOW, Claim, Claimed, MAX_SPANS, MOST_BURIED, Rest, StoreError,
        redis::{Arguments, Coded, Number, Reply, numbers, parsed},
    },
};

impl Coded for Claim {
    const NUMBERS: &'static [Number] = numbers![CLAIM_WINDOW, MAX_SPANS, MOST_BURIED];

    fn fill<'r>(&self, to: Arguments<'r>) -> Arguments<'r> {
        to.text(self.session).text(&self.queue).text(self.claim_no).text(self.n).text(self.max_bytes)
    }
}

/// A claim as its script gives it.
pub(in crate::store) struct Given {
    queue: Name,
    rest: Rest,
    spans: Vec<Pointer>,
}

/// A span, and what its parcel is put together from.
#[derive(Debug)]
struct Pointer {
    span: Span,
    head: Bytes,
    /// `from to key` of the bytes that follow the head; empty if the head is all.
    rest: String,
}

impl Given {
    pub(in crate::store) fn read(it: &mut Reply) -> Result<Self, StoreError> {
        let (queue, rest) = (it.parsed()?, rest(&it.text()?)?);
        Ok(Self { queue, rest, spans: it.list()?.rest(Pointer::read)? })
    }

    /// The answer by the short way, which begins with a plus, and under which number it was claimed.
    pub(in crate::store) fn read_short(head: &str, it: Reply) -> Result<(u64, Self), StoreError> {
        let mut words = head.trim_start_matches('+').splitn(3, ' ');
        let mut word = || words.next().unwrap_or_default();
        let (claim_no, queue, rest) = (parsed(word())?, parsed(word())?, rest(word())?);
        Ok((claim_no, Self { queue, rest, spans: it.rest(Pointer::read)? }))
    }

    /// The messages with their bodies, or what is wrong with them.
    pub(in crate::store) async fn complete(
        self, connection: &mut MultiplexedConnection,
    ) -> Result<Result<Claimed, StoreError>, RedisError> {
        let mut reads = Pipeline::new();
        let mut count = 0;
        for rest in self.spans.iter().map(|pointer| &pointer.rest).filter(|rest| !rest.is_empty()) {
            let mut words = rest.splitn(3, ' ');
            let (from, to, key) = (words.next(), words.next(), words.next());
            reads.cmd("GETRANGE").arg(key).arg(from).arg(to);
            count += 1;
        }
        let mut rests = Vec::new().into_iter();
        if count > 0 {
            rests = connection.req_packed_commands(&reads, 0, count).await?.into_iter();
        }
        let mut spans = Vec::with_capacity(self.spans.len());
        for Pointer { span, head, rest } in self.spans {
            let bytes = if rest.is_empty() {
                head
            } else {
                let rest = match rests.next().map(redis::Value::extract_error).transpose()? {
                    Some(redis::Value::BulkString(rest)) => Bytes::from(rest),
                    _ => Bytes::new(),
                };
                join(head, rest)
            };
            match Parcel::parse(bytes) {
                Ok(parcel) => spans.push((span, parcel)),
                Err(_) => {
                    let gone =
                        format!("the bodies of {}/{} went while they were being read", self.queue, span.range.first);
                    return Ok(Err(StoreError::Unreachable(gone)));
                }
            }
        }
        Ok(Ok(Claimed { queue: self.queue, spans, rest: self.rest }))
    }
}

impl Pointer {
    /// Reads `span|parcel`, or the three that a span without its parcel begins.
    fn read(it: &mut Reply) -> Result<Self, StoreError> {
        let mut span = it.bytes()?;
        let bar = span.iter().position(|byte| *byte == b'|');
        let parcel = bar.map(|bar| span.split_off(bar).split_off(1));
        let text = str::from_utf8(&span).map_err(|_| StoreError::Damaged("a span is not text".to_owned()))?;
        let span = parsed(text)?;
        Ok(match parcel {
            Some(head) => Self { span, head, rest: String::new() },
            None => Self { span, head: it.bytes()?, rest: it.text()? },
        })
    }
}

/// What a claim left behind: `more`, or when the next is due, or nothing.
fn rest(text: &str) -> Result<Rest, StoreError> {
    Ok(match text {
        "more" => Rest::More,
        "" => Rest::Nothing { next_due_ms: None },
        ms => Rest::Nothing { next_due_ms: Some(parsed(ms)?) },
    })
}

fn join(head: Bytes, rest: Bytes) -> Bytes {
    if head.is_empty() {
        return rest;
    }
    let mut whole = BytesMut::with_capacity(head.len() + rest.len());
    whole.extend_from_slice(&head);
    whole.extend_from_slice(&rest);
    whole.freeze()
}
