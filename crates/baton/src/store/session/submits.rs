//! Handing messages in: what waits while calls are under way goes together.

use std::{
    future::poll_fn,
    pin::{Pin, pin},
    task::Poll,
    time::Duration,
};

use tokio::sync::{mpsc, oneshot};

use super::{
    caller::Caller,
    packing::{Packed, Packing},
};
use crate::{
    message::{Lot, SessionId},
    store::{
        LotVerdict, MAX_LOTS, MoveBookmark, Operation as _, Refusal, Request, SUBMIT_WINDOW, StoreError, Submit,
        Submitted,
    },
};

/// How many submits are under way at once; each is a group of all that waited.
const UNDER_WAY: usize = 4;
/// Parcel bytes after which a group is sent although more waits.
const GROUP_BYTES: usize = 8 << 20;
/// How long a group that came too early waits for the one before it.
const OVERTAKEN_PAUSE: Duration = Duration::from_millis(1);

/// Lots that got no verdict.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{}", why(.error), if *.maybe_stored { "; whether the messages were stored is not known: push with a key to be sure" } else { "" })]
pub struct SubmitError {
    /// What went wrong.
    pub error: StoreError,
    /// Whether the lots may have been stored all the same.
    pub maybe_stored: bool,
}

/// What went wrong in the words of one that pushes, which knows of no lease.
fn why(error: &StoreError) -> String {
    match error {
        StoreError::Refused(Refusal::Stale) => "the store lost sight of this process, or was restarted".to_owned(),
        error => error.to_string(),
    }
}

/// Lots on their way, and who waits for the verdicts.
pub(super) struct Item {
    lots: Vec<Lot>,
    /// Few have one, and all are moved from hand to hand.
    bookmark: Option<Box<MoveBookmark>>,
    reply: Verdicts,
}

/// How much there may be in the fleet before lots are refused.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub(super) max_backlog: u64,
    pub(super) max_keys: u64,
}

type Verdicts = oneshot::Sender<Result<Vec<LotVerdict>, SubmitError>>;

/// Puts lots on their way and waits for the verdicts.
pub(super) async fn hand_in(
    items: &mpsc::Sender<Item>, lots: Vec<Lot>, bookmark: Option<MoveBookmark>,
) -> Result<Vec<LotVerdict>, SubmitError> {
    let over = || SubmitError { error: Refusal::Stale.into(), maybe_stored: false };
    let well_formed = lots.iter().all(|lot| lot.key.is_none() || lot.parcel.len() == 1);
    if lots.is_empty() || lots.len() > MAX_LOTS || !well_formed {
        let error = Refusal::Malformed("a submit takes 1 to 1024 lots, a keyed one holds one message").into();
        return Err(SubmitError { error, maybe_stored: false });
    }
    let (reply, answer) = oneshot::channel();
    items.send(Item { lots, bookmark: bookmark.map(Box::new), reply }).await.map_err(|_| over())?;
    answer.await.unwrap_or_else(|_| Err(SubmitError { maybe_stored: true, ..over() }))
}

/// Sends groups in the order of their numbers until the session is over.
pub(super) async fn run(caller: Caller, mut items: mpsc::Receiver<Item>, bounds: Bounds) {
    let (mut under_way, mut ended) = (UnderWay(Vec::new()), pin!(caller.ended()));
    // The last number given.
    let mut submit_no = 0;
    let mut waiting: Option<Item> = None;
    loop {
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
            let group = match Group::new(caller.id(), submit_no + 1, group, bounds) {
                Ok(group) => group,
                Err(error) => {
                    caller.end(error);
                    continue;
                }
            };
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
        item.reply.send(Err(SubmitError { error: caller.ended().await, maybe_stored: false })).ok();
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
    request: Request,
    packed: Packed,
    /// How many of the lots handed in belong to whom.
    replies: Vec<(usize, Verdicts)>,
}

impl Group {
    fn new(session: SessionId, submit_no: u64, items: Vec<Item>, bounds: Bounds) -> Result<Box<Self>, StoreError> {
        let (mut bookmark, mut replies) = (None, Vec::with_capacity(items.len()));
        let mut lots = Vec::new();
        for mut item in items {
            replies.push((item.lots.len(), item.reply));
            if lots.is_empty() {
                lots = item.lots;
            } else {
                lots.append(&mut item.lots);
            }
            bookmark = bookmark.or(item.bookmark);
        }
        let (lots, packed) = if lots.len() == 1 {
            Packing::one(lots)
        } else {
            let mut packing = Packing::default();
            for lot in lots {
                packing.add(lot)?;
            }
            packing.finish()
        };
        let (with_bookmark, bookmark) = (bookmark.is_some(), bookmark.map(|bookmark| *bookmark));
        let Bounds { max_backlog, max_keys } = bounds;
        let request = Submit { session, submit_no, lots, bookmark, max_backlog, max_keys }.request();
        Ok(Box::new(Self { submit_no, with_bookmark, request, packed, replies }))
    }
}

/// Sends a group until it is answered and passes the verdicts on; whether its number was used.
async fn send(caller: &Caller, group: Box<Group>) -> bool {
    let mut ambiguous = false;
    let result = loop {
        let answered = caller.repeat_from::<Submit>(&group.request).await;
        ambiguous |= answered.ambiguous;
        match answered.result {
            // It overtook the one before it: that one is on its way, or being repeated.
            Err(StoreError::Refused(Refusal::OutOfTurn { last })) if last + 1 < group.submit_no => {
                Box::pin(tokio::time::sleep(OVERTAKEN_PAUSE)).await;
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
    let mut member = 0;
    let Group { packed, replies, .. } = *group;
    for (count, reply) in replies {
        let share = match &result {
            Ok(Submitted { lots }) => {
                Ok((member..member + count).filter_map(|member| packed.verdict(member, lots)).collect())
            }
            Err(error) => Err(SubmitError { error: error.clone(), maybe_stored: ambiguous }),
        };
        member += count;
        reply.send(share).ok();
    }
    !refused
}

/// Adds what waits to a group while it fits; what came out and did not fit.
fn gather(group: &mut Vec<Item>, items: &mut mpsc::Receiver<Item>) -> Option<Item> {
    let weigh = |item: &Item| item.lots.iter().map(|lot| lot.parcel.bytes().len()).sum::<usize>();
    let mut lots: usize = group.iter().map(|item| item.lots.len()).sum();
    let mut bytes: usize = group.iter().map(weigh).sum();
    while bytes < GROUP_BYTES {
        let item = items.try_recv().ok()?;
        lots += item.lots.len();
        bytes += weigh(&item);
        if item.bookmark.is_some() || lots > MAX_LOTS {
            return Some(item);
        }
        group.push(item);
    }
    None
}
