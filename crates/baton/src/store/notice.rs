//! A value that many tasks wait for. They wake in the order in which they began to wait, so that what follows from a
//! change does not depend on a draw: a watch channel spreads its waiters by chance.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// A value, and those who wait for it to change.
#[derive(Debug, Default)]
pub(crate) struct Notice<T> {
    value: Mutex<T>,
    changed: Notify,
}

impl<T: Clone> Notice<T> {
    /// The value now.
    pub(crate) fn get(&self) -> T {
        self.value().clone()
    }

    /// Changes the value; whoever waits looks at it again if `change` says that it did.
    pub(crate) fn change(&self, change: impl FnOnce(&mut T) -> bool) {
        let changed = change(&mut self.value());
        if changed {
            self.changed.notify_waiters();
        }
    }

    /// Sets the value.
    pub(crate) fn set(&self, value: T) {
        self.change(|old| {
            *old = value;
            true
        });
    }

    /// Returns the value once it is as wanted.
    pub(crate) async fn until(&self, wanted: impl Fn(&T) -> bool) -> T {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // From here on no change is missed.
            changed.as_mut().enable();
            let value = Some(self.value()).filter(|value| wanted(value)).map(|value| value.clone());
            match value {
                Some(value) => return value,
                None => changed.await,
            }
        }
    }

    fn value(&self) -> MutexGuard<'_, T> {
        self.value.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[tokio::test]
    async fn those_who_wait_wake_in_order_and_miss_nothing() {
        let notice = Arc::new(Notice::default());
        let woken = Arc::new(Mutex::new(Vec::new()));
        let waiting = (0..20).map(|nth| {
            let (notice, woken) = (notice.clone(), woken.clone());
            tokio::spawn(async move {
                let value = notice.until(|value| *value > 1).await;
                woken.lock().unwrap().push((nth, value));
            })
        });
        let waiting: Vec<_> = waiting.collect();
        tokio::task::yield_now().await;
        notice.set(1);
        notice.change(|_| false);
        tokio::task::yield_now().await;
        assert_eq!(woken.lock().unwrap().len(), 0);
        notice.set(2);
        for each in waiting {
            each.await.unwrap();
        }
        assert_eq!(*woken.lock().unwrap(), (0..20).map(|nth| (nth, 2)).collect::<Vec<_>>());
        assert_eq!(notice.until(|value| *value == 2).await, notice.get());
    }
}
