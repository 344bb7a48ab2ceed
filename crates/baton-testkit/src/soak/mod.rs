//! The soak: a fleet of real processes on a real store under every fault there is, and a check of all it left behind.
//!
//! ```text
//! nodes ◄──signals── storm ──orders──► target (server, proxy)
//!   │                  ▲ gaps              │
//!   │ journals      observer ◄──surveys── store ◄──old tokens, old batons── replayer
//!   └──────────────► checker ◄──books, data, errors──┘
//! ```
//!
//! A run has three parts: the storm; then nodes that are workers only finish what is left, without faults; then the
//! checker compares ids, source positions, journals and books. Whatever must not be is a finding; a fault that never
//! fired is one too. The seed gives the order of faults again, not the timing of processes.

pub mod checker;
pub mod faults;
pub mod findings;
pub mod journal;
pub mod launch;
pub mod mixed;
pub mod nodes;
pub mod observer;
pub mod random;
pub mod replayer;
pub mod report;
pub mod storm;
pub mod target;
pub mod usage;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use baton::{
    Name,
    store::{Books, Order, Stop, Store, ask, open},
};
use tokio::time::{Instant, sleep, timeout};

use self::{
    checker::Sum,
    faults::{Deck, Fault, Fired},
    findings::Findings,
    launch::{FLEET, Launch, QUEUE, Role, SPARED},
    nodes::Nodes,
    observer::Observer,
    random::Random,
    replayer::Replayer,
    report::Measures,
    storm::{Stillness, Storm},
    target::Target,
    usage::Gauge,
};
pub use self::{
    report::{Report, Times},
    target::StoreKind,
};

/// How long nodes may take to stop when asked.
const STOPPING: Duration = Duration::from_secs(20);

/// What a soak is like.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The `baton` binary.
    pub program: PathBuf,
    /// The binary of mixed nodes.
    pub mixed: PathBuf,
    /// The store.
    pub store: StoreKind,
    /// How many nodes.
    pub nodes: usize,
    /// How long faults are thrown.
    pub seconds: u64,
    /// Gives the faults.
    pub seed: u64,
    /// Bytes the queue may hold.
    pub max_queue_bytes: u64,
    /// The backlog under which generators are killed too; 0 for none.
    pub deep: u64,
    /// Messages a second that must be finished under faults.
    pub rate: u64,
    /// The command whose children run the messages; none for handlers of the program itself.
    pub exec: Option<String>,
}

fn queue() -> Name {
    Name::new(QUEUE).expect("a good name")
}

/// Runs one soak; journals and logs of the nodes are left in the folder.
pub async fn run(settings: &Settings, folder: &Path) -> Report {
    let (findings, fired) = (Findings::default(), Fired::default());
    let fleet = Name::new(FLEET).expect("a good name");
    let mut target = Target::start(settings.store, folder).await;
    let url = target.direct();
    let store = open(&url, fleet.clone(), true).expect("a store that opens");
    let observer = Arc::new(Observer::start(store.clone(), queue(), findings.clone()));
    let launch = Launch {
        program: settings.program.clone(),
        mixed: Some(settings.mixed.clone()),
        folder: folder.to_owned(),
        stores: target.addresses(),
        max_queue_bytes: settings.max_queue_bytes,
        count: settings.nodes,
        role: Role::Auto,
        exec: settings.exec.clone(),
    };
    let mut report = Report::blank(settings);
    let mut still = Stillness::default();
    let mut sum = Sum::default();
    let nodes = Arc::new(Nodes::start(&launch, settings.seed, &findings));
    let pushing = observer.see(Duration::from_secs(30), |sight| sight.books().pushed > 0).await;
    if pushing.is_some() {
        let replayer = Replayer {
            url,
            fleet,
            queue: queue(),
            observer: observer.clone(),
            fired: fired.clone(),
            findings: findings.clone(),
        };
        let replays = replayer.start(settings.seed);
        let telling = tokio::spawn(tell(observer.clone(), fired.clone(), Instant::now()));
        let server = !target.is_file();
        let storm = Storm {
            target: &mut target,
            nodes: nodes.clone(),
            observer: &observer,
            store: store.clone(),
            fired: fired.clone(),
            findings: findings.clone(),
            random: Random::part(settings.seed, 10),
            deep: settings.deep,
            max_queue_bytes: settings.max_queue_bytes,
        };
        let deck = Deck::new(Random::part(settings.seed, 11), server, settings.seconds);
        let begin = Instant::now();
        let mut gauge = Gauge::new();
        let (watched, server_url) = (nodes.clone(), storm.target.server_url());
        let server_kib = async || match &server_url {
            Some(url) => Target::memory_kib(url).await,
            None => 0,
        };
        still = tokio::select! {
            still = storm.rage(deck, settings.seconds) => still,
            () = gauge.watch(&watched, SPARED, server_kib) => Stillness::default(),
        };
        drop(watched);
        report.seconds = begin.elapsed().as_secs();
        let length = begin.elapsed();
        (report.quarter, report.end) = (gauge.between(0.2, 0.3, length), gauge.between(0.9, 1.0, length));
        report.done_under_faults = observer.latest().map_or(0, |sight| sight.books().done);
        drop(replays);
        fired.note_many(Fault::LoseReply, target.lost_replies());
        stop(&store, nodes, &findings).await;
        let workers = Launch { role: Role::Worker, ..launch };
        finish(&store, &workers, settings.seed, &observer, &findings).await;
        telling.abort();
        sum = checker::check(&store, folder, &findings).await;
        // What is left of a finished fleet, once its errors are gone too, is what it lost.
        checker::drain_errors(&store, &findings).await;
        report.end.server_kib = server_kib().await;
        usage::judge(report.quarter, report.end, &findings);
    } else {
        findings.note("no message was pushed within 30 s of the start; see the nodes' logs");
    }
    (report.epochs, report.looks) = (observer.epochs(), observer.looks());
    report.judge(&Measures {
        still: &still,
        fired: &fired,
        findings: &findings,
        sum,
        deep: settings.deep,
        rate: settings.rate,
        server: settings.store == StoreKind::Redis,
    })
}

