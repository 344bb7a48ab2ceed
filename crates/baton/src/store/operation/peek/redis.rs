//! The arguments and the answer of `peek.lua`.

use crate::store::{
    DeadMessage, Page, Peek, StoreError,
    redis::{Arguments, Coded, Reply, parsed},
};

impl Coded for Peek {
    fn fill<'r>(&self, to: Arguments<'r>) -> Arguments<'r> {
        to.text(&self.queue).text(self.after).text(self.upto).text(self.limit).text(self.max_bytes)
    }

    fn read(&self, code: &str, mut reply: Reply) -> Result<Page, StoreError> {
        match code {
            "OK" => Ok(Page { errors: reply.list()?.rest(dead_message)? }),
            _ => Err(reply.refusal(code)),
        }
    }
}

/// An error as its id and its record `seq,attempts,losses,born,at,length of node,length of error|node error body`.
fn dead_message(it: &mut Reply) -> Result<DeadMessage, StoreError> {
    let id = it.parsed()?;
    let record = it.bytes()?;
    let damaged = || StoreError::Damaged(format!("unreadable error record of message {id}"));
    let bar = record.iter().position(|byte| *byte == b'|').ok_or_else(damaged)?;
    let head = record.get(..bar).and_then(|head| std::str::from_utf8(head).ok()).ok_or_else(damaged)?;
    let numbers: Vec<u64> = head.split(',').map(parsed).collect::<Result<_, _>>()?;
    let [seq, attempts, losses, born, at, node_len, error_len] = numbers[..] else { return Err(damaged()) };
    let small = |number: u64| u32::try_from(number).map_err(|_| damaged());
    let mut from = bar + 1;
    let mut text = |len: u64| -> Option<String> {
        let past = from.checked_add(usize::try_from(len).ok()?)?;
        let text = String::from_utf8(record.get(from..past)?.to_vec()).ok()?;
        from = past;
        Some(text)
    };
    let node = text(node_len).ok_or_else(damaged)?;
    let error = text(error_len).ok_or_else(damaged)?;
    let (attempts, losses) = (small(attempts)?, small(losses)?);
    Ok(DeadMessage { seq, id, attempts, losses, born, at, node, error, body: record.slice(from..) })
}
