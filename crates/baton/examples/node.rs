//! A node with a source and an observer of its own: `cargo run -p baton-fleet --example node -- sqlite:baton.db`

use std::{
    error::Error,
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use baton::{
    Batch, BoxFuture, Context, Done, Event, Fleet, Flow, Name, Observer, Shutdown, Source, SourceError, Stream,
    admin::Admin, store::message::Range,
};
use bytes::Bytes;

/// Prints an error as it is meant to be read. A `main` that returns it shows the fields of its type instead.
#[tokio::main]
async fn main() -> ExitCode {
    let url = std::env::args().nth(1).unwrap_or_else(|| "memory:".to_owned());
    match count_down(&url, 10).await {
        Ok(ran) => {
            println!("{ran} messages were run");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs a node until its source has ended and all of its messages have run; how many did in this process.
pub(crate) async fn count_down(url: &str, from: u64) -> Result<u64, Box<dyn Error>> {
    let fleet = Fleet::connect(url)?;
    let (counter, shutdown) = (Arc::new(Counter::default()), Shutdown::new());
    let node = fleet
        .node()
        .source_into("launch", "countdown", Countdown { from })
        .handler("launch", async |number: u64, context: Context| {
            println!("{number} ({})", context.key());
            Ok(Done::default())
        })
        .observed_by(counter.clone());
    let running = tokio::spawn(node.run(shutdown.clone()));
    let (admin, queues, sources) = (Admin::new(&fleet), [Name::new("launch")?], [Name::new("countdown")?]);
    let done = admin.until_done(&queues, &sources, |queue, why| println!("{queue} is held up: {why:?}"));
    tokio::time::timeout(Duration::from_secs(60), done).await?;
    shutdown.graceful();
    running.await??;
    Ok(counter.ran.load(Relaxed))
}

/// The numbers from `from` down to 1. Its cursor is the last number it gave: whichever node goes on begins behind it.
struct Countdown {
    from: u64,
}

impl Source for Countdown {
    /// A countdown from another number is another source.
    fn definition(&self) -> String {
        format!("countdown from {}", self.from)
    }

    fn open<'a>(&'a self, cursor: &'a str) -> BoxFuture<'a, Result<Box<dyn Stream>, SourceError>> {
        Box::pin(async move {
            let left = match cursor {
                "" => self.from,
                // Trying again would not make it a number.
                text => text.parse::<u64>().map_err(SourceError::for_good)?.saturating_sub(1),
            };
            Ok(Box::new(Numbers { left }) as Box<dyn Stream>)
        })
    }
}

struct Numbers {
    left: u64,
}

impl Stream for Numbers {
    fn pull<'a>(&'a mut self, batch: &'a mut Batch) -> BoxFuture<'a, Result<Flow, SourceError>> {
        Box::pin(async move {
            while self.left > 0 && !batch.is_full() {
                batch.add(self.left.to_string().as_bytes())?;
                batch.reach(self.left);
                self.left -= 1;
            }
            Ok(if self.left == 0 { Flow::End } else { Flow::More })
        })
    }
}

/// Counts what is run, and prints what happens to the node.
#[derive(Default)]
struct Counter {
    ran: AtomicU64,
}

impl Observer for Counter {
    fn ran(&self, _: &Name, range: Range, _: &Bytes) {
        self.ran.fetch_add(range.len.into(), Relaxed);
    }

    fn on_event(&self, event: &Event) {
        if !event.is_routine() {
            println!("{event}");
        }
    }
}
