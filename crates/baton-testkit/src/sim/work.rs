//! Handlers of a drawn fleet: what each kind of work does with a message follows from the seed, the message and the
//! attempt, and from nothing else, so the same message is treated the same on every node.

use std::{sync::Arc, time::Duration};

use baton::{Context, Done, Failure, Handler, Message};

use super::{
    body::Body,
    chance::{digest, drawn},
    witness::{Life, Witness},
};
use crate::soak::{mixed::burn, random::Random};

/// A kind of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are milliseconds, shares and queues")]
pub enum Work {
    /// Ready at once.
    Instant,
    /// Takes up to twice this long.
    Sleeps { ms: u64 },
    /// One in a hundred takes this long, the others a moment.
    Uneven { slow_ms: u64 },
    /// Some fail, at once or after a while.
    Fails { per_cent: u64, ms: u64 },
    /// Asks to be tried again after a while, this often.
    Postpones { ms: u64, times: u32 },
    /// Some panic, at once or after a while.
    Panics { per_cent: u64, ms: u64 },
    /// Has a result, and pushes follow-ups to another queue.
    Passes { to: usize, count: u64, ms: u64 },
    /// Uses a core for up to this long. Simulated time does not pass meanwhile, so only real fleets draw it.
    Burns { ms: u64 },
}

impl Work {
    /// A kind of work by chance.
    pub fn draw(queue_count: usize, random: &mut Random) -> Self {
        let short = |random: &mut Random| if random.below(2) == 0 { 0 } else { 1 + random.below(40) };
        match random.below(10) {
            0 | 1 => Self::Instant,
            2 | 3 => Self::Sleeps { ms: 1 + random.below(300) },
            4 | 5 => Self::Uneven { slow_ms: 2_000 + random.below(13_000) },
            6 => Self::Fails { per_cent: 5 + random.below(50), ms: short(random) },
            7 => Self::Postpones { ms: 10 + random.below(3_000), times: 1 + random.below(3) as u32 },
            8 => Self::Panics { per_cent: 5 + random.below(40), ms: short(random) },
            _ => Self::Passes {
                to: random.below(queue_count as u64) as usize,
                count: random.below(3),
                ms: short(random),
            },
        }
    }

    /// Whether a message of this work may end among the errors by what its handler does.
    pub(super) const fn may_die(self) -> bool {
        matches!(self, Self::Fails { .. } | Self::Panics { .. })
    }

    /// How long an attempt takes.
    pub(super) fn takes_ms(self, seed: u64, body: &[u8], attempt: u32) -> u64 {
        let draw = |bound| drawn(seed, &[digest(body), u64::from(attempt), 1], bound);
        match self {
            Self::Instant | Self::Postpones { .. } | Self::Burns { .. } => 0,
            Self::Sleeps { ms } => 1 + draw(2 * ms),
            Self::Uneven { slow_ms } if draw(100) == 0 => slow_ms,
            Self::Uneven { .. } => draw(3),
            Self::Fails { ms, .. } | Self::Panics { ms, .. } | Self::Passes { ms, .. } => ms,
        }
    }

    /// Whether an attempt fails.
    fn fails(self, seed: u64, body: &[u8], attempt: u32) -> bool {
        let by_chance = |per_cent| drawn(seed, &[digest(body), u64::from(attempt), 2], 100) < per_cent;
        match self {
            Self::Fails { per_cent, .. } | Self::Panics { per_cent, .. } => by_chance(per_cent),
            Self::Postpones { times, .. } => attempt <= times,
            _ => false,
        }
    }

    /// Whether a message fails for good: all attempts fail. One that is put off has more of them than are ever drawn.
    pub(crate) fn dies(self, seed: u64, body: &[u8], retries: u32) -> bool {
        self.may_die() && (1..=retries + 1).all(|attempt| self.fails(seed, body, attempt))
    }

    /// The messages that follow one that is done.
    pub(crate) fn follow_ups(self, seed: u64, parent: Body) -> Vec<Body> {
        match self {
            Self::Passes { to, count, .. } if parent.depth < 2 => {
                (0..count).map(|nth| parent.follow_up(seed, to, nth)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// How an attempt ends.
    fn ends(self, seed: u64, body: &[u8], attempt: u32) -> Result<Done, Failure> {
        match self {
            Self::Fails { .. } if self.fails(seed, body, attempt) => Err(Failure::new("it failed by chance")),
            Self::Postpones { ms, .. } if self.fails(seed, body, attempt) => {
                Err(Failure::retry_after(Duration::from_millis(ms), "not yet"))
            }
            Self::Panics { .. } if self.fails(seed, body, attempt) => panic!("{SIMULATED}: a handler"),
            Self::Passes { to, .. } => {
                let follow_ups = self.follow_ups(seed, serde_json::from_slice(body)?);
                follow_ups
                    .iter()
                    .try_fold(Done::with(&digest(body))?, |done, child| done.then(&format!("q{to}"), child))
            }
            _ => Ok(Done::default()),
        }
    }
}

/// How panics begin that are thrown on purpose.
pub(super) const SIMULATED: &str = "simulated panic";

/// The handler of one queue in one life of a node.
pub(super) struct Working {
    pub(super) witness: Arc<dyn Witness>,
    pub(super) seed: u64,
    pub(super) of: Life,
    pub(super) queue: usize,
    pub(super) work: Work,
}

impl Handler for Working {
    fn handle(
        &self, message: Message, context: Context,
    ) -> impl Future<Output = Result<Done, Failure>> + Send + 'static {
        let (work, seed, attempt) = (self.work, self.seed, context.attempt());
        let takes_ms = work.takes_ms(seed, &message.body, attempt);
        let begun = Begun { witness: self.witness.clone(), of: self.of, queue: self.queue, id: message.id.0, attempt };
        self.witness.begins(&begun, &message, &context.key(), takes_ms);
        async move {
            if takes_ms > 0 {
                tokio::time::sleep(Duration::from_millis(takes_ms)).await;
            }
            if let Work::Burns { ms } = work {
                burn(Duration::from_millis(1 + drawn(seed, &[digest(&message.body), 1], ms)));
            }
            begun.witness.runs(&begun);
            work.ends(seed, &message.body, attempt)
        }
    }
}

/// A handler at work; it ends when it is dropped.
pub(crate) struct Begun {
    witness: Arc<dyn Witness>,
    pub(crate) of: Life,
    pub(crate) queue: usize,
    pub(crate) id: u64,
    pub(crate) attempt: u32,
}

impl Drop for Begun {
    fn drop(&mut self) {
        self.witness.ends(self);
    }
}
