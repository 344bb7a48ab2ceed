//! A handler tried on its own.

use std::sync::Arc;

use tokio::{runtime::Handle, time::Instant};

use super::executor::Executor;
use crate::{
    fleet::{handler::Handler, node::Worked, observer::Nobody, policy::QueuePolicy},
    message::{Name, Parcel, Run, Span},
    store::session::Environment,
};

/// What a worker of the queue would report of these messages, with ids from 1 on and a claim a parcel: a handler
/// without a fleet and without a store.
///
/// It is for what has its own [`Handler`]: to see what becomes of whole parcels, or how long a million messages take. A
/// function as [`Node::handler`](crate::Node::handler) takes it is tried best in a
/// [`TestFleet`](crate::testing::TestFleet).
///
/// ```
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// use baton::{Context, Done, Failure, Handler, Message, Name, QueuePolicy, testing::trial};
/// use baton::store::message::{Body, Outcome, ParcelBuilder};
///
/// struct Short;
///
/// impl Handler for Short {
///     fn handle(&self, message: Message, _: Context) -> impl Future<Output = Result<Done, Failure>> + Send + 'static {
///         let fits = message.body.len() <= 4;
///         async move { if fits { Ok(Done::default()) } else { Err(Failure::fatal("too long")) } }
///     }
/// }
///
/// let mut parcel = ParcelBuilder::default();
/// for body in ["1", "\"far too long\"", "3"] {
///     parcel.add(Body::new(body.as_bytes())?)?;
/// }
/// let parcels = parcel.finish().into_iter().collect();
/// let runs = trial(Name::new("messages")?, QueuePolicy::default(), Short, parcels).await;
/// let dead = runs.iter().find(|run| matches!(&run.outcome, Outcome::Failed { error } if error == "too long"));
/// assert_eq!(dead.unwrap().range.first, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
///
/// # Panics
/// Outside of a tokio runtime.
pub async fn trial(queue: Name, policy: QueuePolicy, handler: impl Handler, parcels: Vec<Parcel>) -> Vec<Run> {
    worked_off(queue, policy, handler, parcels).await.buffer().take_outbox()
}

/// An executor that has run them all.
async fn worked_off(queue: Name, policy: QueuePolicy, handler: impl Handler, parcels: Vec<Parcel>) -> Arc<Executor> {
    let worked = Worked::new(queue, Arc::new(handler), policy);
    let executor =
        Executor::new(worked, Environment::system(), Arc::default(), Arc::new(Nobody), Handle::current(), None);
    let mut first = 1;
    for (claim_no, parcel) in (1..).zip(parcels) {
        let span = Span::fresh(first, parcel.len(), 0);
        first += u64::from(parcel.len());
        executor.buffer().add(claim_no, vec![(span, parcel)], Instant::now());
    }
    while executor.buffer().have() > 0 {
        executor.start_slots();
        executor.permits.called().await;
    }
    executor
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        Context, Done, Failure, Message,
        builtin::Noop,
        message::{Body, Outcome, ParcelBuilder, Range},
    };

    fn parcel(count: u32) -> Parcel {
        let mut builder = ParcelBuilder::default();
        (0..count).for_each(|nth| builder.add(Body::new(nth.to_string().as_bytes()).unwrap()).unwrap());
        builder.finish().unwrap()
    }

    /// Odd ids are ready at once, even ones take a while; multiples of five fail, of seven panic.
    struct Mixed;

    impl Handler for Mixed {
        fn handle(&self, message: Message, _: Context) -> impl Future<Output = Result<Done, Failure>> + Send + 'static {
            let multiple_of = move |of: u64| message.id.0.is_multiple_of(of);
            async move {
                if multiple_of(2) {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                assert!(!multiple_of(7), "seven");
                if multiple_of(5) { Err(Failure::fatal("five")) } else { Ok(Done::default()) }
            }
        }
    }

    #[tokio::test]
    async fn ready_handlers_are_reported_as_one_run_a_claim() {
        let queue = Name::new("q").unwrap();
        let runs = trial(queue, QueuePolicy::default(), Noop, vec![parcel(1_000), parcel(3)]).await;
        let told: Vec<_> = runs.iter().map(|run| (run.claim_no, run.range, &run.outcome)).collect();
        let (first, second) = (Range { first: 1, len: 1_000 }, Range { first: 1_001, len: 3 });
        assert_eq!(told, [(1, first, &Outcome::DONE), (2, second, &Outcome::DONE)]);
    }

    /// Ready at once, after a wait in its thread.
    struct NeverReady;

    impl Handler for NeverReady {
        fn handle(&self, _: Message, context: Context) -> impl Future<Output = Result<Done, Failure>> + Send + 'static {
            context.waits_in_thread();
            async { Ok(Done::default()) }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn handlers_that_wait_in_their_thread_are_not_run_inline() {
        let (queue, policy) = (Name::new("q").unwrap(), QueuePolicy { concurrency: 2, ..QueuePolicy::default() });
        let quick = worked_off(queue.clone(), policy.clone(), Noop, vec![parcel(3_000)]).await;
        assert!(quick.buffer().is_inline());
        let waiting = worked_off(queue, policy, NeverReady, vec![parcel(3_000)]).await;
        assert!(!waiting.buffer().is_inline(), "one would wait at a time");
    }

    #[tokio::test(start_paused = true)]
    async fn every_message_is_reported_once_whatever_its_handler_does() {
        let policy = QueuePolicy { concurrency: 3, ..QueuePolicy::default() };
        let runs = trial(Name::new("q").unwrap(), policy, Mixed, vec![parcel(100), parcel(40)]).await;
        let mut ids = Vec::new();
        for run in &runs {
            for id in run.range.first..run.range.end() {
                let failed = matches!(&run.outcome, Outcome::Failed { error } if error.contains("ve"));
                assert_eq!(failed, id.is_multiple_of(5) || id.is_multiple_of(7), "{id} {:?}", run.outcome);
                assert_eq!(run.claim_no, if id <= 100 { 1 } else { 2 });
                ids.push(id);
            }
        }
        ids.sort_unstable();
        assert_eq!(ids, (1..=140).collect::<Vec<_>>());
    }

    #[tokio::test(start_paused = true)]
    async fn a_handler_past_its_timeout_has_failed() {
        let policy = QueuePolicy { timeout: Some(Duration::from_millis(1)), ..QueuePolicy::default() };
        let runs = trial(Name::new("q").unwrap(), policy, Mixed, vec![parcel(2)]).await;
        let late = |run: &Run| matches!(&run.outcome, Outcome::Failed { error } if error.contains("timeout"));
        assert_eq!(runs.iter().map(late).collect::<Vec<_>>(), [false, true]);
    }
}
