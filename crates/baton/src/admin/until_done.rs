//! When work is done: its sources have ended, and nothing is left in its queues.

use std::{
    collections::BTreeMap,
    mem::{Discriminant, discriminant},
    time::Duration,
};

use tokio::time::Instant;

use super::{Admin, Overview, QueueState};
use crate::{
    backoff::Backoff,
    message::Name,
    store::{Peek, Progress, ReadProgress, StoreError, TakeSurvey},
};

/// How often the books are read.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// How soon, and at last how seldom, it is asked why nothing happens: in a large fleet that costs more.
const WONDER_AFTER: Duration = Duration::from_secs(1);
const WONDER_AT_LAST: Duration = Duration::from_secs(30);
/// How far away a retry is that is worth a word.
const FAR: Duration = Duration::from_secs(60);
/// How often the same is told again.
const REMIND_EVERY: Duration = Duration::from_secs(600);

/// The most errors that are counted one by one, and how many bytes of them are read at once.
const COUNTED: u64 = 1000;
const COUNTED_BYTES: u64 = 1 << 20;

/// Why nothing happens to a queue that is not empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeldUp {
    /// It is paused.
    Paused,
    /// No live node works for it.
    Unattended,
    /// All that is left of it is tried again, the first message after this time.
    Delayed(Duration),
}

impl HeldUp {
    /// What holds a queue up, if anything does; its first delayed message is due after this time.
    fn of(queue: &QueueState, due_in: Option<Duration>) -> Option<Self> {
        if queue.paused {
            return Some(Self::Paused);
        }
        if queue.is_unattended() {
            return Some(Self::Unattended);
        }
        let waits = queue.delayed > 0 && queue.ready == 0 && queue.in_flight == 0;
        due_in.filter(|due_in| waits && *due_in >= FAR).map(Self::Delayed)
    }
}

