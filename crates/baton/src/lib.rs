//! A fleet of identical nodes over one store: nothing is lost, nothing is completed twice, and the books prove it.
//!
//! What is promised is exactly-once **accounting** and at-least-once **execution**: a message may run again after a
//! crash, but it is counted as done or dead once, and what its outcome stored (result, follow-ups) is stored once.
//!
//! ```
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! use baton::{Fleet, store::TakeSurvey};
//!
//! let fleet = Fleet::connect("memory:")?; // or sqlite:jobs.db, redis://127.0.0.1/
//! let id = fleet.queue::<str>("greetings").push("hello").await?;
//! assert_eq!(id.0, 1);
//!
//! let books = &fleet.ask(TakeSurvey).await?.queues[0];
//! assert_eq!((books.pushed, books.ready), (1, 1));
//! assert!(books.balance());
//! # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
//! ```
//!
//! # Map
//!
//! A module imports only from those above it.
//!
//! | module | what it is |
//! |---|---|
//! | [`message`] | names, ids, parcels, pieces, outcomes: pure values |
//! | [`store`] | the contract in prose and as data; memory, SQLite, Redis; sessions that own their numbers |
//! | `fleet` | [`Fleet`] and [`Queue`]: connect and push |
//! | [`jobs`] | built-in sources (tick, lines, cron) and handlers (noop, demo) |

mod fleet;
pub mod jobs;
pub mod message;
pub mod store;

pub use fleet::{
    Batch, BoxFuture, Cancel, ConnectError, Context, DEFAULT_FLEET, DEFAULT_QUEUE, Done, Failure, Fleet, FleetOptions,
    Flow, Handler, Message, Node, NodeError, Observer, PushError, Queue, QueuePolicy, Report, Role, Source,
    SourceError, Stream,
};
