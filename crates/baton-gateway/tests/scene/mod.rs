//! A gateway of its own over a store of its own, and a peer that speaks to it in raw bytes.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on fails")]
#![allow(dead_code, reason = "each scenario uses a part")]

use std::{
    io::{ErrorKind, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    time::{Duration, Instant},
};

use baton::{Fleet, FleetOptions, Name, Shutdown};
use baton_gateway::{Gateway, GatewayOptions, Listen, Recipes};
use baton_servers::RedisServer;
use serde_json::Value;
use tokio::{runtime::Runtime, task::JoinHandle};

pub(crate) struct Scene {
    pub(crate) fleet: Fleet,
    pub(crate) address: SocketAddr,
    pub(crate) shutdown: Shutdown,
    pub(crate) runtime: Runtime,
    pub(crate) gateway: Option<JoinHandle<()>>,
}

impl Scene {
    /// Over a store in memory.
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    /// The same with other options.
    pub(crate) fn with(change: impl FnOnce(&mut GatewayOptions)) -> Self {
        let scene = Self::begin("memory:", |_| {}, change);
        scene.until_ready();
        scene
    }

    /// Over the store at `url`, which need not be up.
    pub(crate) fn begin(
        url: &str, of_fleet: impl FnOnce(&mut FleetOptions), change: impl FnOnce(&mut GatewayOptions),
    ) -> Self {
        let mut fleet = FleetOptions::new(Name::new("test").unwrap());
        fleet.wait = Duration::ZERO;
        of_fleet(&mut fleet);
        Self::over(|| Fleet::connect_with(&url.parse().unwrap(), fleet).unwrap(), change)
    }

    /// Over a fleet that is connected in the runtime of the gateway.
    pub(crate) fn over(connect: impl FnOnce() -> Fleet, change: impl FnOnce(&mut GatewayOptions)) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let (listen, recipes) = (Listen::At("127.0.0.1:0".parse().unwrap()), Some(Recipes::default()));
        let mut options = GatewayOptions { listen, recipes, ..Default::default() };
        change(&mut options);
        let (fleet, gateway) = runtime.block_on(async {
            let fleet = connect();
            let gateway = Gateway::bind(&fleet, options).await.unwrap();
            (fleet, gateway)
        });
        let (address, shutdown) = (gateway.address(), Shutdown::new());
        let gateway = Some(runtime.spawn(gateway.run(shutdown.clone())));
        Self { fleet, address, shutdown, runtime, gateway }
    }

    pub(crate) fn until_ready(&self) {
        until("the store answers", || self.get("/health/ready").status == 200);
    }

    pub(crate) fn peer(&self) -> Peer {
        Peer::new(self.address)
    }

    /// A request by a peer of its own.
    pub(crate) fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let mut peer = self.peer();
        peer.send(&request(method, path, headers, body));
        peer.answer()
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[], b"")
    }

    pub(crate) fn push(&self, queue: &str, body: &[u8]) -> Answer {
        self.ask("POST", &format!("/push/{queue}"), &[JSON], body)
    }

    /// A request whose answer streams: its head, and who reads on.
    pub(crate) fn open(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> (Answer, Peer) {
        let mut peer = self.peer();
        peer.send(&request(method, path, headers, body));
        let head = peer.head();
        (head, peer)
    }

    /// Runs a node beside the gateway until the scene ends.
    pub(crate) fn work(&self, node: baton::Node) {
        self.runtime.spawn(node.run(self.shutdown.clone()));
    }

    /// How many messages of the queue wait.
    pub(crate) fn ready(&self, queue: &str) -> u64 {
        let survey = self.runtime.block_on(self.fleet.ask(baton::store::TakeSurvey)).unwrap();
        survey.queues.iter().find(|books| books.queue.as_str() == queue).map_or(0, |books| books.ready)
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.shutdown.now();
        if let Some(gateway) = self.gateway.take() {
            self.runtime.block_on(gateway).ok();
        }
    }
}

pub(crate) const JSON: (&str, &str) = ("content-type", "application/json");
pub(crate) const SSE: (&str, &str) = ("accept", "text/event-stream");
pub(crate) const NDJSON: (&str, &str) = ("content-type", "application/x-ndjson");

/// Runs a test over each store.
pub(crate) fn on_each_store(test: impl Fn(&Scene)) {
    test(&Scene::new());
    let folder = tempfile::TempDir::new().unwrap();
    let sqlite = Scene::begin(&format!("sqlite:{}", folder.path().join("q.db").display()), |_| {}, |_| {});
    sqlite.until_ready();
    test(&sqlite);
    drop(sqlite);
    let server = RedisServer::start(folder.path(), &["--save", "", "--appendonly", "no"]).unwrap();
    let redis = Scene::begin(&server.url(), |_| {}, |_| {});
    redis.until_ready();
    test(&redis);
}

/// The bytes of a request. A header `host` takes the place of the usual one.
pub(crate) fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut head = format!("{method} {path} HTTP/1.1\r\n");
    if !headers.iter().any(|(name, _)| *name == "host") {
        head.push_str("host: localhost\r\n");
    }
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if !body.is_empty() && !headers.iter().any(|(name, _)| *name == "transfer-encoding" || *name == "content-length") {
        head.push_str(&format!("content-length: {}\r\n", body.len()));
    }
    [head.as_bytes(), b"\r\n", body].concat()
}

