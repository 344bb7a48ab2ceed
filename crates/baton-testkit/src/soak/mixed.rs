//! A node as real programs have them: six queues in one process, five sources, and work that is quick, slow, failing,
//! burning CPU or followed by more work. It runs beside the nodes of the command and works for their queue too.

use std::{
    fmt::Write as _,
    fs::{File, OpenOptions},
    io::Write as _,
    path::Path,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use baton::{
    Context, Done, Event, Failure, Fleet, FleetOptions, Name, Node, Observer, QueuePolicy, Role, Shutdown,
    admin::obey_leash,
    builtin::{Exec, Noop, Tick},
    pool::{Limits, Program},
    store::{StoreUrl, message::Range},
};
use bytes::Bytes;

use super::launch::{FLEET, QUEUE};

/// A queue of the mixed nodes, fed by a source of the same name.
#[derive(Debug, Clone, Copy)]
pub struct MixedQueue {
    /// Its name, and that of its source.
    pub name: &'static str,
    /// The pause between two messages.
    pub every_ms: u64,
    /// Whether messages may fail for good.
    pub may_die: bool,
}

/// The queues beside that of the command's nodes. Each message of `chain` is followed by one of `quick`.
pub const QUEUES: [MixedQueue; 5] = [
    MixedQueue { name: "quick", every_ms: 4, may_die: false },
    MixedQueue { name: "slow", every_ms: 100, may_die: false },
    MixedQueue { name: "failing", every_ms: 25, may_die: true },
    MixedQueue { name: "burning", every_ms: 25, may_die: false },
    MixedQueue { name: "chain", every_ms: 20, may_die: false },
];

/// Runs a mixed node until it is told to stop by the fleet, or whoever started it has gone.
///
/// # Errors
/// One line on what keeps it from running.
pub async fn run(
    store: &StoreUrl, role: Role, max_queue_bytes: u64, exec: Option<&str>, journal: &Path,
) -> Result<(), String> {
    let program = exec.map(Program::parse).transpose().map_err(|error| error.to_string())?;
    let journal = Journal::open(journal).map_err(|error| format!("cannot write the journal: {error}"))?;
    let options = FleetOptions::new(Name::new(FLEET).map_err(|error| error.to_string())?);
    let fleet = Fleet::connect_with(store, options).map_err(|error| error.to_string())?;
    let node =
        put_together(fleet.node().role(role).max_queue_bytes(max_queue_bytes), program).observed_by(Arc::new(journal));
    let shutdown = Shutdown::new();
    obey_leash(&shutdown).map_err(|error| error.to_string())?;
    node.run(shutdown).await.map_err(|error| error.to_string())
}

fn put_together(mut node: Node, program: Option<Program>) -> Node {
    let policy = QueuePolicy { concurrency: 16, backoff: Duration::from_millis(100), ..QueuePolicy::default() };
    for MixedQueue { name, every_ms, .. } in QUEUES {
        node = node.source_into(name, name, Tick::every(Duration::from_millis(every_ms)));
    }
    let retried = QueuePolicy { retries: 2, ..policy.clone() };
    let limits = Limits { children: 2, ..Limits::default() };
    let node = match program {
        Some(program) => {
            let children = QueuePolicy { concurrency: limits.children, ..policy.clone() };
            node.policy(children).handle_with(QUEUE, Exec::new(program, limits))
        }
        None => node.policy(policy.clone()).handle_with(QUEUE, Noop),
    };
    node.policy(policy)
        .handle_with("quick", Noop)
        .handler("slow", async |tick: Tocked, _: Context| {
            // One in fifty holds its place for long.
            let ms = if tick.tick.is_multiple_of(50) { 3_000 } else { 5 };
            tokio::time::sleep(Duration::from_millis(ms)).await;
            Ok(Done::default())
        })
        .handler("burning", async |tick: Tocked, _: Context| {
            burn(Duration::from_millis(1 + tick.tick % 3));
            Ok(Done::default())
        })
        .handler("chain", async |tick: Tocked, _: Context| Done::default().then("quick", &tick))
        .policy(retried)
        .handler("failing", async |tick: Tocked, context: Context| match (tick.tick % 10, context.attempt()) {
            (0, _) => Err(Failure::new("never")),
            (1..=3, 1) => Err(Failure::new("not at first")),
            (4, 1) => Err(Failure::retry_after(Duration::from_millis(300), "later")),
            (5, 1) => panic!("at first"),
            _ => Ok(Done::default()),
        })
}

/// A body of a tick source.
#[derive(Debug, Clone, Copy, serde::Serialize, serde::Deserialize)]
struct Tocked {
    tick: u64,
}

/// Uses a core for this long.
pub(crate) fn burn(time: Duration) {
    let end = Instant::now() + time;
    let mut sum = 0_u64;
    while Instant::now() < end {
        sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(7));
    }
}

/// Writes down which messages of the command's queue have run, as those nodes do: see [`super::journal`].
struct Journal(Mutex<(File, String)>);

impl Journal {
    fn open(path: &Path) -> std::io::Result<Self> {
        Ok(Self(Mutex::new((OpenOptions::new().create(true).append(true).open(path)?, String::new()))))
    }
}

impl Observer for Journal {
    fn ran(&self, queue: &Name, range: Range, first_body: &Bytes) {
        if queue.as_str() == QUEUE {
            let position = serde_json::from_slice::<Tocked>(first_body).map_or(0, |tocked| tocked.tick);
            let mut journal = self.0.lock().expect("no panic while writing");
            writeln!(journal.1, "run {} {} {position}", range.first, range.len).ok();
        }
    }

    fn settling(&self) {
        let (file, lines) = &mut *self.0.lock().expect("no panic while writing");
        if let Err(error) = file.write_all(lines.as_bytes()) {
            // Without its journal the run proves nothing.
            eprintln!("cannot write the journal: {error}");
            std::process::exit(1);
        }
        lines.clear();
    }

    fn on_event(&self, event: &Event) {
        if !event.is_routine() {
            println!("{event}");
        }
    }
}
