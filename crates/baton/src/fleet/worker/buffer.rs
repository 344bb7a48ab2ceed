//! What a dispatcher and its slots pass to each other, under one short lock: messages one way, outcomes the other.
//!
//! Every message that came in is at any time in exactly one of these: prefetched, held by a slot, in the outbox. What goes
//! wrong with a slot therefore loses none: what it held goes back. After [`Buffer::close`] nothing is begun and nothing is
//! reported any more; the messages are others'.

use std::{sync::Arc, time::Duration};

use futures_util::future::AbortHandle;
use tokio::time::Instant;

use super::{
    held::{Assignment, Completed, Entry, Holds},
    mode::Mode,
    outbox,
    pace::Pace,
    prefetched::{Assigned, Position, Prefetched},
    quarantine::Quarantine,
};
use crate::message::{MessageId, Name, Outcome, Parcel, Range, Run, Span};

/// How long a message may be prefetched before it goes back.
const OVERSTAY: Duration = Duration::from_millis(100);
/// How long a handful that is run inline may hold up what is behind it.
const HELD_UP: Duration = Duration::from_millis(10);
/// How long outcomes gather between two reports while there is more to do.
const GATHERING: Duration = Duration::from_millis(3);

/// See the module.
pub(super) struct Buffer {
    queue: Name,
    /// Whether messages are run in the order they were claimed in: then all of them go back together, when no claim is
    /// under way, and none is made until they are back.
    in_order: bool,
    /// Whether messages that are to be run in order are on their way back.
    is_returning: bool,
    prefetched: Prefetched,
    quarantine: Quarantine,
    outbox: Vec<Run>,
    mode: Mode,
    pub(super) pace: Pace,
    /// An entry for each slot.
    entries: Vec<Option<Entry>>,
    vacant: Vec<usize>,
    /// Messages that slots hold.
    running: usize,
    /// Slots that have not come yet.
    coming: usize,
    /// The slot that runs messages inline.
    runner: Option<usize>,
    /// How often slots came for messages.
    turns: u64,
    /// At which turn the runner was when it was looked at last, and since when it is there.
    seen: Option<(u64, Instant)>,
    /// With how many messages left the dispatcher wants to know, to claim more.
    claim_at: Option<usize>,
    /// Whether a report is under way, after which the dispatcher looks by itself.
    reporting: bool,
    /// Until when outcomes gather. The dispatcher looks then by itself.
    gathering: Option<Instant>,
    /// Whether the outcome of a suspect is in the outbox. It does not gather: were this process killed meanwhile, the
    /// message would be taken for what killed it.
    urgent: bool,
    stopped: bool,
    closed: bool,
}

impl Buffer {
    pub(super) fn new(queue: Name, in_order: bool) -> Self {
        Self {
            queue,
            in_order,
            is_returning: false,
            prefetched: Prefetched::default(),
            quarantine: Quarantine::default(),
            outbox: Vec::new(),
            mode: Mode::default(),
            pace: Pace::default(),
            entries: Vec::new(),
            vacant: Vec::new(),
            running: 0,
            coming: 0,
            runner: None,
            turns: 0,
            seen: None,
            claim_at: None,
            reporting: false,
            gathering: None,
            urgent: false,
            stopped: false,
            closed: false,
        }
    }

    /// Messages were claimed.
    pub(super) fn add(&mut self, claim_no: u64, spans: Vec<(Span, Parcel)>, now: Instant) {
        self.pace.works(now);
        self.quarantine.came(&spans, now);
        self.prefetched.add(claim_no, spans, now);
    }

    /// Whether nothing is to be begun now but a suspect, if it is not yet.
    pub(super) const fn is_quarantined(&self) -> bool {
        self.quarantine.is_on()
    }

    /// Messages prefetched or held by slots.
    pub(super) const fn have(&self) -> usize {
        self.running + self.prefetched.len()
    }

    /// Places that slots have.
    pub(super) const fn slots(&self) -> usize {
        self.entries.len() - self.vacant.len()
    }

    /// How many messages to claim now, if any. None while slots do not come that messages have waited for in vain: the
    /// runtime has no time for them.
    pub(super) fn wanted(&self, permits: usize, claims_under_way: usize) -> Option<u32> {
        let in_vain = self.pace.has_overstayed() && self.coming > 0;
        if in_vain || self.is_returning { None } else { self.pace.wanted(permits, self.have(), claims_under_way) }
    }

    /// How many more slots there is work for.
    pub(super) fn slots_due(&self) -> usize {
        if self.stopped || self.closed || self.prefetched.len() == 0 {
            return 0;
        }
        if self.is_quarantined() {
            return usize::from(self.prefetched.begins_with_suspect() && self.coming == 0);
        }
        match self.mode.handful() {
            Some(_) => usize::from(self.runner.is_none() && self.coming == 0),
            None => self.prefetched.len().saturating_sub(self.coming),
        }
    }

