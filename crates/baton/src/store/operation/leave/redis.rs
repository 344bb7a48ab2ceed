//! Leaving as `leave.lua` does it: as many calls as it takes to give everything back, each of them bounded.

use crate::store::{
    Leave, StoreError,
    redis::{Arguments, Coded, RedisState, Reply, Steps},
};

impl Coded for Leave {
    fn fill<'r>(&self, to: Arguments<'r>) -> Arguments<'r> {
        to.text(self.session)
    }

    /// Of a single call: what it leaves, those who reap see to.
    fn read(&self, code: &str, mut reply: Reply) -> Result<(), StoreError> {
        match code {
            "OK" => Ok(()),
            _ => Err(reply.refusal(code)),
        }
    }

    fn steps<'a>(&'a self, server: &'a RedisState) -> Option<Steps<'a, ()>> {
        Some(Box::pin(leave(server, self)))
    }
}

async fn leave(shared: &RedisState, it: &Leave) -> Result<(), StoreError> {
    loop {
        let mut reply = shared.run(&shared.scripts.leave, |to| to.arg(it.session.to_string())).await?;
        match reply.text()?.as_str() {
            "OK" if reply.text()?.is_empty() => return Ok(()),
            "OK" => {}
            code => return Err(reply.refusal(code)),
        }
    }
}