impl Admin {
    /// Waits until nothing is left in the queues and the sources have ended, through every outage of the store; the queues
    /// that then have errors, whenever those failed, and how many; [`Admin::failed_since`] tells later ones apart. Sources that are not named are not waited for: they may
    /// never end. `held_up` is called each time a queue comes to be held up, and every ten minutes while it stays so: nothing
    /// else would tell why nothing happens.
    ///
    /// Queues may feed each other by follow-ups: all are empty at one moment, not one after the other.
    pub async fn until_done(
        &self, queues: &[Name], sources: &[Name], mut held_up: impl FnMut(&Name, HeldUp),
    ) -> Vec<(Name, u64)> {
        let mut told: BTreeMap<Name, (Discriminant<HeldUp>, Instant)> = BTreeMap::new();
        let mut last = None;
        let mut pauses = Backoff::new(WONDER_AFTER, WONDER_AT_LAST);
        let mut wonder_at = Instant::now() + pauses.pause();
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let Ok(look) = self.look(queues, sources).await else { continue };
            // Books are read one after the other. Empty in two looks with nothing pushed between, they all were empty at
            // the moment between these; a single one needs no second look.
            let is_certain = look.is_one() || last.as_ref() == Some(&look);
            if look.is_done() && is_certain {
                return look.failed();
            }
            let mut now: BTreeMap<&Name, HeldUp> = look.paused().map(|queue| (queue, HeldUp::Paused)).collect();
            let wonders = now.is_empty() && last.as_ref() == Some(&look) && Instant::now() >= wonder_at;
            if last.as_ref() != Some(&look) {
                pauses = Backoff::new(WONDER_AFTER, WONDER_AT_LAST);
                wonder_at = Instant::now() + pauses.pause();
            }
            if wonders {
                wonder_at = Instant::now() + pauses.pause();
                let Ok(survey) = self.fleet.ask(TakeSurvey).await else { continue };
                let overview = Overview::of(&survey);
                let named = |state: &QueueState| queues.iter().find(|queue| **queue == state.name);
                let held_up = |it: &QueueState| HeldUp::of(it, look.due_in(&it.name, survey.now_ms));
                now = overview.queues.iter().filter_map(|it| Some((named(it)?, held_up(it)?))).collect();
            } else if now.is_empty() {
                last = Some(look);
                continue;
            }
            told.retain(|queue, _| now.contains_key(queue));
            for (queue, why) in &now {
                let kind = discriminant(why);
                if told.get(*queue).is_none_or(|(before, at)| *before != kind || at.elapsed() >= REMIND_EVERY) {
                    held_up(queue, *why);
                    told.insert((*queue).clone(), (kind, Instant::now()));
                }
            }
            last = Some(look);
        }
    }

    /// The place of the newest error of each of these queues: what fails later has a later one. For
    /// [`Admin::failed_since`].
    ///
    /// # Errors
    /// The store's failure after the time to wait for it.
    pub async fn newest_errors(&self, queues: &[Name]) -> Result<BTreeMap<Name, u64>, StoreError> {
        let survey = self.survey().await?;
        let wanted = survey.queues.iter().filter(|books| queues.contains(&books.queue));
        Ok(wanted.map(|books| (books.queue.clone(), books.failed_seq)).collect())
    }

    /// How many messages among the errors of a queue failed after the error at `place`. Exact up to a thousand; beyond that,
    /// those that were removed or requeued since may count too.
    ///
    /// # Errors
    /// The store's failure after the time to wait for it.
    pub async fn failed_since(&self, queue: &Name, place: u64) -> Result<u64, StoreError> {
        let survey = self.survey().await?;
        let Some(books) = survey.queues.iter().find(|books| books.queue == *queue) else { return Ok(0) };
        // Places begin again with new data.
        let after = if place > books.failed_seq { 0 } else { place };
        let most = books.failed.min(books.failed_seq - after);
        if most == 0 || most == books.failed && after == 0 || most > COUNTED {
            return Ok(most);
        }
        let limit = u32::try_from(COUNTED).unwrap_or(u32::MAX);
        let (mut count, mut after) = (0, after);
        loop {
            let peek = Peek { queue: queue.clone(), after, upto: books.failed_seq, limit, max_bytes: COUNTED_BYTES };
            let errors = self.ask(peek).await?.errors;
            let Some(last) = errors.last() else { return Ok(count) };
            (count, after) = (count + errors.len() as u64, last.seq);
        }
    }

    /// Reads how far all of it is.
    async fn look(&self, queues: &[Name], sources: &[Name]) -> Result<Look, StoreError> {
        let mut look = Look(Vec::new());
        for nth in 0..queues.len().max(sources.len()) {
            // Each read may tell of one queue and one source, which need not belong together.
            let Some(queue) = queues.get(nth).or(queues.first()) else { break };
            let source = sources.get(nth);
            let progress = self.fleet.ask(ReadProgress { queue: queue.clone(), source: source.cloned() }).await?;
            look.0.push((queue.clone(), source.is_some(), progress));
        }
        Ok(look)
    }
}

/// How far the work is: for each read its queue, whether it asked for a source, and the answer.
#[derive(PartialEq, Eq)]
struct Look(Vec<(Name, bool, Progress)>);

impl Look {
    const fn is_one(&self) -> bool {
        self.0.len() == 1
    }

    fn is_done(&self) -> bool {
        self.0.iter().all(|(_, has_source, progress)| {
            let left = progress.books.as_ref();
            let left = left.map_or(0, |it| it.ready.saturating_add(it.delayed).saturating_add(it.in_flight));
            (progress.ended || !has_source) && left == 0
        })
    }

    /// After what time the first delayed message of a queue is due.
    fn due_in(&self, queue: &Name, now_ms: u64) -> Option<Duration> {
        let due = self.0.iter().find(|(of, ..)| of == queue)?.2.due_ms?;
        Some(Duration::from_millis(due.saturating_sub(now_ms)))
    }

    fn paused(&self) -> impl Iterator<Item = &Name> {
        let is_paused = |progress: &Progress| progress.books.as_ref().is_some_and(|books| books.paused);
        self.0.iter().filter(move |(.., progress)| is_paused(progress)).map(|(queue, ..)| queue)
    }

    /// The queues that have errors, each once.
    fn failed(&self) -> Vec<(Name, u64)> {
        let failed = |progress: &Progress| progress.books.as_ref().map_or(0, |books| books.failed);
        let failed: BTreeMap<&Name, u64> =
            self.0.iter().map(|(queue, _, progress)| (queue, failed(progress))).collect();
        failed.into_iter().filter(|(_, count)| *count > 0).map(|(queue, count)| (queue.clone(), count)).collect()
    }
}