/// Asks all nodes to finish what runs and end.
async fn stop(store: &Arc<dyn Store>, nodes: Arc<Nodes>, findings: &Findings) {
    let Some(nodes) = Arc::into_inner(nodes) else {
        findings.note("nodes are still being struck");
        return;
    };
    nodes.expect_ends();
    // A node that joins after the order would not be meant by it, so it is given again while nodes start.
    let ordering = async {
        loop {
            ask(&**store, Order::Stop(Stop::Graceful, None)).await.ok();
            sleep(Duration::from_millis(500)).await;
        }
    };
    tokio::select! {
        () = nodes.ended(STOPPING) => {}
        () = ordering => {}
    }
}

/// Lets workers finish what is left.
async fn finish(store: &Arc<dyn Store>, launch: &Launch, seed: u64, observer: &Observer, findings: &Findings) {
    let nodes = Arc::new(Nodes::start(launch, seed, findings));
    // Retries are put off by seconds; a deep backlog takes its time.
    let mut last = u64::MAX;
    loop {
        let left = |sight: &observer::Sight| {
            let of_queue = |books: &Books| books.ready + books.delayed + books.in_flight;
            sight.survey.queues.iter().map(of_queue).sum::<u64>()
        };
        if observer.see(Duration::from_secs(10), |sight| left(sight) == 0).await.is_some() {
            break;
        }
        let now = observer.latest().map_or(0, |sight| left(&sight));
        if now >= last {
            findings.note(format!("the workers do not get on: {now} messages are left"));
            break;
        }
        last = now;
    }
    stop(store, nodes, findings).await;
}

/// Says every five seconds how far the soak is.
async fn tell(observer: Arc<Observer>, fired: Fired, begin: Instant) {
    let mut done = 0;
    loop {
        sleep(Duration::from_secs(5)).await;
        let Some(sight) = observer.latest() else { continue };
        let books = sight.books();
        eprintln!(
            "{:>4} s  pushed {}  done {} ({}/s)  backlog {}  dead {}  nodes {}  epoch {}  faults {}",
            begin.elapsed().as_secs(),
            books.pushed,
            books.done,
            books.done.saturating_sub(done) / 5,
            books.ready + books.delayed,
            books.failed,
            sight.survey.sessions.len(),
            sight.source().map_or(0, |source| source.epoch),
            fired.total(),
        );
        done = books.done;
    }
}

/// As [`run`], within a time that no sound run needs.
pub async fn run_bounded(settings: &Settings, folder: &Path) -> Report {
    let limit = Duration::from_secs(settings.seconds * 3 + 300);
    match timeout(limit, run(settings, folder)).await {
        Ok(report) => report,
        Err(_) => {
            let mut report = Report::blank(settings);
            report.findings.push(format!("the soak did not end within {limit:?}"));
            report
        }
    }
}
