//! The events of a call as this process has read them: what cursors go over, and how more is read.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{runtime::Handle, sync::Notify};

use super::{
    FollowError,
    chunk::{Chunk, Stretch},
};
use crate::{
    fleet::Fleet,
    message::CallId,
    store::{FollowCall, ReadEvents, Refusal, StoreError, UnfollowCall},
};

/// Bytes read from the store at once.
const PAGE_BYTES: u64 = 256 << 10;
/// Bytes that a log holds for cursors behind its end.
const LOG_BYTES: usize = 1 << 20;
/// After this time a log is read again without a wake-up.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// Where a cursor stands towards a log.
pub(super) enum Place {
    At(Chunk),
    /// The log does not reach there yet.
    Ahead,
    /// The log does not hold that any more.
    Behind,
    /// The last event is before it.
    Over,
}

/// The events of a call as this process has read them.
pub(super) struct Log {
    pub(super) fleet: Fleet,
    pub(super) call: CallId,
    pub(super) number: u64,
    read: Mutex<Read>,
    /// Whose turn it is to read on.
    pub(super) turn: tokio::sync::Mutex<()>,
    /// Woken when there is more in the store.
    pub(super) signal: Notify,
}

#[derive(Default)]
struct Read {
    /// Whether it is known where it begins.
    is_begun: bool,
    stretches: VecDeque<Arc<Stretch>>,
    bytes: usize,
    /// The numbers of the first event held and of the one behind the last.
    first: u64,
    next: u64,
    is_over: bool,
}

impl Log {
    /// One that has read nothing yet; the store wakes it by the number.
    pub(super) fn new(fleet: &Fleet, call: &CallId, number: u64) -> Self {
        Self {
            fleet: fleet.clone(),
            call: call.clone(),
            number,
            read: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
            signal: Notify::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, Read> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first one begins the log where it stands; the others find themselves before or behind that.
    pub(super) fn begin_at(&self, position: u64) {
        let mut read = self.state();
        if !read.is_begun {
            (read.is_begun, read.first, read.next) = (true, position, position);
        }
    }

    pub(super) fn at(&self, position: u64) -> Place {
        let read = self.state();
        if position < read.first {
            return Place::Behind;
        }
        if position >= read.next {
            return if read.is_over { Place::Over } else { Place::Ahead };
        }
        let at = read.stretches.partition_point(|stretch| stretch.past() <= position);
        match read.stretches.get(at) {
            Some(stretch) => {
                let skip = usize::try_from(position - stretch.from).unwrap_or(usize::MAX);
                Place::At(Chunk { stretch: Arc::clone(stretch), skip })
            }
            None => Place::Behind,
        }
    }

    /// Reads what is behind the end of the log, or waits until there may be something.
    pub(super) async fn read_on(&self) -> Result<(), FollowError> {
        let from = self.state().next;
        self.fleet.follows.hear(&self.fleet);
        let session = self.fleet.session().await?;
        let follow = FollowCall {
            session: session.id(),
            call: self.call.clone(),
            from,
            number: self.number,
            max_bytes: PAGE_BYTES,
        };
        let page = match session.ask(follow).await {
            Ok(page) => page,
            // The next one joins anew.
            Err(StoreError::Refused(Refusal::Stale)) => return Ok(()),
            Err(StoreError::Refused(Refusal::EventsGone { first })) => {
                let mut read = self.state();
                (read.first, read.next, read.bytes) = (first, first, 0);
                read.stretches.clear();
                return Ok(());
            }
            Err(error) => return Err(self.failed(error)),
        };
        if page.events.is_empty() && !page.ended {
            tokio::time::timeout(LOOK_AGAIN, self.signal.notified()).await.ok();
            return Ok(());
        }
        let mut read = self.state();
        read.is_over = page.ended && page.from + page.events.len() as u64 >= page.next;
        if !page.events.is_empty() {
            let stretch = Stretch::of(&page)?;
            (read.next, read.bytes) = (stretch.past(), read.bytes + stretch.bytes);
            read.stretches.push_back(Arc::new(stretch));
        }
        while read.bytes > LOG_BYTES
            && read.stretches.len() > 1
            && let Some(oldest) = read.stretches.pop_front()
        {
            (read.bytes, read.first) = (read.bytes - oldest.bytes, oldest.past());
        }
        Ok(())
    }

    /// Reads what the log does not hold any more; nothing if there is nothing from there on, nor will be.
    pub(super) async fn read_behind(&self, from: u64) -> Result<Option<Stretch>, FollowError> {
        let page = self.fleet.ask(ReadEvents { call: self.call.clone(), from, max_bytes: PAGE_BYTES }).await;
        let page = page.map_err(|error| self.failed(error))?;
        Ok(if page.events.is_empty() { None } else { Some(Stretch::of(&page)?) })
    }

    pub(super) fn failed(&self, error: StoreError) -> FollowError {
        match error {
            StoreError::Refused(Refusal::OtherCall) => FollowError::Other(self.call.clone()),
            StoreError::Refused(Refusal::NoCall) => FollowError::Unknown(self.call.clone()),
            StoreError::Refused(Refusal::EventsGone { first }) => FollowError::Gone { call: self.call.clone(), first },
            error => FollowError::Store(error),
        }
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.fleet.follows.forget(&self.call, self.number);
        let is_over = self.read.get_mut().unwrap_or_else(PoisonError::into_inner).is_over;
        let Ok(runtime) = Handle::try_current() else { return };
        if is_over {
            return;
        }
        let (fleet, call, number) = (self.fleet.clone(), self.call.clone(), self.number);
        runtime.spawn(async move {
            // If it is lost, the session follows until it ends.
            if let Some(session) = fleet.joined().await {
                session.ask(UnfollowCall { session: session.id(), call, number }).await.ok();
            }
        });
    }
}
