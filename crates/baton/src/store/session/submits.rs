//! Handing messages in: what waits while calls are under way goes together.

use std::{
    future::poll_fn,
    pin::{Pin, pin},
    sync::{Arc, Mutex, PoisonError},
    task::Poll,
    time::Duration,
};

use tokio::sync::{mpsc, oneshot};

use super::{
    caller::Caller,
    packing::{Packed, Packing},
};
use crate::{
    message::{SessionId, Submission},
    store::{
        MAX_LOTS, MoveBookmark, Operation as _, Refusal, Request, SUBMIT_WINDOW, StoreError, SubmissionVerdict, Submit,
        Submitted,
    },
};

/// How many submits are under way at once; each is a group of all that waited.
const UNDER_WAY: usize = 4;
/// Parcel bytes after which a group is sent although more waits.
const GROUP_BYTES: usize = 8 << 20;
/// What a submission that begins a call costs, in submissions that do not: a store that runs one call at a time is to be free again within
/// milliseconds.
const A_CALL: usize = 4;
/// How long a group that came too early waits for the one before it.
const OVERTAKEN_PAUSE: Duration = Duration::from_millis(1);

/// Submissions that got no verdict.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{}", why(.error), if *.maybe_stored { "; whether the messages were stored is not known: push with a key to be sure" } else { "" })]
pub struct SubmitError {
    /// What went wrong.
    pub error: StoreError,
    /// Whether the submissions may have been stored all the same.
    pub maybe_stored: bool,
}

/// What went wrong in the words of one that pushes, which knows of no lease.
fn why(error: &StoreError) -> String {
    match error {
        StoreError::Refused(Refusal::Stale) => "the store lost sight of this process, or was restarted".to_owned(),
        error => error.to_string(),
    }
}

/// Submissions on their way, and who waits for the verdicts.
pub(super) struct Item {
    submissions: Unsent,
    /// Few have one, and all are moved from hand to hand.
    bookmark: Option<Box<MoveBookmark>>,
    reply: Reply,
}

/// Submissions that are not sent yet.
enum Unsent {
    /// They are sent, however long that takes and whoever waits for it.
    Given(Vec<Submission>),
    /// They are sent while their caller waits, if there is room in the store. None are left of one that has gone.
    Lent(Arc<Mutex<Vec<Submission>>>),
}

impl Unsent {
    const fn is_lent(&self) -> bool {
        matches!(self, Self::Lent(_))
    }

    fn take(&mut self) -> Vec<Submission> {
        self.with(std::mem::take)
    }

    /// What they cost, in submissions without a call, and their bytes.
    fn weigh(&mut self) -> (usize, usize) {
        self.with(|submissions| {
            (
                submissions.iter().map(weight).sum(),
                submissions.iter().map(|submission| submission.parcel.bytes().len()).sum(),
            )
        })
    }

    fn with<R>(&mut self, look: impl FnOnce(&mut Vec<Submission>) -> R) -> R {
        match self {
            Self::Given(submissions) => look(submissions),
            Self::Lent(submissions) => look(&mut submissions.lock().unwrap_or_else(PoisonError::into_inner)),
        }
    }
}

/// Takes back what was lent and is not sent yet when its caller goes.
struct Lender(Unsent);

impl Drop for Lender {
    fn drop(&mut self) {
        drop(self.0.take());
    }
}

/// What a submission costs the store: a call has a record.
fn weight(submission: &Submission) -> usize {
    if submission.call.is_some() { A_CALL } else { 1 }
}

/// How much there may be in the fleet before submissions are refused.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub(super) max_queue_bytes: u64,
    pub(super) max_keys: u64,
}

type Verdicts = Result<Vec<SubmissionVerdict>, SubmitError>;

/// Who waits for the verdicts. Dropped before it has answered, it says that the submissions are not stored, unless they were sent.
struct Reply {
    verdicts: Option<oneshot::Sender<Verdicts>>,
    is_sent: bool,
}

impl Reply {
    fn answer(mut self, verdicts: Verdicts) {
        if let Some(waiting) = self.verdicts.take() {
            // One that has gone wants no answer.
            waiting.send(verdicts).ok();
        }
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        if let Some(waiting) = self.verdicts.take().filter(|_| !self.is_sent) {
            waiting.send(Err(unsent())).ok();
        }
    }
}

/// The session was over before the submissions were sent.
fn unsent() -> SubmitError {
    SubmitError { error: Refusal::Stale.into(), maybe_stored: false }
}

/// Puts submissions on their way and waits for the verdicts.
pub(super) async fn hand_in(
    caller: &Caller, items: &mpsc::Sender<Item>, submissions: Vec<Submission>, bookmark: Option<MoveBookmark>,
) -> Verdicts {
    well_formed(&submissions)?;
    pass_on(caller, items, Unsent::Given(submissions), bookmark).await
}

/// As [`hand_in`], if there is room in the store, and while the caller waits.
pub(super) async fn hand_in_if_room(
    caller: &Caller, items: &mpsc::Sender<Item>, submissions: Vec<Submission>,
) -> Verdicts {
    well_formed(&submissions)?;
    let submissions = Arc::new(Mutex::new(submissions));
    let _lender = Lender(Unsent::Lent(Arc::clone(&submissions)));
    pass_on(caller, items, Unsent::Lent(submissions), None).await
}

