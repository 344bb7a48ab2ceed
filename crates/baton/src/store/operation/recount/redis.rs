//! The deep recount: one read-only step while the data is small, otherwise pages under a hold.
//!
//! Under a hold no message moves: calls that would move one are answered [`Refusal::Held`] and repeated by the
//! library, while beats go on. The hold ends by itself a second after its last page, so that a recounting process
//! that dies holds nobody for long. A hold that was lost in between (the process was stopped) ends the recount with
//! an error: messages may have moved between two of its pages.
//!
//! [`Refusal::Held`]: crate::store::Refusal::Held

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use crate::{
    message::{IdSum, Name, SessionId},
    store::{
        Books, Found, Lacking, QueueRecount, Recount, Recounted, StoreError,
        redis::{Coded, Reply, Shared, Steps, read_books},
    },
};

/// How long a hold lasts after its last page.
const HOLD_MS: u64 = 1_000;
/// Descriptors in a page: about half a microsecond each.
const PAGE: u64 = 5_000;
/// Sessions whose claims are counted in one page.
const SESSIONS: usize = 16;

impl Coded for Recount {
    fn steps<'a>(&'a self, server: &'a Shared) -> Option<Steps<'a, Recounted>> {
        Some(Box::pin(recount(server, self)))
    }
}

/// Counts everything.
async fn recount(shared: &Shared, it: &Recount) -> Result<Recounted, StoreError> {
    let script = &shared.scripts.recount;
    let mut reply = shared.run(script, |to| to.arg(shared.options.recount_at_once)).await?;
    match reply.text()?.as_str() {
        "OK" => {
            let mut queues = reply.list()?.rest(|it| queue_recount(it.list()?))?;
            queues.sort_unstable_by(|a, b| a.books.queue.cmp(&b.books.queue));
            Ok(Recounted { queues, held_ms: 0 })
        }
        "LARGE" => in_pages(shared, Duration::from_millis(it.max_hold_ms)).await,
        code => Err(reply.refusal(code)),
    }
}

fn queue_recount(mut it: Reply) -> Result<QueueRecount, StoreError> {
    let books = read_books(it.list()?)?;
    let mut lacking = Lacking::default();
    let mut found = || found(&mut it, &mut lacking);
    let (ready, delayed, in_flight, dead) = (found()?, found()?, found()?, found()?);
    Ok(QueueRecount { books, ready, delayed, in_flight, dead, lacking })
}

/// The four numbers of one kind: messages, their sum, how many lack their bodies, the lowest of these or 0.
fn found(it: &mut Reply, lacking: &mut Lacking) -> Result<Found, StoreError> {
    let found = Found { count: it.parsed()?, sum: IdSum::from_u64(it.parsed()?) };
    let (count, lowest) = (it.parsed()?, it.parsed::<u64>()?);
    lacking.add(count, Some(lowest).filter(|_| count > 0));
    Ok(found)
}

async fn in_pages(shared: &Shared, max_hold: Duration) -> Result<Recounted, StoreError> {
    let mut hold = Hold { shared, id: SessionId::random(), since: Instant::now(), max_hold };
    hold.say("begin").await?;
    hold.since = Instant::now();
    let counted = hold.count_all().await;
    // A hold that cannot be released ends by itself.
    let released = hold.say("release").await;
    let queues = counted?;
    released?;
    let held_ms = u64::try_from(hold.since.elapsed().as_millis()).unwrap_or(u64::MAX);
    Ok(Recounted { queues, held_ms })
}

/// A store held still.
struct Hold<'a> {
    shared: &'a Shared,
    /// Tells this hold from another's.
    id: SessionId,
    since: Instant,
    max_hold: Duration,
}

impl Hold<'_> {
    async fn say(&self, what: &str) -> Result<(), StoreError> {
        let script = &self.shared.scripts.hold;
        let mut reply = self.shared.run(script, |to| to.arg(what).arg(self.id.to_string()).arg(HOLD_MS)).await?;
        match reply.text()?.as_str() {
            "OK" => Ok(()),
            "LOST" => Err(StoreError::Unfit(
                "the recount was given up: its hold on the store ended while it was counting; run it again".to_owned(),
            )),
            code => Err(reply.refusal(code)),
        }
    }

    /// Before each page: the hold must still be in force, and not have lasted too long.
    async fn go_on(&self) -> Result<(), StoreError> {
        if self.since.elapsed() >= self.max_hold {
            return Err(StoreError::Unfit(format!(
                "the recount was given up after holding the store for {} ms: allow it longer, or run it at a quieter \
                 time",
                self.max_hold.as_millis()
            )));
        }
        self.say("extend").await
    }

    async fn count_all(&self) -> Result<Vec<QueueRecount>, StoreError> {
        let mut plan = self.shared.run(&self.shared.scripts.recount_plan, |to| to).await?;
        plan.text()?;
        let mut books: Vec<Books> = plan.list()?.rest(|it| read_books(it.list()?))?;
        books.sort_unstable_by(|a, b| a.queue.cmp(&b.queue));
        let sessions: Vec<String> = plan.list()?.rest(Reply::text)?;
        let mut in_flight = self.claims(&sessions).await?;
        let mut queues = Vec::with_capacity(books.len());
        for books in books {
            let (in_flight, mut lacking) = in_flight.remove(&books.queue).unwrap_or_default();
            let mut ready = self.pages("ready", &books.queue, &mut lacking).await?;
            let suspects = self.pages("suspects", &books.queue, &mut lacking).await?;
            ready.add(suspects.count, suspects.sum);
            let delayed = self.pages("delayed", &books.queue, &mut lacking).await?;
            let dead = self.pages("dead", &books.queue, &mut lacking).await?;
            queues.push(QueueRecount { books, ready, delayed, in_flight, dead, lacking });
        }
        // The last page counts only if nothing could move before it was read.
        self.go_on().await?;
        Ok(queues)
    }

    async fn claims(&self, sessions: &[String]) -> Result<BTreeMap<Name, (Found, Lacking)>, StoreError> {
        let mut by_queue: BTreeMap<Name, (Found, Lacking)> = BTreeMap::new();
        for some in sessions.chunks(SESSIONS) {
            self.go_on().await?;
            let script = &self.shared.scripts.recount_page;
            let mut page = self.shared.run(script, |to| to.arg("claims").arg(some)).await?;
            page.text()?;
            page.list()?.rest(|it| {
                let (all, lacking) = by_queue.entry(it.parsed()?).or_default();
                let some = found(it, lacking)?;
                all.add(some.count, some.sum);
                Ok(())
            })?;
        }
        Ok(by_queue)
    }

    async fn pages(&self, kind: &str, queue: &Name, lacking: &mut Lacking) -> Result<Found, StoreError> {
        let mut all = Found::default();
        let mut from = 0;
        loop {
            self.go_on().await?;
            let script = &self.shared.scripts.recount_page;
            let page_size = self.shared.options.recount_at_once.clamp(1, PAGE);
            let mut page =
                self.shared.run(script, |to| to.arg(kind).arg(queue.as_str()).arg(from).arg(page_size)).await?;
            page.text()?;
            let seen: u64 = page.parsed()?;
            let some = found(&mut page, lacking)?;
            all.add(some.count, some.sum);
            from += seen;
            if seen < page_size {
                return Ok(all);
            }
        }
    }
}
