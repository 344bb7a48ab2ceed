//! The state machine: random operations by several sessions and sources, with faults, on the model and on a real
//! store; every answer and the books are compared after each step.
//!
//! A step is six small numbers; what they mean depends on what has happened so far (see [`script`]), so that most
//! requests make sense and some do not. Old requests come back from the past, as copies that a network held up.

mod cache;
mod calls;
mod draw;
mod known_session;
mod script;

use std::{cell::RefCell, collections::BTreeMap, fmt::Write as _};

use baton::{
    CallId,
    store::{Answer, CallView, EventPage, ReadCall, ReadEvents, Recount, Request, Store, StoreError, TakeSurvey, ask},
};
use proptest::{
    collection::vec,
    prelude::*,
    test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner},
};

use self::script::Script;
use crate::{
    faults::{Fault, FaultyStore},
    subject::Subject,
};

/// How often each kind of answer was given.
pub type Seen = BTreeMap<String, u64>;

/// One step before it is given a meaning.
pub type Step = [u16; 6];

/// Runs `operations` random operations in sequences of up to 200 against stores made by `subject`.
///
/// # Panics
/// At the first difference, with the seed and the shortest sequence that shows it.
pub fn run<F: Future<Output = Subject>>(name: &str, seed: u64, operations: u32, subject: impl Fn() -> F) -> Seen {
    const LENGTH: u32 = 200;
    println!("state machine on {name}: BATON_SEED={seed} BATON_OPS={operations}");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let config = Config {
        cases: operations.div_ceil(LENGTH),
        failure_persistence: None,
        max_shrink_iters: 400,
        ..Config::default()
    };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
    let steps = vec(any::<Step>(), LENGTH as usize);
    let seen = RefCell::new(Seen::new());
    let result = runner.run(&steps, |steps| {
        let mut seen = seen.borrow_mut();
        runtime.block_on(async { compare(&mut Subject::memory(), &mut subject().await, &steps, &mut seen).await })
    });
    match result {
        Ok(()) => seen.into_inner(),
        Err(TestError::Fail(why, steps)) => {
            panic!("{name} differs from the model (BATON_SEED={seed}):\n{why}\nsteps: {steps:?}")
        }
        Err(TestError::Abort(why)) => panic!("{name}: gave up (BATON_SEED={seed}): {why}"),
    }
}

/// The seed and the number of operations from `BATON_SEED` and `BATON_OPS`, or these.
#[must_use]
pub fn settings(seed: u64, operations: u32) -> (u64, u32) {
    let number = |name| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let random = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64;
    let seed = number("BATON_SEED").unwrap_or_else(|| if seed == 0 { random() } else { seed });
    (seed, number("BATON_OPS").map_or(operations, |ops| u32::try_from(ops).unwrap_or(u32::MAX)))
}

/// Carries out the same steps on the model and on a store.
///
/// # Errors
/// The first difference, with the requests that led to it.
pub async fn compare(
    model: &mut Subject, real: &mut Subject, steps: &[Step], seen: &mut Seen,
) -> Result<(), TestCaseError> {
    let faulty = [FaultyStore::new(model.store.clone()), FaultyStore::new(real.store.clone())];
    let mut script = Script::new();
    for step in steps {
        let pause = [0, 0, 0, 1, 90, 170, 350, 900][step[5] as usize / 16 % 8];
        model.pass(pause).await;
        real.pass(pause).await;
        let request = match script.request(step, model.now()) {
            script::Move::Time(ms) => {
                model.set_time(ms).await;
                real.set_time(ms).await;
                continue;
            }
            script::Move::Call(request) => request,
        };
        let fault = match step[5] % 16 {
            0 => Fault::DropReply,
            1 => Fault::Repeat,
            2 => Fault::FailBefore,
            _ => Fault::None,
        };
        for _ in 0..2 {
            let [want, got] = both(&faulty, fault, &request).await;
            if want != got {
                return Err(difference(&script, &request, &want, &got));
            }
            *seen.entry(label(&want)).or_default() += 1;
            let unanswered = matches!(want, Err(StoreError::Unreachable(_)));
            if !unanswered {
                script.learn(&request, want);
                break;
            }
            // As a caller does: the same again until there is an answer.
            faulty.iter().for_each(|store| store.order(Fault::None));
        }
        if let Some(call) = script.call(step) {
            let [want, got] = [told(&*model.store, &call).await, told(&*real.store, &call).await];
            if want != got {
                return Err(difference(&script, &request, &want, &got));
            }
        }
        let [want, got] = [books(&*model.store).await, books(&*real.store).await];
        if want != got {
            return Err(difference(&script, &request, &want, &got));
        }
        if let Some(why) = unbalanced(&got) {
            return Err(difference(&script, &request, &"balanced books", &why));
        }
    }
    Ok(())
}

async fn both(faulty: &[FaultyStore; 2], fault: Fault, request: &Request) -> [Result<Answer, StoreError>; 2] {
    let [model, real] = faulty;
    model.order(fault);
    real.order(fault);
    [model.call(request.clone()).await.map(comparable), real.call(request.clone()).await.map(comparable)]
}

/// An answer without what differs from one store to the next by right.
fn comparable(mut answer: Answer) -> Answer {
    if let Answer::Join(joined) = &mut answer {
        joined.incarnation.clear();
    }
    answer
}

/// The kind of an answer: `Claim(Some`, `Refused(Stale`.
fn label(answer: &Result<Answer, StoreError>) -> String {
    let text = match answer {
        Ok(Answer::Claim(claimed)) => if claimed.spans.is_empty() { "Claim(Empty" } else { "Claim(Some" }.to_owned(),
        Ok(answer) => format!("{answer:?}"),
        Err(error) => format!("{error:?}"),
    };
    text.split([' ', '{', ')']).next().unwrap_or_default().to_owned()
}

/// How a call stands, and what it has told.
async fn told(store: &dyn Store, call: &CallId) -> (Option<CallView>, Result<EventPage, StoreError>) {
    let view = ask(store, ReadCall { call: call.clone() }).await.unwrap_or_default();
    let from = view.as_ref().map_or(1, |view| view.first);
    (view, ask(store, ReadEvents { call: call.clone(), from, max_bytes: 1 << 30 }).await)
}

async fn books(store: &dyn Store) -> Result<(baton::store::Survey, baton::store::Recounted), StoreError> {
    Ok((ask(store, TakeSurvey).await?, ask(store, Recount { max_hold_ms: 10_000 }).await?))
}

fn unbalanced(books: &Result<(baton::store::Survey, baton::store::Recounted), StoreError>) -> Option<String> {
    match books {
        Err(error) => Some(format!("the books cannot be read: {error}")),
        Ok((_, recounted)) => {
            let off = recounted.queues.iter().find(|queue| !queue.balance() || queue.bytes() != queue.books.bytes);
            off.map(|queue| format!("unbalanced: {queue:?}"))
        }
    }
}

fn difference(
    script: &Script, request: &Request, want: &dyn std::fmt::Debug, got: &dyn std::fmt::Debug,
) -> TestCaseError {
    let mut text = String::new();
    for past in script.history().iter().rev().take(30).rev() {
        writeln!(text, "  {past:?}").unwrap();
    }
    writeln!(text, "at {request:?}\n  model: {want:?}\n  store: {got:?}").unwrap();
    TestCaseError::fail(text)
}