fn well_formed(submissions: &[Submission]) -> Result<(), SubmitError> {
    let well_formed = submissions.iter().all(|submission| submission.key.is_none() || submission.parcel.len() == 1);
    if !submissions.is_empty() && submissions.len() <= MAX_LOTS && well_formed {
        return Ok(());
    }
    let error = Refusal::Malformed("a submit takes 1 to 1024 submissions, a keyed one holds one message").into();
    Err(SubmitError { error, maybe_stored: false })
}

async fn pass_on(
    caller: &Caller, items: &mpsc::Sender<Item>, submissions: Unsent, bookmark: Option<MoveBookmark>,
) -> Verdicts {
    let (verdicts, answer) = oneshot::channel();
    let reply = Reply { verdicts: Some(verdicts), is_sent: false };
    // One that comes too late is answered as it is dropped.
    items.send(Item { submissions, bookmark: bookmark.map(Box::new), reply }).await.ok();
    match answer.await {
        Ok(Err(unsent)) if unsent == self::unsent() => {
            // The task that sends breaks off a moment before its session is over. Whoever joins again waits for that.
            caller.ended().await;
            Err(unsent)
        }
        Ok(verdicts) => verdicts,
        Err(_) => Err(SubmitError { error: caller.ended().await, maybe_stored: true }),
    }
}

/// Sends groups in the order of their numbers until the session is over.
pub(super) async fn run(caller: Caller, mut items: mpsc::Receiver<Item>, bounds: Bounds) {
    let (mut under_way, mut ended) = (UnderWay(Vec::new()), pin!(caller.ended()));
    let mut troubles = caller.troubles();
    // The last number given.
    let mut submit_no = 0;
    let mut waiting: Option<Item> = None;
    loop {
        if !under_way.0.is_empty()
            && let Some(error) = no_room(&caller)
            && let Some(item) = waiting.take_if(|item| item.submissions.is_lent())
        {
            item.reply.answer(Err(SubmitError { error, maybe_stored: false }));
            continue;
        }
        // A refused bookmark leaves its number unused, so it goes alone: nothing follows before it is answered.
        let alone = waiting.as_ref().is_some_and(|item| item.bookmark.is_some());
        // The answer of one that is being repeated must still be kept then.
        let is_kept = under_way.oldest().is_none_or(|oldest| submit_no + 1 < oldest + SUBMIT_WINDOW);
        let room = if alone { under_way.0.is_empty() } else { under_way.0.len() < UNDER_WAY && is_kept };
        if let Some(first) = waiting.take_if(|_| room) {
            let mut group = vec![first];
            if !alone {
                waiting = gather(&mut group, &mut items);
            }
            let Some(group) = Group::new(caller.id(), submit_no + 1, group, bounds) else { continue };
            if alone {
                submit_no += u64::from(send(&caller, group).await);
            } else {
                submit_no += 1;
                under_way.0.push((submit_no, Box::pin(send(&caller, group))));
            }
            continue;
        }
        tokio::select! {
            biased;
            _ = &mut ended, if under_way.0.is_empty() => break,
            Some(_) = under_way.next() => {}
            // Whoever wants no more than room may have to be told that there is none.
            Ok(()) = troubles.changed(), if waiting.as_ref().is_some_and(|item| item.submissions.is_lent()) => {}
            item = items.recv(), if waiting.is_none() => match item {
                Some(item) => waiting = Some(item),
                None if under_way.0.is_empty() => return,
                None => while under_way.next().await.is_some() {},
            },
        }
    }
    items.close();
    while let Some(item) = match waiting.take() {
        Some(item) => Some(item),
        None => items.recv().await,
    } {
        item.reply.answer(Err(unsent()));
    }
}

/// Calls under way, by their numbers. They are few, so each is looked at whenever one of them may have been answered.
struct UnderWay<F>(Vec<(u64, Pin<Box<F>>)>);

impl<F: Future> UnderWay<F> {
    /// The least number: they are given in turn.
    fn oldest(&self) -> Option<u64> {
        self.0.first().map(|(number, _)| *number)
    }

    /// The next answer; nothing if no call is under way.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    async fn next(&mut self) -> Option<F::Output> {
        poll_fn(|context| {
            let answered =
                self.0.iter_mut().enumerate().find_map(|(at, (_, call))| match call.as_mut().poll(context) {
                    Poll::Ready(answer) => Some((at, answer)),
                    Poll::Pending => None,
                });
            match answered {
                Some((at, answer)) => {
                    drop(self.0.remove(at));
                    Poll::Ready(Some(answer))
                }
                None if self.0.is_empty() => Poll::Ready(None),
                None => Poll::Pending,
            }
        })
        .await
    }
}

/// Items that travel under one number.
struct Group {
    submit_no: u64,
    with_bookmark: bool,
    /// Whether nobody in it waits for room.
    if_room: bool,
    bounds: Bounds,
    request: Request,
    packed: Packed,
    /// How many of the submissions handed in belong to whom.
    replies: Vec<(usize, Reply)>,
}

