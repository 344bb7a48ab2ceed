//! Handing messages in: what waits while calls are under way goes together.

use std::{collections::BTreeSet, time::Duration};

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use tokio::sync::{mpsc, oneshot};

use super::{
    caller::Caller,
    packing::{Packed, Packing},
};
use crate::{
    message::{Lot, SessionId},
    store::{
        LotVerdict, MAX_LOTS, MoveBookmark, Operation as _, Refusal, SUBMIT_WINDOW, StoreError, Submit, Submitted,
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
    bookmark: Option<MoveBookmark>,
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
    items.send(Item { lots, bookmark, reply }).await.map_err(|_| over())?;
    answer.await.unwrap_or_else(|_| Err(SubmitError { maybe_stored: true, ..over() }))
}

/// Sends groups in the order of their numbers until the session is over.
pub(super) async fn run(caller: Caller, mut items: mpsc::Receiver<Item>, bounds: Bounds) {
    let mut under_way = FuturesUnordered::new();
    // Those of their numbers, and the last one given.
    let (mut open, mut submit_no) = (BTreeSet::new(), 0);
    let mut waiting: Option<Item> = None;
    loop {
        // A refused bookmark leaves its number unused, so it goes alone: nothing follows before it is answered.
        let alone = waiting.as_ref().is_some_and(|item| item.bookmark.is_some());
        // The answer of one that is being repeated must still be kept then.
        let is_kept = open.first().is_none_or(|oldest| submit_no + 1 < oldest + SUBMIT_WINDOW);
        let room = if alone { under_way.is_empty() } else { under_way.len() < UNDER_WAY && is_kept };
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
                open.insert(submit_no);
                under_way.push(async { (group.submit.submit_no, send(&caller, group).await) });
            }
            continue;
        }
        tokio::select! {
            biased;
            _ = caller.ended(), if under_way.is_empty() => break,
            Some((answered, _)) = under_way.next() => {
                open.remove(&answered);
            }
            item = items.recv(), if waiting.is_none() => match item {
                Some(item) => waiting = Some(item),
                None if under_way.is_empty() => return,
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

/// Items that travel under one number.
struct Group {
    submit: Submit,
    packed: Packed,
    /// How many of the lots handed in belong to whom.
    replies: Vec<(usize, Verdicts)>,
}

impl Group {
    fn new(session: SessionId, submit_no: u64, items: Vec<Item>, bounds: Bounds) -> Result<Self, StoreError> {
        let (mut bookmark, mut replies) = (None, Vec::with_capacity(items.len()));
        let (mut lots, mut packing) = (Vec::new(), Packing::default());
        for mut item in items {
            replies.push((item.lots.len(), item.reply));
            lots.append(&mut item.lots);
            bookmark = bookmark.or(item.bookmark);
        }
        let (lots, packed) = match (lots.pop(), lots.is_empty()) {
            (Some(lot), true) => Packing::one(lot),
            (last, _) => {
                for lot in lots.into_iter().chain(last) {
                    packing.add(lot)?;
                }
                packing.finish()
            }
        };
        let Bounds { max_backlog, max_keys } = bounds;
        let submit = Submit { session, submit_no, lots, bookmark, max_backlog, max_keys };
        Ok(Self { submit, packed, replies })
    }
}

/// Sends a group until it is answered and passes the verdicts on; whether its number was used.
async fn send(caller: &Caller, group: Group) -> bool {
    let submit_no = group.submit.submit_no;
    let bookmark = group.submit.bookmark.clone();
    let request = group.submit.request();
    let mut ambiguous = false;
    let result = loop {
        let answered = caller.repeat_from::<Submit>(request.clone()).await;
        ambiguous |= answered.ambiguous;
        match answered.result {
            // It overtook the one before it: that one is on its way, or being repeated.
            Err(StoreError::Refused(Refusal::OutOfTurn { last })) if last + 1 < submit_no => {
                tokio::time::sleep(OVERTAKEN_PAUSE).await;
            }
            result => break result,
        }
    };
    let refused = result.is_err();
    if refused && (ambiguous || bookmark.is_none()) {
        // Later numbers wait for this one, or an unanswered attempt may still execute under it: either way the
        // number can stand for nothing else.
        caller.end(Refusal::Stale.into());
    }
    let mut member = 0;
    for (count, reply) in group.replies {
        let share = match &result {
            Ok(Submitted { lots }) => {
                Ok((member..member + count).filter_map(|member| group.packed.verdict(member, lots)).collect())
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
