//! The logs of a process, and the one task that hears the store's wake-ups for them.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use tokio::{runtime::Handle, sync::Notify, task::JoinHandle};

use super::log::Log;
use crate::{
    fleet::Fleet,
    message::CallId,
    store::{Claim, Refusal, StoreError},
};

/// How long a wait for wake-ups that failed is not repeated.
const AFTER_A_FAILURE: Duration = Duration::from_millis(100);

/// The logs of a fleet in this process, by call.
#[derive(Default)]
pub(in crate::fleet) struct Follows(Mutex<Logs>);

#[derive(Default)]
struct Logs {
    by_call: BTreeMap<CallId, Weak<Log>>,
    by_number: BTreeMap<u64, Weak<Log>>,
    signals: BTreeMap<u64, Weak<Notify>>,
    last_number: u64,
    listener: Option<JoinHandle<()>>,
}

impl Logs {
    /// Begins to hear wake-ups, unless somebody does.
    fn listen(&mut self, fleet: &Fleet) {
        if self.listener.as_ref().is_none_or(JoinHandle::is_finished)
            && let Ok(runtime) = Handle::try_current()
        {
            self.listener = Some(runtime.spawn(listen(fleet.clone())));
        }
    }
}

impl Follows {
    fn logs(&self) -> MutexGuard<'_, Logs> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A signal that is woken by its number; the listener hears it as long as there is one.
    pub(in crate::fleet) fn hang_up(&self, fleet: &Fleet) -> (u64, Arc<Notify>) {
        let mut logs = self.logs();
        logs.listen(fleet);
        logs.last_number += 1;
        let (number, sound) = (logs.last_number, Arc::new(Notify::new()));
        logs.signals.insert(number, Arc::downgrade(&sound));
        (number, sound)
    }

    pub(in crate::fleet) fn take_down(&self, number: u64) {
        self.logs().signals.remove(&number);
    }

    /// Stops hearing wake-ups, until something is followed or waited for anew, or read on.
    pub(in crate::fleet) async fn rest(&self) {
        let listener = self.logs().listener.take();
        if let Some(listener) = listener {
            listener.abort();
            // How it ended is known.
            listener.await.ok();
        }
    }

    /// Hears wake-ups again, if it has stopped.
    pub(super) fn hear(&self, fleet: &Fleet) {
        self.logs().listen(fleet);
    }

    /// The log of a call, which lasts as long as somebody follows it.
    pub(super) fn log(&self, fleet: &Fleet, call: &CallId) -> Arc<Log> {
        let mut logs = self.logs();
        logs.listen(fleet);
        if let Some(log) = logs.by_call.get(call).and_then(Weak::upgrade) {
            return log;
        }
        logs.last_number += 1;
        let log = Arc::new(Log::new(fleet, call, logs.last_number));
        logs.by_call.insert(call.clone(), Arc::downgrade(&log));
        logs.by_number.insert(log.number, Arc::downgrade(&log));
        log
    }

    /// The log under this number is gone.
    pub(super) fn forget(&self, call: &CallId, number: u64) {
        let mut logs = self.logs();
        logs.by_number.remove(&number);
        if logs.by_call.get(call).is_some_and(|log| log.strong_count() == 0) {
            logs.by_call.remove(call);
        }
    }

    /// Number 0 is for all signals: something was forgotten, or a session that computed is gone.
    fn wake(&self, number: u64) {
        let logs = self.logs();
        let signals = logs.signals.iter().filter(|(its, _)| number == 0 || **its == number);
        signals.filter_map(|(_, sound)| sound.upgrade()).for_each(|sound| sound.notify_one());
        let log = logs.by_number.get(&number).and_then(Weak::upgrade);
        drop(logs);
        if let Some(log) = log {
            log.signal.notify_one();
        }
    }

    fn wake_all(&self) {
        let logs: Vec<_> = self.logs().by_number.values().filter_map(Weak::upgrade).collect();
        logs.iter().for_each(|log| log.signal.notify_one());
        self.wake(0);
    }

    /// Whether nothing is followed: then there is no listener any more.
    fn retires(&self) -> bool {
        let mut logs = self.logs();
        let retires = logs.by_number.is_empty() && logs.signals.is_empty();
        if retires {
            logs.listener = None;
        }
        retires
    }
}

/// Hears the wake-ups of the fleet's visitor as long as anything is followed.
async fn listen(fleet: Fleet) {
    while !fleet.follows.retires() {
        let session = match fleet.session().await {
            Ok(session) => session,
            Err(_) => {
                tokio::time::sleep(AFTER_A_FAILURE).await;
                continue;
            }
        };
        let woken = tokio::select! {
            biased;
            () = session.over() => Err(StoreError::Refused(Refusal::Stale)),
            woken = fleet.store.wait(session.id(), Arc::new(Vec::<Claim>::new())) => woken,
        };
        match woken {
            Ok(woken) => woken.follows.into_iter().for_each(|number| fleet.follows.wake(number)),
            Err(error) => {
                // What was on the list may be lost; with another session all begin to follow anew.
                fleet.follows.wake_all();
                if error != StoreError::Refused(Refusal::Stale) {
                    tokio::time::sleep(AFTER_A_FAILURE).await;
                }
            }
        }
    }
}