impl Group {
    /// Nothing if all who brought something have gone.
    fn new(session: SessionId, submit_no: u64, items: Vec<Item>, bounds: Bounds) -> Option<Box<Self>> {
        let (mut bookmark, mut replies) = (None, Vec::with_capacity(items.len()));
        let (mut submissions, mut if_room) = (Vec::new(), true);
        for mut item in items {
            let mut brought = item.submissions.take();
            if brought.is_empty() {
                continue;
            }
            if_room &= item.submissions.is_lent();
            replies.push((brought.len(), item.reply));
            if submissions.is_empty() {
                submissions = brought;
            } else {
                submissions.append(&mut brought);
            }
            bookmark = bookmark.or(item.bookmark);
        }
        if submissions.is_empty() {
            return None;
        }
        let (submissions, packed) =
            if submissions.len() == 1 { Packing::one(submissions) } else { Packing::of(submissions) };
        let (with_bookmark, bookmark) = (bookmark.is_some(), bookmark.map(|bookmark| *bookmark));
        let Bounds { max_queue_bytes, max_keys } = bounds;
        let request = Submit { session, submit_no, submissions, bookmark, max_queue_bytes, max_keys }.request();
        Some(Box::new(Self { submit_no, with_bookmark, if_room, bounds, request, packed, replies }))
    }
}

/// Sends a group until it is answered and passes the verdicts on; whether its number was used.
async fn send(caller: &Caller, mut group: Box<Group>) -> bool {
    let mut ambiguous = false;
    group.replies.iter_mut().for_each(|(_, reply)| reply.is_sent = true);
    let result = loop {
        let answered = caller.repeat_from::<Submit>(&group.request, group.if_room).await;
        ambiguous |= answered.ambiguous;
        match answered.result {
            // It overtook the one before it: that one is on its way, or being repeated.
            Err(StoreError::Refused(Refusal::OutOfTurn { last })) if last + 1 < group.submit_no => {
                Box::pin(tokio::time::sleep(OVERTAKEN_PAUSE)).await;
            }
            Err(error @ StoreError::NoRoom(_)) => {
                // What was unanswered before may have been carried out: the same is sent until that is known.
                if !ambiguous {
                    group.answer(&Err(SubmitError { error, maybe_stored: false }));
                    group.request = group.nothing(caller.id());
                }
                group.if_room = false;
            }
            result => break result,
        }
    };
    let refused = result.is_err();
    if refused && (ambiguous || !group.with_bookmark) {
        // Later numbers wait for this one, or an unanswered attempt may still execute under it: either way the
        // number can stand for nothing else.
        caller.end(Refusal::Stale.into());
    }
    group.answer(&result.map_err(|error| SubmitError { error, maybe_stored: ambiguous }));
    !refused
}

impl Group {
    /// Tells everybody their verdicts, once.
    fn answer(&mut self, result: &Result<Submitted, SubmitError>) {
        let mut member = 0;
        for (count, reply) in self.replies.drain(..) {
            let share = match result {
                Ok(Submitted { submissions }) => {
                    let verdicts = (member..member + count).map(|member| self.packed.verdict(member, submissions));
                    verdicts.collect::<Option<_>>().ok_or_else(no_verdict)
                }
                Err(error) => Err(error.clone()),
            };
            member += count;
            reply.answer(share);
        }
    }

    /// What takes the place of submissions that were refused: later numbers wait for this one, which so stands for nothing.
    fn nothing(&self, session: SessionId) -> Request {
        let Bounds { max_queue_bytes, max_keys } = self.bounds;
        let (submit_no, submissions) = (self.submit_no, Vec::new());
        Submit { session, submit_no, submissions, bookmark: None, max_queue_bytes, max_keys }.request()
    }
}

/// The store has answered, but not for all submissions.
fn no_verdict() -> SubmitError {
    let error = StoreError::Damaged("the store gave no verdict on a submission".to_owned());
    SubmitError { error, maybe_stored: true }
}

/// Why nothing new is stored now, if that is for want of room.
fn no_room(caller: &Caller) -> Option<StoreError> {
    caller.trouble().filter(|trouble| matches!(trouble, StoreError::NoRoom(_)))
}

/// Adds what waits to a group while it fits; what came out and did not fit.
fn gather(group: &mut Vec<Item>, items: &mut mpsc::Receiver<Item>) -> Option<Item> {
    let (mut submissions, mut bytes) = group.iter_mut().map(|item| item.submissions.weigh()).fold((0, 0), plus);
    while bytes < GROUP_BYTES {
        let mut item = items.try_recv().ok()?;
        (submissions, bytes) = plus((submissions, bytes), item.submissions.weigh());
        if item.bookmark.is_some() || submissions > MAX_LOTS {
            return Some(item);
        }
        group.push(item);
    }
    None
}

const fn plus((submissions, bytes): (usize, usize), (more, their_bytes): (usize, usize)) -> (usize, usize) {
    (submissions + more, bytes + their_bytes)
}