    /// An entry for a slot to come.
    pub(super) fn expect(&mut self, abort: AbortHandle) -> usize {
        self.coming += 1;
        let entry = Entry { abort, holds: Holds::NotHere };
        let vacant = self.vacant.pop().and_then(|at| Some((at, self.entries.get_mut(at)?)));
        if let Some((at, vacant)) = vacant {
            *vacant = Some(entry);
            return at;
        }
        self.entries.push(Some(entry));
        self.entries.len() - 1
    }

    /// A slot comes, with what it has completed of what it held: all of it has ended. Whether it is time for more slots.
    pub(super) fn came(&mut self, at: usize, completed: &mut Completed) -> bool {
        let held = self.swap(at, Holds::Nothing);
        self.turns += 1;
        match held {
            Holds::NotHere => self.coming -= 1,
            Holds::Nothing => completed.runs.clear(),
            Holds::One { .. } => self.running -= 1,
            Holds::Handful { assigned, .. } => self.running -= assigned.len(),
        }
        self.note(completed)
    }

    /// A slot that runs a handful has one in it that waits: others get the rest. Whether the slot is to stay with it.
    pub(super) fn waits(&mut self, at: usize, id: MessageId, completed: &mut Completed) -> bool {
        let Holds::Handful { mut assigned, position } = self.swap(at, Holds::Nothing) else { return false };
        self.runner = None;
        self.note(completed);
        self.running -= assigned.len();
        assigned.from = position.take_away().min(assigned.to);
        let (claim_no, stays) = (assigned.claim_no, !self.closed && !self.stopped);
        if stays {
            self.running += 1;
            self.swap(at, Holds::One { claim_no, id });
            self.prefetched.put_back(assigned);
        } else {
            self.back(claim_no, Range::one(id));
        }
        stays
    }

    fn note(&mut self, completed: &mut Completed) -> bool {
        self.pace.ended(std::mem::take(&mut completed.ended));
        self.urgent |= std::mem::take(&mut completed.suspect);
        if let Some((at_once, took)) = completed.in_a_task.take() {
            self.mode.ran_in_a_task(at_once, took);
        }
        let left = completed.inline.take().is_some_and(|stretch| self.mode.ran_inline(stretch));
        for run in completed.runs.drain(..) {
            if !self.closed {
                outbox::add(&mut self.outbox, run);
            }
        }
        left
    }

    /// What the slot is to do next.
    pub(super) fn assign(&mut self, at: usize, position: &Arc<Position>) -> Assignment {
        let mine = self.runner.take_if(|runner| *runner == at).is_some();
        if self.stopped || self.closed || (self.is_quarantined() && !self.prefetched.begins_with_suspect()) {
            return Assignment::Nothing;
        }
        let Some(handful) = self.mode.handful() else {
            let Some(assigned) = self.prefetched.take(1) else { return Assignment::Nothing };
            self.running += 1;
            self.swap(at, Holds::One { claim_no: assigned.claim_no, id: assigned.id() });
            return Assignment::One(assigned);
        };
        if !mine && self.runner.is_some() {
            return Assignment::Nothing;
        }
        let Some(assigned) = self.prefetched.take(handful) else { return Assignment::Nothing };
        self.runner = Some(at);
        self.running += assigned.len();
        position.set(assigned.from);
        self.swap(at, Holds::Handful { assigned: assigned.clone(), position: Arc::clone(position) });
        Assignment::Handful { assigned, on_trial: handful == 1 }
    }

    /// Whether the dispatcher should be called; `now` is when a slot saw that nothing is left to do.
    pub(super) fn calls(&mut self, now: impl FnOnce() -> Instant) -> bool {
        let have = self.have();
        let (idle, in_vain) = (have == 0, self.pace.has_overstayed() && self.coming > 0);
        let wants_more = self.claim_at.take_if(|least| have <= *least && !in_vain).is_some();
        if idle {
            self.pace.rests(now());
        }
        let gathers = self.gathering.is_some() && !self.urgent;
        let report = !self.outbox.is_empty() && (idle || (!self.reporting && !gathers));
        wants_more || report
    }

