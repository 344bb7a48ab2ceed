//! Rights that are taken away from live nodes: no message is lost, and the books balance once they are back.
//!
//! Each run takes a few of the commands; `BATON_RIGHTS=all` takes all of them, in about a minute.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use baton::{
    CallOptions, Context, Done, Failure, Fleet, FleetOptions, Key, QueuePolicy, Shutdown, admin::Admin, builtin::Tick,
};
use futures_util::future::join_all;
use tokio::time::{Instant, sleep, timeout};

use crate::{RedisServer, behind, name, used};

/// How long a right is away.
const AWAY: Duration = Duration::from_millis(700);
/// Fleets at once, each with a command of its own that is taken away.
const AT_ONCE: usize = 6;
/// What one right may take, with all that follows.
const LIMIT: Duration = Duration::from_secs(90);
/// Which commands are taken away, instead of a few: `all`, or their names with a space between.
const WHICH: &str = "BATON_RIGHTS";
/// They are in each run: what is half done without them was lost once.
const ALWAYS: [&str; 3] = ["UNLINK", "SETRANGE", "RPUSHX"];

/// One fleet whose user lacks a command for a while.
struct Trial {
    command: String,
    fleet: String,
    url: String,
    /// What pushes were told that it is stored, and what handlers have seen.
    stored: Mutex<BTreeSet<u64>>,
    seen: Mutex<BTreeSet<u64>>,
    /// Why nodes ended.
    reasons: Mutex<Vec<String>>,
}

impl Trial {
    /// A fleet of its own, with a user of its own who has the rights that README names.
    fn new(server: &RedisServer, command: &str) -> Arc<Self> {
        let fleet = format!("f{}", command.to_lowercase());
        behind::<()>(
            server,
            &format!(
                "ACL SETUSER {fleet} on >secret ~{{{fleet}/0}}* +@read +@write +@scripting +@transaction +@connection \
                 +time -@dangerous +info"
            ),
        );
        let url = format!("redis://{fleet}:secret@127.0.0.1:{}/", server.port);
        let (stored, seen, reasons) = (Mutex::default(), Mutex::default(), Mutex::default());
        Arc::new(Self { command: command.to_owned(), fleet, url, stored, seen, reasons })
    }

    fn fleet(&self) -> Fleet {
        let mut options = FleetOptions::new(name(&self.fleet));
        (options.session.lease, options.session.heartbeat) = (Duration::from_secs(2), Duration::from_millis(300));
        Fleet::connect_with(&self.url.parse().unwrap(), options).unwrap()
    }

    /// A node that is started again whenever it ends, as a supervisor does it.
    async fn supervise(self: Arc<Self>, shutdown: Shutdown) {
        while shutdown.asked().is_none() {
            let fleet = self.fleet();
            let policy = QueuePolicy { retries: 2, backoff: Duration::from_millis(50), ..QueuePolicy::default() };
            let (trial, later) = (Arc::clone(&self), Arc::clone(&self));
            let node = fleet
                .node()
                .lease(Duration::from_secs(2), Duration::from_millis(300))
                .policy(policy)
                .source_into("ticks", "ticks", Tick::every(Duration::from_millis(5)).count(300))
                .handler("ticks", async |_: serde_json::Value, _: Context| Ok(Done::default()))
                .handler("work", move |body: String, context: Context| {
                    let trial = Arc::clone(&trial);
                    async move { trial.run(&body, &context).await }
                })
                .handler("later", move |body: String, _: Context| {
                    let later = Arc::clone(&later);
                    async move {
                        later.note(&body);
                        Ok(Done::default())
                    }
                });
            if let Err(error) = node.run(shutdown.clone()).await {
                self.reasons.lock().unwrap().push(error.to_string());
                sleep(Duration::from_millis(50)).await;
            }
        }
    }

    fn note(&self, body: &str) -> u64 {
        let number = body.split(':').next().unwrap().parse().unwrap();
        self.seen.lock().unwrap().insert(number);
        number
    }

    /// Some of every kind of end.
    async fn run(&self, body: &str, context: &Context) -> Result<Done, Failure> {
        let number = self.note(body);
        if context.call().is_some() {
            // A log that cannot be written to is no failure of the work.
            context.emit("half", &number).await.ok();
        }
        match number % 8 {
            1 => Err(Failure::new("again")),
            2 => Err(Failure::fatal("never")),
            3 => Ok(Done::with(&number)?.then("later", &body)?),
            4 => Ok(Done::with(&number)?),
            _ => Ok(Done::default()),
        }
    }

