//! A gateway in this process on the store of a sandbox, without a node: whoever works is another process, which can be killed.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on fails")]
#![allow(dead_code, reason = "each scenario uses a part")]

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use baton::{Fleet, Shutdown};
use baton_gateway::{Gateway, GatewayOptions, Listen, Recipes};
use serde_json::Value;

use super::sandbox::until;

pub(crate) struct Web {
    pub(crate) address: SocketAddr,
    shutdown: Shutdown,
    runtime: Option<tokio::runtime::Runtime>,
}

impl Web {
    /// In front of the fleet in the store at `url`.
    pub(crate) fn over(url: &str) -> Self {
        Self::with(url, |_| {})
    }

    /// The same with other options.
    pub(crate) fn with(url: &str, change: impl FnOnce(&mut GatewayOptions)) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let (listen, recipes) = (Listen::At("127.0.0.1:0".parse().unwrap()), Some(Recipes::default()));
        let (shutdown, mut options) = (Shutdown::new(), GatewayOptions { listen, recipes, ..Default::default() });
        change(&mut options);
        let gateway = runtime.block_on(async {
            let fleet = Fleet::connect(url).unwrap();
            Gateway::bind(&fleet, options).await.unwrap()
        });
        let address = gateway.address();
        runtime.spawn(gateway.run(shutdown.clone()));
        let web = Self { address, shutdown, runtime: Some(runtime) };
        until("the store answers", || web.ask("GET", "/health/ready", "").0 == 200);
        web
    }

    /// A request as HTTP/1.0, so that the body comes as it is and the end of the connection is its end.
    fn send(&self, method: &str, path: &str, headers: &str, body: &str) -> BufReader<TcpStream> {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let length = if body.is_empty() { String::new() } else { format!("content-length: {}\r\n", body.len()) };
        write!(stream, "{method} {path} HTTP/1.0\r\nhost: localhost\r\ncontent-type: application/json\r\n{headers}{length}\r\n{body}")
            .unwrap();
        BufReader::new(stream)
    }

    /// The status and the body of an answer.
    pub(crate) fn ask(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let mut answer = String::new();
        self.send(method, path, "", body).read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    /// How a message stands.
    pub(crate) fn message(&self, message: &str) -> Value {
        let (status, body) = self.ask("GET", &format!("/messages/{message}"), "");
        assert_eq!(status, 200, "{message}: {body}");
        serde_json::from_str(&body).unwrap()
    }

    pub(crate) fn state(&self, message: &str) -> String {
        self.message(message)["state"].as_str().unwrap().to_owned()
    }

    /// Pushes a call; its id.
    pub(crate) fn push(&self, queue: &str, body: &str) -> String {
        let (status, body) = self.ask("POST", &format!("/push/{queue}"), body);
        assert_eq!(status, 202, "{body}");
        let id = serde_json::from_str::<Value>(&body).unwrap()["ids"][0]["first"].as_u64().unwrap();
        format!("{queue}/{id}")
    }

    /// Cancels a message; whether it had not ended before.
    pub(crate) fn cancel(&self, message: &str) -> bool {
        let (status, body) = self.ask("DELETE", &format!("/messages/{message}"), "");
        assert!(matches!(status, 200 | 202), "{message}: {status} {body}");
        status == 202
    }

    /// Follows as server-sent events.
    pub(crate) fn follow(&self, method: &str, path: &str, body: &str) -> Events {
        let mut reader = self.send(method, path, "accept: text/event-stream\r\n", body);
        let mut status = String::new();
        reader.read_line(&mut status).unwrap();
        assert!(status.contains(" 200 "), "{status}");
        let mut line = status;
        while !line.trim().is_empty() {
            line.clear();
            reader.read_line(&mut line).unwrap();
        }
        Events { reader }
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        self.shutdown.now();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(Duration::from_secs(5));
        }
    }
}

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) data: String,
}

impl Event {
    pub(crate) fn number(&self) -> u64 {
        self.id.rsplit_once(':').unwrap().1.parse().unwrap()
    }

    pub(crate) fn is_last(&self) -> bool {
        ["end", "error", "cancelled"].contains(&self.name.as_str())
    }
}

/// Events as they come.
pub(crate) struct Events {
    reader: BufReader<TcpStream>,
}

impl Iterator for Events {
    type Item = Event;

    /// The next event; nothing at the end of the stream.
    fn next(&mut self) -> Option<Event> {
        let mut fields = BTreeMap::new();
        let mut line = String::new();
        loop {
            line.clear();
            if self.reader.read_line(&mut line).unwrap() == 0 {
                assert!(fields.is_empty(), "the stream ends within an event: {fields:?}");
                return None;
            }
            match line.trim_end_matches('\n').split_once(": ") {
                Some((name, value)) if !name.is_empty() => {
                    fields.insert(name.to_owned(), value.to_owned());
                }
                _ if line == "\n" && fields.contains_key("event") => {
                    let mut field = |name: &str| fields.remove(name).unwrap_or_default();
                    return Some(Event { id: field("id"), name: field("event"), data: field("data") });
                }
                _ if line == "\n" => fields.clear(),
                _ => {}
            }
        }
    }
}