    /// A slot has ended, in whatever way; what it held goes back. Whether the dispatcher should be called.
    pub(super) fn left(&mut self, at: usize) -> bool {
        let Some(Entry { holds, .. }) = self.entries.get_mut(at).and_then(Option::take) else { return false };
        self.vacant.push(at);
        self.runner.take_if(|runner| *runner == at);
        match holds {
            Holds::Nothing => return false,
            Holds::NotHere => self.coming -= 1,
            Holds::One { claim_no, id } => {
                self.running -= 1;
                self.back(claim_no, Range::one(id));
            }
            Holds::Handful { assigned, .. } => {
                self.running -= assigned.len();
                self.back(assigned.claim_no, assigned.range());
            }
        }
        !self.closed
    }

    /// Looks after the time; when to look again.
    pub(super) fn look(&mut self, now: Instant, permits: usize) -> Option<Instant> {
        if self.have() == 0 {
            self.pace.rests(now);
        }
        self.pace.measure(now, permits);
        self.gathering.take_if(|until| *until <= now);
        let alone = self.quarantine.look(now);
        let held_up = self.held_up(now);
        if let Some(since) = self.prefetched.since()
            && since + OVERSTAY <= now
        {
            self.pace.overstayed();
            if !self.in_order {
                self.hand_back(now.checked_sub(OVERSTAY));
            } else if !self.pace.is_asking() {
                self.hand_back(None);
            }
        }
        // A claim under way is soon answered, or given up.
        let overstay = self.prefetched.since().map(|since| (since + OVERSTAY).max(now + GATHERING));
        [alone, held_up, overstay, self.gathering].into_iter().flatten().min()
    }

    /// Takes from the runner what it has not begun if its handful takes too long; when to look again.
    fn held_up(&mut self, now: Instant) -> Option<Instant> {
        let seen = self.seen.take();
        let Some(runner) = self.runner else {
            // It is yet to come.
            let comes = self.mode.handful().is_some() && self.prefetched.len() > 0;
            return comes.then(|| now + HELD_UP);
        };
        let entry = self.entries.get_mut(runner)?.as_mut()?;
        let behind = match &entry.holds {
            Holds::Handful { assigned, position } => assigned.to.saturating_sub(position.at()) as usize,
            _ => 0,
        };
        if behind + self.prefetched.len() == 0 {
            return None;
        }
        let since = seen.filter(|(turn, _)| *turn == self.turns).map_or(now, |(_, since)| since);
        if now < since + HELD_UP {
            self.seen = Some((self.turns, since));
            return Some(since + HELD_UP);
        }
        self.take_rest();
        self.runner = None;
        self.mode.leave_inline();
        None
    }

    /// Takes what it has not begun from the runner.
    fn take_rest(&mut self) {
        let runner = self.runner.and_then(|at| self.entries.get_mut(at)?.as_mut());
        if let Some(Entry { holds: Holds::Handful { assigned, position }, .. }) = runner {
            let begun = position.take_away().min(assigned.to);
            let rest = Assigned { from: begun, ..assigned.clone() };
            assigned.to = begun;
            self.running -= rest.len();
            self.prefetched.put_back(rest);
        }
    }

    /// Hands back what was claimed at this time or before; without a time, all of it.
    pub(super) fn hand_back(&mut self, upto: Option<Instant>) {
        let Self { prefetched, outbox, queue, .. } = self;
        let back = |(claim_no, range)| Run { claim_no, queue: queue.clone(), range, outcome: Outcome::Back };
        let before = outbox.len();
        outbox.extend(prefetched.drain(upto).map(back));
        self.is_returning |= self.in_order && self.outbox.len() > before;
    }

    /// Hands back those of calls of which this is true; whether there were some.
    pub(super) fn hand_back_those(&mut self, is_wanted: impl Fn(&Assigned) -> bool) -> bool {
        let back = self.prefetched.take_out(is_wanted);
        for (claim_no, range) in &back {
            self.back(*claim_no, *range);
        }
        !back.is_empty()
    }

    fn back(&mut self, claim_no: u64, range: Range) {
        if !self.closed && range.len > 0 {
            self.outbox.push(Run { claim_no, queue: self.queue.clone(), range, outcome: Outcome::Back });
        }
    }

    /// Breaks tasks off and hands their messages back. What is being run inline is waited for.
    pub(super) fn stop(&mut self) -> Vec<AbortHandle> {
        self.stopped = true;
        self.take_rest();
        let mut aborted = Vec::new();
        for entry in self.entries.iter_mut().flatten() {
            if let Holds::One { claim_no, id } = entry.holds {
                entry.holds = Holds::Nothing;
                aborted.push((entry.abort.clone(), claim_no, id));
            }
        }
        self.running -= aborted.len();
        for (_, claim_no, id) in &aborted {
            self.back(*claim_no, Range::one(*id));
        }
        self.hand_back(None);
        aborted.into_iter().map(|(abort, ..)| abort).collect()
    }