/// One end of a connection.
pub(crate) struct Peer {
    pub(crate) stream: TcpStream,
    read: Vec<u8>,
}

impl Peer {
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self::over(TcpStream::connect(address).unwrap())
    }

    /// At the end of a connection that was made otherwise.
    pub(crate) fn over(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        Self { stream, read: Vec::new() }
    }

    /// The same end of the same connection, for a thread that sends while another reads.
    pub(crate) fn sender(&self) -> Self {
        Self { stream: self.stream.try_clone().unwrap(), read: Vec::new() }
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// Sends what the other end may not want to the end.
    pub(crate) fn try_send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).ok();
    }

    /// Whether the other end closes, and how long that takes.
    pub(crate) fn closes(&mut self) -> Duration {
        let begun = Instant::now();
        let mut rest = [0; 4096];
        loop {
            match self.stream.read(&mut rest) {
                Ok(0) => return begun.elapsed(),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return begun.elapsed(),
                Err(error) => panic!("never closed: {error}"),
            }
        }
    }

    fn more(&mut self) -> usize {
        let mut bytes = [0; 16 << 10];
        let count = self.stream.read(&mut bytes).unwrap();
        self.read.extend_from_slice(&bytes[..count]);
        count
    }

    /// The head of an answer.
    pub(crate) fn head(&mut self) -> Answer {
        loop {
            if let Some(end) = find(&self.read, b"\r\n\r\n") {
                let head: Vec<u8> = self.read.drain(..end + 4).collect();
                let head = String::from_utf8(head).unwrap();
                let mut lines = head.trim_end().split("\r\n");
                let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
                let headers = lines.map(|line| line.split_once(": ").unwrap());
                let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).collect();
                return Answer { status, headers, body: Vec::new() };
            }
            assert!(self.more() > 0, "closed within a head: {:?}", String::from_utf8_lossy(&self.read));
        }
    }

    /// The next answer, whole. Those of HEAD have to be asked for by `head`.
    pub(crate) fn answer(&mut self) -> Answer {
        let mut answer = self.head();
        if let Some(length) = answer.header("content-length") {
            let length: usize = length.parse().unwrap();
            while self.read.len() < length {
                assert!(self.more() > 0, "closed within a body");
            }
            answer.body = self.read.drain(..length).collect();
        } else if answer.header("transfer-encoding") == Some("chunked") {
            while let Some(chunk) = self.chunk() {
                answer.body.extend(chunk);
            }
        }
        answer
    }

    /// Reads on until this was streamed; all that was read, without births.
    pub(crate) fn streamed(&mut self, wanted: &str) -> String {
        let mut text = String::new();
        while !text.contains(wanted) {
            let Some(chunk) = self.chunk() else { panic!("never {wanted:?}: {text}") };
            text.push_str(&unborn(&String::from_utf8(chunk).unwrap()));
        }
        text
    }

    /// All that is streamed up to the end, without births.
    pub(crate) fn rest(&mut self) -> String {
        let mut text = Vec::new();
        while let Some(chunk) = self.chunk() {
            text.extend(chunk);
        }
        unborn(&String::from_utf8(text).unwrap())
    }

    /// The next chunk of a body; nothing at its end.
    pub(crate) fn chunk(&mut self) -> Option<Vec<u8>> {
        let end = loop {
            match find(&self.read, b"\r\n") {
                Some(end) => break end,
                None => assert!(self.more() > 0, "closed within a chunk"),
            }
        };
        let size = usize::from_str_radix(std::str::from_utf8(&self.read[..end]).unwrap(), 16).unwrap();
        while self.read.len() < end + 2 + size + 2 {
            assert!(self.more() > 0, "closed within a chunk");
        }
        let chunk: Vec<u8> = self.read.drain(..end + 2 + size + 2).collect();
        (size > 0).then(|| chunk[end + 2..end + 2 + size].to_vec())
    }
}

/// What was answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(it, _)| it == name).map(|(_, value)| value.as_str())
    }

    /// The message that `Location` names, as `/messages/queue/id` without its birth.
    pub(crate) fn message(&self) -> Option<String> {
        self.header("location").map(unborn)
    }

    /// The body as JSON, and the birth that it names besides.
    #[track_caller]
    pub(crate) fn json_and_birth(&self) -> (Value, u64) {
        let mut json = self.json();
        let born = json.as_object_mut().and_then(|it| it.remove("born")).and_then(|born| born.as_u64());
        (json, born.unwrap_or_else(|| panic!("no birth: {self:?}")))
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    /// Asserts a problem of this status and code, and gives its JSON.
    #[track_caller]
    pub(crate) fn problem(&self, status: u16, code: &str) -> Value {
        assert_eq!(self.status, status, "{self:?}: {}", self.text());
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        let json = self.json();
        assert_eq!((&json["status"], &json["code"]), (&status.into(), &code.into()), "{json}");
        assert!(json["title"].is_string() && json["detail"].is_string() && json["type"] == "about:blank", "{json}");
        json
    }
}

/// A text without the births in the names of messages, which are other ones each time.
pub(crate) fn unborn(text: &str) -> String {
    let mut parts = text.split('@');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.trim_start_matches(|c: char| c.is_ascii_digit()))
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

/// Waits for a condition; a minute is for ever here.
#[track_caller]
pub(crate) fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !condition() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
