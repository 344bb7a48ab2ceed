//! The deep recount: one read-only step while the data is small, otherwise pages under a hold.
//!
//! Under a hold no message moves: calls that would move one are answered [`Refusal::Held`] and repeated by the
//! library, while beats go on. The hold ends by itself a second after its last page, so that a recounting process
//! that dies holds nobody for long. Of a hold that was lost in between (the process was stopped) nothing
//! counts, since messages may have moved between two of its pages: the recount begins again, and gives up in the end.
//!
//! [`Refusal::Held`]: crate::store::Refusal::Held

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use crate::{
    message::{IdSum, Name, SessionId},
    store::{
        Counted, Lacking, QueueRecount, Recount, Recounted, StoreError,
        redis::{Coded, Number, RedisState, Reply, Steps, numbers, read_books},
    },
};

/// How long a hold lasts after its last page.
const HOLD_MS: u64 = 1_000;
/// How long none begins after one has ended, so that those who waited get their turn: they ask oftener than that.
const REST_MS: u64 = 250;
/// How often it is begun.
const ATTEMPTS: u32 = 5;
const LOST_HOLD: &str = "the recount was given up: its hold on the store ended while it was counting; run it again";
/// Descriptors in a page: up to three microseconds each.
const PAGE: u64 = 2_000;
/// Sessions whose claims are counted in one page at most, claims of one that has many, and queues.
const SESSIONS: usize = 16;
const CLAIMS: usize = 1_000;
const QUEUES: usize = 100;
/// About how many queues are told of a hold in one step.
const MARKED: usize = 250;

/// What is claimed, by queue.
type InFlight = BTreeMap<Name, (Counted, Lacking)>;

impl Coded for Recount {
    const NUMBERS: &'static [Number] = numbers![REST_MS];

    fn steps<'a>(&'a self, server: &'a RedisState) -> Option<Steps<'a, Recounted>> {
        Some(Box::pin(recount(server, self)))
    }
}

/// Counts everything.
async fn recount(shared: &RedisState, it: &Recount) -> Result<Recounted, StoreError> {
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
    let (ready, delayed, in_flight, failed) = (found()?, found()?, found()?, found()?);
    Ok(QueueRecount { books, ready, delayed, in_flight, failed, lacking })
}

/// The five numbers of one kind: messages, their sum, the bytes they count for, how many lack their bodies, the lowest of
/// these or 0.
fn found(it: &mut Reply, lacking: &mut Lacking) -> Result<Counted, StoreError> {
    let found = Counted { count: it.parsed()?, sum: IdSum::from_u64(it.parsed()?), bytes: it.parsed()? };
    let (count, lowest) = (it.parsed()?, it.parsed::<u64>()?);
    lacking.add(count, Some(lowest).filter(|_| count > 0));
    Ok(found)
}

/// Adds a page of what is claimed.
fn add_claimed(to: &mut InFlight, mut page: Reply) -> Result<(), StoreError> {
    page.list()?.rest(|it| {
        let (all, lacking) = to.entry(it.parsed()?).or_default();
        let some = found(it, lacking)?;
        all.join(some);
        Ok(())
    })?;
    Ok(())
}

/// Counts under a hold; again if that was lost, since whoever counts may have been kept from it by a busy machine.
async fn in_pages(shared: &RedisState, max_hold: Duration) -> Result<Recounted, StoreError> {
    for _ in 1..ATTEMPTS {
        match under_hold(shared, max_hold).await {
            Err(StoreError::Unfit(why)) if why == LOST_HOLD => {}
            counted => return counted,
        }
    }
    under_hold(shared, max_hold).await
}

async fn under_hold(shared: &RedisState, max_hold: Duration) -> Result<Recounted, StoreError> {
    let mut hold = Hold { shared, id: SessionId::random(), since: Instant::now(), max_hold };
    hold.say("begin", &[]).await?;
    hold.since = Instant::now();
    let counted = hold.count_all().await;
    // A hold that cannot be released ends by itself.
    let released = hold.say("release", &[]).await;
    let queues = counted?;
    released?;
    let held_ms = u64::try_from(hold.since.elapsed().as_millis()).unwrap_or(u64::MAX);
    Ok(Recounted { queues, held_ms })
}

/// A store held still.
struct Hold<'a> {
    shared: &'a RedisState,
    /// Tells this hold from another's.
    id: SessionId,
    since: Instant,
    max_hold: Duration,
}