    /// What was begun and is not reported: outcomes that wait for a report, and messages that run.
    pub(super) fn begun(&mut self) -> Vec<Run> {
        let mut begun = std::mem::take(&mut self.outbox);
        begun.retain(|run| run.outcome != Outcome::Back);
        for entry in self.entries.iter().flatten() {
            let (claim_no, range) = match &entry.holds {
                Holds::NotHere | Holds::Nothing => continue,
                Holds::One { claim_no, id } => (*claim_no, Range::one(*id)),
                Holds::Handful { assigned, position } => (
                    assigned.claim_no,
                    Assigned { to: position.at().clamp(assigned.from, assigned.to), ..assigned.clone() }.range(),
                ),
            };
            if range.len > 0 {
                begun.push(Run { claim_no, queue: self.queue.clone(), range, outcome: Outcome::DONE });
            }
        }
        begun
    }

    /// Ends everything: nothing is reported any more.
    pub(super) fn close(&mut self) -> Vec<AbortHandle> {
        self.closed = true;
        self.quarantine = Quarantine::default();
        self.prefetched = Prefetched::default();
        self.outbox = Vec::new();
        self.entries.iter().flatten().map(|entry| entry.abort.clone()).collect()
    }

    /// The outcomes to report now. While there is more to do they gather a little, unless `all` are wanted.
    pub(super) fn report(&mut self, now: Instant, all: bool) -> Vec<Run> {
        let gathers = self.gathering.is_some() && self.prefetched.len() > 0 && !all && !self.urgent;
        if gathers || self.reporting || self.outbox.is_empty() {
            return Vec::new();
        }
        (self.reporting, self.urgent) = (true, false);
        self.gathering = (self.prefetched.len() > 0).then(|| now + GATHERING);
        self.quarantine.reports(&self.outbox);
        std::mem::take(&mut self.outbox)
    }

    /// A report is made of what is not from here.
    pub(super) const fn reports(&mut self) {
        self.reporting = true;
    }

    /// The report was answered.
    pub(super) fn reported(&mut self) {
        self.reporting = false;
        self.quarantine.reported();
        self.is_returning &= self.outbox.iter().any(|run| run.outcome == Outcome::Back);
    }

    /// Says with how many messages left the dispatcher wants to know.
    pub(super) const fn call_at(&mut self, least: Option<usize>) {
        self.claim_at = least;
    }

    /// Whether nothing is prefetched, held or to be reported.
    pub(super) const fn is_clear(&self) -> bool {
        self.have() == 0 && self.outbox.is_empty() && !self.reporting
    }

    #[cfg(feature = "testing")]
    /// What is in the outbox.
    pub(super) fn take_outbox(&mut self) -> Vec<Run> {
        std::mem::take(&mut self.outbox)
    }

    /// Whether messages are run inline.
    #[cfg(test)]
    pub(super) const fn is_inline(&self) -> bool {
        self.mode.handful().is_some()
    }

    fn swap(&mut self, at: usize, holds: Holds) -> Holds {
        match self.entries.get_mut(at) {
            Some(Some(entry)) => std::mem::replace(&mut entry.holds, holds),
            _ => Holds::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        fleet::worker::mode::Stretch,
        message::{Body, ParcelBuilder},
    };

    #[test]
    fn what_is_behind_a_handful_that_takes_long_is_taken_from_it_though_it_moves() {
        let (mut buffer, mut now) = (Buffer::new(Name::new("q").unwrap(), false), Instant::now());
        let mut parcel = ParcelBuilder::default();
        (0..1_000).for_each(|_| parcel.add(Body::new(b"0").unwrap()).unwrap());
        buffer.add(1, vec![(Span::fresh(1, 1_000, 99), parcel.finish().unwrap())], now);
        let (slot, position) = (buffer.expect(AbortHandle::new_pair().0), Arc::new(Position::default()));
        let mut completed = Completed::default();
        let mut handful = 0;
        while handful < 256 {
            buffer.came(slot, &mut completed);
            let Assignment::Handful { assigned, .. } = buffer.assign(slot, &position) else { panic!("not run inline") };
            (handful, completed.ended) = (assigned.len(), assigned.len());
            completed.inline = Some(Stretch { count: assigned.to - assigned.from, pending: 0, took: Duration::ZERO });
        }
        let left = buffer.prefetched.len();
        // Looked at three times within that time, and each time it has begun another message.
        for _ in 0..3 {
            assert!(buffer.is_inline());
            position.next();
            buffer.look(now, 1);
            now += HELD_UP / 2;
        }
        assert!(!buffer.is_inline(), "others are to have a part in it");
        assert_eq!(buffer.prefetched.len(), left + 256 - 3);
        assert!(position.next() > 1 << 20, "and it begins none of them");
    }
}
