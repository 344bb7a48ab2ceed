//! The arguments and the answer of `peek.lua`.

use bytes::Bytes;

use crate::{
    message::Headers,
    store::{
        ErrorRecord, Page, Peek, StoreError,
        redis::{Arguments, Coded, Reply, parsed},
    },
};

impl Coded for Peek {
    fn fill<'r>(&self, to: Arguments<'r>) -> Arguments<'r> {
        to.text(&self.queue).text(self.after).text(self.upto).text(self.limit).text(self.max_bytes)
    }

    fn read(&self, code: &str, mut reply: Reply) -> Result<Page, StoreError> {
        match code {
            "OK" => Ok(Page { errors: reply.list()?.rest(error_record)? }),
            _ => Err(reply.refusal(code)),
        }
    }
}

/// An error as its id and its record; see `errors.lua`.
fn error_record(it: &mut Reply) -> Result<ErrorRecord, StoreError> {
    let id = it.parsed()?;
    let record = it.bytes()?;
    let damaged = || StoreError::Damaged(format!("unreadable error record of message {id}"));
    let bar = record.iter().position(|byte| *byte == b'|').ok_or_else(damaged)?;
    let head = record.get(..bar).and_then(|head| std::str::from_utf8(head).ok()).ok_or_else(damaged)?;
    let numbers: Vec<u64> = head.split(',').map(parsed).collect::<Result<_, _>>()?;
    let (numbers, headers_len) = match numbers[..] {
        [ref numbers @ .., headers_len] if numbers.len() == 7 => (numbers, headers_len),
        ref numbers => (numbers, 0),
    };
    let [seq, attempts, crashes, born, at, node_len, error_len] = *numbers else { return Err(damaged()) };
    let small = |number: u64| u32::try_from(number).map_err(|_| damaged());
    let mut from = bar + 1;
    let mut part = |len: u64| -> Result<Bytes, StoreError> {
        let past = usize::try_from(len).ok().and_then(|len| from.checked_add(len));
        let past = past.filter(|past| *past <= record.len()).ok_or_else(damaged)?;
        let part = record.slice(from..past);
        from = past;
        Ok(part)
    };
    let text = |part: Bytes| String::from_utf8(part.into()).map_err(|_| damaged());
    let (node, error) = (text(part(node_len)?)?, text(part(error_len)?)?);
    let headers = Headers::parse(&part(headers_len)?)?;
    let (attempts, crashes) = (small(attempts)?, small(crashes)?);
    Ok(ErrorRecord { seq, id, attempts, crashes, born, at, node, error, headers, body: record.slice(from..) })
}