impl Hold<'_> {
    async fn say(&self, what: &str, queues: &[String]) -> Result<(), StoreError> {
        let script = &self.shared.scripts.hold;
        let id = self.id.to_string();
        loop {
            let mut reply = self.shared.run(script, |to| to.arg(what).arg(&id).arg(HOLD_MS).arg(queues)).await?;
            match reply.text()?.as_str() {
                "OK" => return Ok(()),
                "REST" => tokio::time::sleep(Duration::from_millis(reply.parsed()?)).await,
                "LOST" => return Err(StoreError::Unfit(LOST_HOLD.to_owned())),
                code => return Err(reply.refusal(code)),
            }
        }
    }

    /// Before each page: the hold must still be in force, and not have lasted too long.
    async fn go_on(&self) -> Result<(), StoreError> {
        self.extend(&[]).await
    }

    /// The same, and lets queues know of the hold.
    async fn extend(&self, queues: &[String]) -> Result<(), StoreError> {
        if self.since.elapsed() >= self.max_hold {
            return Err(StoreError::Unfit(format!(
                "the recount was given up after holding the store for {} ms: allow it longer, or run it at a quieter \
                 time",
                self.max_hold.as_millis()
            )));
        }
        self.say("extend", queues).await
    }

    /// Marks all queues as held, a page after the other; their names. From here on messages stand still.
    async fn take_hold(&self) -> Result<Vec<String>, StoreError> {
        let (mut names, mut place) = (BTreeSet::new(), "0".to_owned());
        loop {
            let (next, page) = self.plan(&["queues", &place, &MARKED.to_string()]).await?;
            self.extend(&page).await?;
            names.extend(page);
            if next == "0" {
                return Ok(names.into_iter().collect());
            }
            place = next;
        }
    }

    async fn count_all(&self) -> Result<Vec<QueueRecount>, StoreError> {
        let names = self.take_hold().await?;
        let (_, sessions) = self.plan(&["sessions"]).await?;
        let mut in_flight = self.sessions(&sessions).await?;
        let (mut queues, mut left) = (Vec::with_capacity(names.len()), &names[..]);
        while !left.is_empty() {
            let some = left.get(..QUEUES).unwrap_or(left);
            let (passed, mut page) = self.page("queues", None, some).await?;
            left = left.get(passed..).unwrap_or_default();
            while !page.is_done() {
                let mut it = page.list()?;
                let books = read_books(it.list()?)?;
                let (in_flight, mut lacking) = in_flight.remove(&books.queue).unwrap_or_default();
                let (ready, delayed, failed) = if it.is_done() {
                    self.large_queue(&books.queue, &mut lacking).await?
                } else {
                    let mut found = || found(&mut it, &mut lacking);
                    (found()?, found()?, found()?)
                };
                queues.push(QueueRecount { books, ready, delayed, in_flight, failed, lacking });
            }
        }
        queues.sort_unstable_by(|a, b| a.books.queue.cmp(&b.books.queue));
        // The last page counts only if nothing could move before it was read.
        self.go_on().await?;
        Ok(queues)
    }

    /// Where to go on, and the names of a page.
    async fn plan(&self, what: &[&str]) -> Result<(String, Vec<String>), StoreError> {
        let mut plan = self.shared.run(&self.shared.scripts.recount_plan, |to| to.arg(what)).await?;
        plan.text()?;
        Ok((plan.text()?, plan.list()?.rest(Reply::text)?))
    }

    /// How many of these were counted in one page, and what was found.
    async fn page(&self, kind: &str, of: Option<&str>, names: &[String]) -> Result<(usize, Reply), StoreError> {
        self.go_on().await?;
        let script = &self.shared.scripts.recount_page;
        let size = self.page_size();
        let mut page = self.shared.run(script, |to| to.arg(kind).arg(size).arg(of).arg(names)).await?;
        page.text()?;
        Ok((page.parsed()?, page))
    }

    /// What sessions have claimed, by queue. One with many claims is counted in several pages.
    async fn sessions(&self, sessions: &[String]) -> Result<InFlight, StoreError> {
        let (mut in_flight, mut left) = (InFlight::new(), sessions);
        while let Some(first) = left.first() {
            let some = left.get(..SESSIONS).unwrap_or(left);
            let (passed, page) = self.page("sessions", None, some).await?;
            add_claimed(&mut in_flight, page)?;
            if passed == 0 {
                let (_, claims) = self.plan(&["claims", first]).await?;
                let mut claims = &claims[..];
                while !claims.is_empty() {
                    let some = claims.get(..CLAIMS).unwrap_or(claims);
                    let (passed, page) = self.page("claims", Some(first), some).await?;
                    add_claimed(&mut in_flight, page)?;
                    claims = claims.get(passed.max(1)..).unwrap_or_default();
                }
            }
            left = left.get(passed.max(1)..).unwrap_or_default();
        }
        Ok(in_flight)
    }

    /// What a queue keeps, page by page: ready, delayed, failed.
    async fn large_queue(
        &self, queue: &Name, lacking: &mut Lacking,
    ) -> Result<(Counted, Counted, Counted), StoreError> {
        let mut ready = self.pages("ready", queue, lacking).await?;
        let suspects = self.pages("suspects", queue, lacking).await?;
        ready.join(suspects);
        let delayed = self.pages("delayed", queue, lacking).await?;
        Ok((ready, delayed, self.pages("failed", queue, lacking).await?))
    }

    /// The most descriptors in a page.
    fn page_size(&self) -> u64 {
        self.shared.options.recount_at_once.clamp(1, PAGE)
    }

    async fn pages(&self, kind: &str, queue: &Name, lacking: &mut Lacking) -> Result<Counted, StoreError> {
        let mut all = Counted::default();
        let mut from = 0;
        loop {
            self.go_on().await?;
            let script = &self.shared.scripts.recount_page;
            let page_size = self.page_size();
            let mut page =
                self.shared.run(script, |to| to.arg(kind).arg(queue.as_str()).arg(from).arg(page_size)).await?;
            page.text()?;
            let seen: u64 = page.parsed()?;
            let some = found(&mut page, lacking)?;
            all.join(some);
            from += seen;
            if seen < page_size {
                return Ok(all);
            }
        }
    }
}
