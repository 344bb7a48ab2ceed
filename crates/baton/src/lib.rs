//! A fleet of identical nodes over one store: nothing is lost, nothing is completed twice, and the books prove it.
//!
//! What is promised is exactly-once **accounting** and at-least-once **execution**: a message may run again after a
//! crash, but it is counted as done or dead once, and what its outcome stored (result, follow-ups) is stored once.
//!
//! ```
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! use baton::{Shutdown, Context, Done, Fleet, store::TakeSurvey};
//!
//! #[derive(serde::Serialize, serde::Deserialize)]
//! struct Resize {
//!     picture: String,
//!     width: u32,
//! }
//!
//! let fleet = Fleet::connect("memory:")?; // or sqlite:baton.db, redis://127.0.0.1/
//! fleet.queue::<Resize>("resize").push(&Resize { picture: "cat.png".into(), width: 640 }).await?;
//!
//! let shutdown = Shutdown::new();
//! let node = fleet.node().handler("resize", async |message: Resize, ctx: Context| {
//!     println!("{}: {} to {} pixels", ctx.key(), message.picture, message.width);
//!     Ok(Done::with(&"resized")?.then("notify", &message.picture)?) // stored if and only if this message counts as done
//! });
//! let node = tokio::spawn(node.run(shutdown.clone()));
//!
//! while !fleet.ask(TakeSurvey).await?.queues.iter().any(|books| books.done == 1) {
//!     tokio::time::sleep(std::time::Duration::from_millis(1)).await;
//! }
//! shutdown.graceful();
//! node.await??;
//! assert!(fleet.ask(TakeSurvey).await?.queues.iter().all(|books| books.balance()));
//! # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
//! ```
//!
//! Errors are shown by their text: `eprintln!("{error}")`. A `main` that returns one shows the fields of its type instead,
//! as Rust does; `examples/node.rs` is a whole program, with a source and an observer of its own.
//!
//! # Map
//!
//! A module imports only from those above it.
//!
//! | module | what it is |
//! |---|---|
//! | `message` | names, ids, parcels, spans, outcomes: pure values, told at the root and in [`store::message`] |
//! | `backoff`, `moment` | ever longer pauses; moments that no time is too long for |
//! | `drivers` | whether a tokio runtime has timers and an I/O driver |
//! | `process` | child processes that never outlive their parent |
//! | [`store`] | the contract in prose and as data; memory, SQLite, Redis; sessions that own their numbers |
//! | `fleet` | [`Fleet`], [`Queue`], [`Node`]: connect, push, generate, work |
//! | [`pool`] | children that are given tasks, one at a time each |
//! | [`deferred`] | calls made before what they need has started; stands on its own |
//! | [`cache`] | equal computations made once, and their values kept: in this process, or for a whole fleet |
//! | [`testing`] | a fleet in memory with its time in your hands; handlers tried on their own |
//! | [`admin`] | what people do to a fleet: import, errors, stop, destroy, pause, audit, overview, rates |
//! | [`settings`] | where a fleet is, by variables and a file; quantities as people write them |
//! | [`builtin`] | built-in sources (tick, lines, cron) and handlers (exec, noop, demo); subset sums; total sales |
//!
//! # Features
//!
//! All are on by default. What is at the root, and [`store`] without its stores, needs none.
//!
//! | feature | what it brings |
//! |---|---|
//! | `memory` | stores in this process, `memory:` |
//! | `sqlite` | stores in a file, `sqlite:PATH`; compiles SQLite, brings `memory` along |
//! | `redis` | stores in a Redis server, `redis://` |
//! | `redis-tls` | the way there by TLS, `rediss://`; brings `redis` along |
//! | `builtin` | the modules [`builtin`] and [`pool`] |
//! | `cron` | the source `builtin::Cron`; brings `builtin` along |
//! | `admin` | the module [`admin`] |
//! | `cache` | the module [`cache`] |
//! | `settings` | the module [`settings`] |
//! | `testing` | the module [`testing`]; brings `memory` along |

// What all of them need lies in the middle, so a part of it is idle without some; the full set is asked for all of it.
#![cfg_attr(
    not(all(
        feature = "memory",
        feature = "sqlite",
        feature = "redis",
        feature = "builtin",
        feature = "admin",
        feature = "cache",
        feature = "settings"
    )),
    allow(dead_code, unused_imports, reason = "only the full set uses everything")
)]

#[cfg(feature = "admin")]
pub mod admin;
mod backoff;
#[cfg(feature = "builtin")]
pub mod builtin;
#[cfg(feature = "cache")]
pub mod cache;
pub mod deferred;
mod drivers;
mod fleet;
mod level;
mod message;
mod moment;
mod panics;
#[cfg(feature = "builtin")]
pub mod pool;
#[cfg(any(feature = "builtin", feature = "admin"))]
#[doc(hidden)] // Public for `baton-bench` and `baton-testkit` alone, which start nodes as processes of their own.
pub mod process;
#[cfg(feature = "settings")]
pub mod settings;
pub mod store;
#[cfg(feature = "testing")]
pub mod testing;

pub use fleet::{
    Batch, BoxFuture, CallOptions, CallStatus, Chunk, ConnectError, Context, DEFAULT_FLEET, DEFAULT_QUEUE, Done,
    EmitError, Event, Failure, Fleet, FleetOptions, Flow, Follow, FollowError, Followed, Handled, Handler, Message,
    Node, NodeError, Observer, PushAllError, PushError, Queue, QueuePolicy, Report, ResultError, Role, Shutdown, Since,
    Source, SourceError, Stream,
};
pub use level::Level;
pub use message::{CallEvent, CallId, InvalidMessage, Key, MessageId, Name, SessionId};
pub use store::{CallState, Cancelling, StoreError, StoreUrl};
