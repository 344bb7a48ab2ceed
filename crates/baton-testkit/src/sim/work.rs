//! Handlers of a simulated fleet: what each kind of work does with a message follows from the seed, the message and the
//! attempt, and from nothing else, so the same message is treated the same on every node.

use std::time::Duration;

use baton::{Context, Done, Failure, Handler, Message};
use serde::{Deserialize, Serialize};

use super::{
    chance::{digest, drawn},
    scene::Shared,
};
use crate::soak::random::Random;

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

    /// Whether a message of this work may end in the error registry by what its handler does.
    pub(super) const fn may_die(self) -> bool {
        matches!(self, Self::Fails { .. } | Self::Panics { .. } | Self::Postpones { .. })
    }

    /// How long an attempt takes.
    pub(super) fn takes_ms(self, seed: u64, body: &[u8], attempt: u32) -> u64 {
        let draw = |bound| drawn(seed, &[digest(body), u64::from(attempt), 1], bound);
        match self {
            Self::Instant | Self::Postpones { .. } => 0,
            Self::Sleeps { ms } => 1 + draw(2 * ms),
            Self::Uneven { slow_ms } if draw(100) == 0 => slow_ms,
            Self::Uneven { .. } => draw(3),
            Self::Fails { ms, .. } | Self::Panics { ms, .. } | Self::Passes { ms, .. } => ms,
        }
    }

    /// How an attempt ends.
    fn ends(self, seed: u64, body: &[u8], attempt: u32) -> Result<Done, Failure> {
        let by_chance = |per_cent| drawn(seed, &[digest(body), u64::from(attempt), 2], 100) < per_cent;
        match self {
            Self::Fails { per_cent, .. } if by_chance(per_cent) => Err(Failure::new("it failed by chance")),
            Self::Postpones { ms, times } if attempt <= times => {
                Err(Failure::retry_after(Duration::from_millis(ms), "not yet"))
            }
            Self::Panics { per_cent, .. } if by_chance(per_cent) => panic!("{SIMULATED}: a handler"),
            Self::Passes { to, count, .. } => {
                let mut done = Done::with(&digest(body))?;
                let parent: Body = serde_json::from_slice(body)?;
                for nth in 0..if parent.depth < 2 { count } else { 0 } {
                    let child =
                        Body { queue: to, depth: parent.depth + 1, unique: drawn(seed, &[digest(body), nth], 0) };
                    done = done.then(&format!("q{to}"), &child)?;
                }
                Ok(done)
            }
            _ => Ok(Done::default()),
        }
    }
}

/// What every message says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Body {
    /// The queue it belongs to.
    pub(super) queue: usize,
    /// How many follow-ups lie before it.
    pub(super) depth: u32,
    /// Tells it from all others.
    pub(super) unique: u64,
}

/// How panics begin that are thrown on purpose.
pub(super) const SIMULATED: &str = "simulated panic";

/// The handler of one queue in one life of a node.
pub(super) struct Working {
    pub(super) scene: Shared,
    pub(super) seed: u64,
    pub(super) member: usize,
    pub(super) life: u32,
    pub(super) queue: usize,
    pub(super) work: Work,
}

impl Handler for Working {
    fn handle(
        &self, message: Message, context: Context,
    ) -> impl Future<Output = Result<Done, Failure>> + Send + 'static {
        let (work, seed, attempt) = (self.work, self.seed, context.attempt());
        let takes_ms = work.takes_ms(seed, &message.body, attempt);
        let begun = Begun {
            scene: self.scene.clone(),
            member: self.member,
            life: self.life,
            queue: self.queue,
            id: message.id,
        };
        self.scene.lock().unwrap().begin(&begun, &message, &context.key(), takes_ms);
        async move {
            let _ends_when_dropped = begun;
            if takes_ms > 0 {
                tokio::time::sleep(Duration::from_millis(takes_ms)).await;
            }
            work.ends(seed, &message.body, attempt)
        }
    }
}

/// A handler at work; it ends when it is dropped.
pub(super) struct Begun {
    scene: Shared,
    pub(super) member: usize,
    pub(super) life: u32,
    pub(super) queue: usize,
    pub(super) id: u64,
}

impl Drop for Begun {
    fn drop(&mut self) {
        self.scene.lock().unwrap_or_else(std::sync::PoisonError::into_inner).end(self);
    }
}
