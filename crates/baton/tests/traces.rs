//! What `tracing` gets of a node that has no observer.
#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use std::{
    cell::RefCell,
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use baton::{
    BoxFuture, Done, Failure, Fleet, FleetOptions, Name, Shutdown, Source, SourceError, Stream, store::MemoryStore,
};
use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

thread_local! {
    /// The spans this thread is in.
    static INSIDE: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// Keeps all events with the spans they were in.
#[derive(Clone, Default)]
struct Recorder(Arc<Records>);

#[derive(Default)]
struct Records {
    last: AtomicU64,
    spans: Mutex<BTreeMap<u64, String>>,
    events: Mutex<Vec<Record>>,
}

#[derive(Debug, Clone)]
struct Record {
    target: String,
    level: Level,
    fields: BTreeMap<String, String>,
    spans: Vec<String>,
}

#[derive(Default)]
struct Fields(BTreeMap<String, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.to_owned());
    }
}

impl Subscriber for Recorder {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &span::Attributes<'_>) -> span::Id {
        let id = self.0.last.fetch_add(1, Ordering::Relaxed) + 1;
        let mut fields = Fields::default();
        span.record(&mut fields);
        let fields: Vec<_> = fields.0.iter().map(|(name, value)| format!("{name}={value}")).collect();
        self.0.spans.lock().unwrap().insert(id, format!("{}{fields:?}", span.metadata().name()));
        span::Id::from_u64(id)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let known = self.0.spans.lock().unwrap();
        let spans = INSIDE.with_borrow(|inside| inside.iter().filter_map(|id| known.get(id).cloned()).collect());
        let (target, level) = (event.metadata().target().to_owned(), *event.metadata().level());
        self.0.events.lock().unwrap().push(Record { target, level, fields: fields.0, spans });
    }

    fn enter(&self, span: &span::Id) {
        INSIDE.with_borrow_mut(|inside| inside.push(span.into_u64()));
    }

    fn exit(&self, _: &span::Id) {
        INSIDE.with_borrow_mut(|inside| inside.truncate(inside.len().saturating_sub(1)));
    }
}

impl Record {
    fn says(&self, message: &str) -> bool {
        self.fields.get("message").is_some_and(|said| said == message)
    }
}

impl Recorder {
    /// The first event of this kind, as soon as there is one.
    async fn until(&self, wanted: impl Fn(&Record) -> bool) -> Record {
        let found = async {
            loop {
                if let Some(record) = self.0.events.lock().unwrap().iter().find(|record| wanted(record)) {
                    return record.clone();
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), found)
            .await
            .unwrap_or_else(|_| panic!("not in time: {:?}", self.0.events.lock().unwrap()))
    }
}

/// A source that cannot be opened, ever.
struct Broken;

impl Source for Broken {
    fn definition(&self) -> String {
        "broken".to_owned()
    }

    fn open<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Box<dyn Stream>, SourceError>> {
        tracing::info!("it is opened");
        Box::pin(async { Err(SourceError::for_good("its file is no file")) })
    }
}

#[tokio::test]
async fn a_node_without_an_observer_writes_events_with_fields_and_spans() {
    let recorder = Recorder::default();
    tracing::subscriber::set_global_default(recorder.clone()).unwrap();
    let fleet = Fleet::over(Arc::new(MemoryStore::default()), FleetOptions::new(Name::new("traced").unwrap()));
    fleet.queue::<u64>("mail").push(&1).await.unwrap();
    let node = fleet.node().source_into("mail", "numbers", Broken).handler("mail", async |_: u64, _| {
        tracing::info!("it is handled");
        Err::<Done, _>(Failure::fatal("no such address"))
    });
    let shutdown = Shutdown::new();
    let running = tokio::spawn(node.run(shutdown.clone()));

    let joined = recorder.until(|record| record.fields.contains_key("session")).await;
    assert_eq!((joined.target.as_str(), joined.level), ("baton", Level::INFO));
    let [session, host, pid] = ["session", "host", "pid"].map(|name| joined.fields[name].clone());
    assert_eq!(pid, std::process::id().to_string());
    assert_eq!(joined.fields["message"], format!("joined as {host}/{pid}, session {session}"));

    let failed = recorder.until(|record| record.level == Level::ERROR).await;
    assert_eq!(failed.fields["message"], "source numbers has failed for good: its file is no file");
    let fields = ["source", "error"].map(|name| failed.fields[name].as_str());
    assert_eq!(fields, ["numbers", "its file is no file"]);
    let epoch = &failed.fields["epoch"];

    let dead = recorder.until(|record| record.fields.contains_key("attempt")).await;
    let fields = ["queue", "id", "attempt", "error"].map(|name| dead.fields[name].as_str());
    assert_eq!((fields, dead.level), (["mail", "1", "1", "no such address"], Level::WARN));

    // What handlers and sources write themselves is found under their queue and their source.
    let handled = recorder.until(|record| record.says("it is handled")).await;
    assert_eq!(handled.spans, ["work[\"queue=mail\"]"]);
    let opened = recorder.until(|record| record.says("it is opened")).await;
    assert_eq!(opened.spans, [format!("generate[\"epoch={epoch}\", \"source=numbers\"]")]);

    shutdown.graceful();
    running.await.unwrap().unwrap();
    recorder.until(|record| record.says("left") && record.fields["session"] == session).await;
}
