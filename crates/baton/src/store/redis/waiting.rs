//! Waiting for messages without polling.
//!
//! A session has one wake-up list, read by a blocking read on a connection of its own. A claim that goes along is sent
//! together with the read: the server carries it out as soon as it has something, so that a message is on its way to
//! the worker one round trip after its push. The read ends by itself within [`MAX_WAIT`](crate::store::MAX_WAIT); to
//! end it earlier, something is put on the list, which also ends a read that the server has not come to yet.

use std::sync::{Mutex, PoisonError};

use redis::{Pipeline, Value, aio::ConnectionLike as _};

use super::{
    Shared, coding,
    conn::{Connector, Link},
    scripts::is_unknown,
};
use crate::{
    message::{Name, SessionId},
    store::{Answer, Claim, Operation as _, Request, StoreError, Woken},
};

/// How long a blocking read lasts: the server may end it a tenth of a second late.
const READ_SECONDS: f64 = 0.75;
/// The most names taken from a list at once.
const NAMES: usize = 256;
/// How long a list lasts that nobody reads after it was poked: the session may be over, and nobody would remove it.
const POKED_MS: u64 = 10_000;

/// The connections for blocking reads that nobody uses at the moment. There are never more than waited at once.
#[derive(Default)]
pub(super) struct Waiters(Mutex<Vec<Link>>);

impl Waiters {
    /// One of them, or a new one.
    async fn take(&self, connector: &Connector) -> Result<Link, StoreError> {
        let rested = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        match rested {
            Some(link) => Ok(link),
            None => connector.connect_for_waiting().await,
        }
    }

    fn give_back(&self, link: Link) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(link);
    }
}

impl Shared {
    /// Waits for something on the session's list, then carries out the claim.
    pub(super) async fn wait(&self, session: SessionId, claim: Option<Claim>) -> Result<Woken, StoreError> {
        let mut link = self.waiters.take(&self.connector).await?;
        let claim = claim.map(Claim::request);
        if let Some(claim) = &claim {
            claim.check()?;
            self.leave_former_run(&mut link, claim).await?;
        }
        let woken = self.read(&mut link, session, claim.as_ref()).await;
        if woken.is_ok() {
            self.waiters.give_back(link);
        }
        woken
    }

    async fn read(&self, link: &mut Link, session: SessionId, claim: Option<&Request>) -> Result<Woken, StoreError> {
        let list = self.root.wakes(session);
        let mut commands = Pipeline::with_capacity(2);
        commands.cmd("BLMPOP").arg(READ_SECONDS).arg(1).arg(&list).arg("LEFT").arg("COUNT").arg(NAMES);
        let call = claim.map(|claim| coding::command(&self.scripts, &self.root, claim));
        if let Some((_, command)) = &call {
            commands.add_command(command.clone());
        }
        let replies = link.connection.req_packed_commands(&commands, 0, 1 + usize::from(call.is_some())).await;
        let replies = replies.map_err(|error| self.failed(link, &error))?;
        let mut replies = replies.into_iter();
        let (read, after) = (replies.next().unwrap_or(Value::Nil), replies.next().unwrap_or(Value::Nil));
        let read = read.extract_error().map_err(|error| self.failed(link, &error))?;
        let queues = names(read);
        let (Some((script, command)), Some(claim)) = (call, claim) else {
            return Ok(Woken { queues, claimed: None });
        };
        let value = match after.extract_error() {
            Ok(value) => Ok(value),
            // A server that has forgotten the script is given it anew; what was read is not read again.
            Err(error) if is_unknown(&error) => script.call(command).run(&mut link.connection).await,
            Err(error) => Err(error),
        };
        let answered = match value.map_err(|error| self.failed(link, &error)) {
            Ok(value) => self.answered(link, claim, value).await,
            Err(error) => Err(error),
        };
        let claimed = match answered {
            Ok(Answer::Claim(claimed)) => Ok(claimed),
            Ok(_) => Err(StoreError::Damaged("the store answered another question".to_owned())),
            Err(error) => Err(error),
        };
        Ok(Woken { queues, claimed: Some(claimed) })
    }

    /// Ends the session's wait, or its next one.
    pub(super) async fn poke(&self, session: SessionId) -> Result<(), StoreError> {
        let mut link = self.link().await?;
        let list = self.root.wakes(session);
        let mut commands = Pipeline::with_capacity(2);
        commands.cmd("RPUSH").arg(&list).arg("");
        commands.cmd("PEXPIRE").arg(&list).arg(POKED_MS);
        let poked = link.connection.req_packed_commands(&commands, 0, 2).await;
        poked.map(drop).map_err(|error| self.failed(&link, &error))
    }
}

/// The names that were popped; what is no name was a poke.
fn names(reply: Value) -> Vec<Name> {
    let Value::Array(list_and_names) = reply else { return Vec::new() };
    let Some(Value::Array(names)) = list_and_names.into_iter().nth(1) else { return Vec::new() };
    let text = |value: Value| match value {
        Value::BulkString(bytes) => String::from_utf8(bytes).ok(),
        _ => None,
    };
    names.into_iter().filter_map(text).filter_map(|name| name.parse().ok()).collect()
}