    /// Pushes in one of the ways, until it is asked to stop.
    async fn push(self: Arc<Self>, way: u64, shutdown: Shutdown) {
        let fleet = self.fleet();
        let queue = fleet.queue::<String>("work");
        let mut next = 1_000_000 * (way + 1);
        while shutdown.asked().is_none() {
            let first = next;
            // Short ones, some with a key of their own in the store, and some that are staged.
            let body = |number: u64| {
                let length = [10, 700, 6_000][usize::from(number % 9 == 7) + usize::from(number % 31 == 7)];
                format!("{number}:{}", "x".repeat(length))
            };
            let numbers = match way {
                2 => first..first + 300,
                _ => first..first + 1,
            };
            next = numbers.end;
            let pushing = async {
                match way {
                    0 => queue.push(&body(first)).await.is_ok(),
                    1 => queue.push_once(&Key::new(&format!("k{first}")).unwrap(), &body(first)).await.is_ok(),
                    2 => queue.push_all(numbers.clone().map(body)).await.is_ok(),
                    _ => queue.call(&body(first), &CallOptions::default()).await.is_ok(),
                }
            };
            // One that waits for the store is told nothing.
            if timeout(Duration::from_secs(5), pushing).await == Ok(true) {
                self.stored.lock().unwrap().extend(numbers);
            }
            sleep(Duration::from_millis(if way == 2 { 40 } else { 5 })).await;
        }
    }

    /// Loads the fleet, takes the right away and gives it back, and looks whether all is there.
    async fn hold(self: Arc<Self>, admin: redis::Client) {
        let grant = async |sign: &str| {
            let mut connection = admin.get_multiplexed_async_connection().await.unwrap();
            let rule = format!("{sign}{}", self.command.to_lowercase());
            redis::cmd("ACL").arg("SETUSER").arg(&self.fleet).arg(rule).exec_async(&mut connection).await.unwrap();
        };
        let (nodes, pushers) = (Shutdown::new(), Shutdown::new());
        let working: Vec<_> = (0..2).map(|_| tokio::spawn(Arc::clone(&self).supervise(nodes.clone()))).collect();
        let pushing: Vec<_> = (0..4).map(|way| tokio::spawn(Arc::clone(&self).push(way, pushers.clone()))).collect();
        let deadline = Instant::now() + LIMIT;
        while self.seen.lock().unwrap().len() < 100 {
            assert!(Instant::now() < deadline, "-{}: nothing is done: {:?}", self.command, self.reasons);
            sleep(Duration::from_millis(10)).await;
        }
        grant("-").await;
        sleep(AWAY).await;
        grant("+").await;
        sleep(Duration::from_millis(200)).await;
        pushers.graceful();
        join_all(pushing).await.into_iter().for_each(|ended| ended.unwrap());
        let admin = Admin::new(&self.fleet());
        let queues = [name("work"), name("later"), name("ticks")];
        let done = timeout(LIMIT, admin.until_done(&queues, &[name("ticks")], |_, _| {})).await;
        let audit = admin.audit(None, Some(Duration::from_secs(20))).await.unwrap();
        let reasons = self.reasons.lock().unwrap().clone();
        assert!(audit.balanced && done.is_ok(), "-{}: {audit:?} {reasons:?}", self.command);
        nodes.graceful();
        join_all(working).await.into_iter().for_each(|ended| ended.unwrap());
        let (stored, seen) = (self.stored.lock().unwrap(), self.seen.lock().unwrap());
        let lost: Vec<_> = stored.difference(&seen).take(10).collect();
        assert!(lost.is_empty(), "-{}: of {} stored these were lost: {lost:?}", self.command, stored.len());
        for reason in reasons {
            assert!(reason.contains("does not let user"), "-{}: {reason}", self.command);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_right_that_is_taken_away_loses_nothing() {
    let mut commands: Vec<String> = used::commands().into_iter().collect();
    match std::env::var(WHICH).as_deref() {
        Ok("all") => {}
        Ok(named) => commands.retain(|command| named.split(' ').any(|name| name == command)),
        Err(_) => {
            let seed = std::env::var("BATON_SEED").ok().and_then(|seed| seed.parse().ok());
            let seed: usize = seed.unwrap_or_else(|| std::process::id() as usize);
            println!("BATON_SEED={seed}");
            let drawn: Vec<_> = (0..AT_ONCE - ALWAYS.len()).map(|nth| (seed + nth * 23) % commands.len()).collect();
            let drawn: Vec<_> = drawn.into_iter().map(|at| commands[at].clone()).collect();
            commands.retain(|command| ALWAYS.contains(&command.as_str()) || drawn.contains(command));
        }
    }
    let server = RedisServer::start(&[]);
    for some in commands.chunks(AT_ONCE) {
        println!("{some:?}");
        let admin = redis::Client::open(server.url()).unwrap();
        let trials = some.iter().map(|command| tokio::spawn(Trial::new(&server, command).hold(admin.clone())));
        join_all(trials.collect::<Vec<_>>()).await.into_iter().for_each(|ended| ended.unwrap());
    }
}
