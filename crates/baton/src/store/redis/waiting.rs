//! Waiting for messages without polling.
//!
//! A session has one wake-up list. A blocking read on a connection of its own takes one element of it, an empty one that
//! goes before each name; the script that is sent together with the read takes the names and carries out the claims that
//! wait for these queues. So a message is on its way to the worker one round trip after its push, whichever of the
//! session's queues it is in. The read ends by itself within [`MAX_WAIT`](crate::store::MAX_WAIT). It is a `BLPOP`,
//! which a server at its maxmemory carries out too.

use std::sync::{Arc, Mutex, PoisonError};

use redis::{Pipeline, Value, aio::ConnectionLike as _};

use super::{
    RedisState,
    conn::{Connector, Link},
    reply::Reply,
    scripts::was_not_run,
};
use crate::{
    message::SessionId,
    store::{
        Claim, Look, Refusal, StoreError, Waiting, Woken,
        operation::{Given, Operation as _},
        wake_up::{self, WakeUp},
    },
};

/// How long a blocking read lasts: the server may end it a tenth of a second late.
const READ_SECONDS: f64 = 0.75;

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

impl RedisState {
    /// Waits for something on the session's list, then has the claims that wait for it carried out.
    pub(super) async fn wait(&self, session: SessionId, waiting: Arc<dyn Waiting>) -> Result<Woken, StoreError> {
        let mut link = self.waiters.take(&self.connector).await?;
        // It stands for what is asked here: a session of an earlier run of the server is over.
        if let Some(leave) = self.runs.former(&Look { session }.request(), &self.current_run(&link)) {
            self.leave_former_run(&mut link, leave).await?;
        }
        let newcomers = waiting.newcomers();
        for claim in &newcomers {
            claim.clone().request().check()?;
        }
        let woken = self.read(&mut link, session, &newcomers).await;
        if woken.is_ok() {
            self.waiters.give_back(link);
        }
        woken
    }

    async fn read(&self, link: &mut Link, session: SessionId, newcomers: &[Claim]) -> Result<Woken, StoreError> {
        let list = self.root.wakes(session);
        let mut commands = Pipeline::with_capacity(2);
        commands.cmd("BLPOP").arg(&list).arg(READ_SECONDS);
        let mut serve = self.scripts.serve.command();
        serve.arg(self.root.as_str()).arg(session.to_string());
        for Claim { queue, claim_no, n, max_bytes, .. } in newcomers {
            serve.arg(queue.as_str()).arg(claim_no).arg(n).arg(max_bytes);
        }
        commands.add_command(serve.clone());
        let replies = link.connection.req_packed_commands(&commands, 0, 2).await;
        let replies = replies.map_err(|error| self.failed(link, &error))?;
        let mut replies = replies.into_iter();
        let (read, served) = (replies.next().unwrap_or(Value::Nil), replies.next().unwrap_or(Value::Nil));
        let read = read.extract_error().map_err(|error| self.failed(link, &error))?;
        let served = match served.extract_error() {
            // A server that has forgotten the script is given it anew; the names are still on the list.
            Err(error) if was_not_run(&error) => self.scripts.serve.call(serve).run_unknown(&mut link.connection).await,
            served => served,
        };
        let mut woken = self.woken(link, Reply::new(served.map_err(|error| self.failed(link, &error))?)?).await?;
        // One that lost its empty one to a read before, whose script left it on the list.
        match popped(read) {
            Some(WakeUp::Queue(queue)) => woken.queues.push(queue),
            Some(WakeUp::Follow(number)) => woken.follows.push(number),
            None => {}
        }
        Ok(woken)
    }

    async fn woken(&self, link: &mut Link, mut reply: Reply) -> Result<Woken, StoreError> {
        let (wake_ups, served) = match reply.text()?.as_str() {
            "OK" => {
                let wake_ups: Vec<WakeUp> = reply.list()?.rest(Reply::parsed)?;
                (wake_ups, reply.list()?.rest(|it| Ok((it.parsed()?, Given::read(it)?)))?)
            }
            short if short.starts_with('+') => (Vec::new(), vec![Given::read_short(short, reply)?]),
            "STALE" => return Err(Refusal::Stale.into()),
            code => return Err(reply.refusal(code)),
        };
        let mut claimed = Vec::new();
        for (claim_no, given) in served {
            let given = given.complete(&mut link.connection).await.map_err(|error| self.failed(link, &error))?;
            claimed.push((claim_no, given?));
        }
        let (queues, follows) = wake_up::sorted(wake_ups);
        Ok(Woken { queues, claimed, follows })
    }
}

/// The name that a blocking read took, if it was one.
fn popped(reply: Value) -> Option<WakeUp> {
    let Value::Array(list_and_name) = reply else { return None };
    match list_and_name.into_iter().nth(1)? {
        Value::BulkString(name) => String::from_utf8(name).ok()?.parse().ok(),
        _ => None,
    }
}
