//! A TCP proxy on loopback that loses replies on order: the request reaches the server, its answer reaches nobody.
//!
//! A reply counts as lost only if the server really sent bytes after the chosen request was passed on and none of
//! them were handed to the client. Requests are chosen by a text they contain, so that an order hits a call that
//! changes something and not a ping. A server that is away costs the client its connection, nothing else.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    task::{JoinHandle, JoinSet},
    time::timeout,
};

/// How long a server may take to answer a request whose reply is to be lost.
const ANSWER: Duration = Duration::from_secs(5);
/// Silence after which the answer is taken to be complete.
const SILENCE: Duration = Duration::from_millis(10);

/// What a proxy did so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deeds {
    /// Connections passed on.
    pub connections: u64,
    /// Requests carried out whose replies were thrown away.
    pub lost_replies: u64,
}

#[derive(Debug, Default)]
struct Counts {
    connections: AtomicU64,
    ordered: AtomicU64,
    lost: AtomicU64,
}

/// A proxy at work; gone when dropped, with its connections.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    upstream: Arc<AtomicU16>,
    counts: Arc<Counts>,
    task: JoinHandle<()>,
}

impl Proxy {
    /// Listens on a free loopback port in front of a loopback port. Orders hit requests that contain `marker`.
    pub async fn start(upstream: u16, marker: &'static [u8]) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let address = listener.local_addr().expect("its address");
        let (counts, upstream) = (Arc::<Counts>::default(), Arc::new(AtomicU16::new(upstream)));
        let task = tokio::spawn(accept(listener, upstream.clone(), marker, counts.clone()));
        Self { address, upstream, counts, task }
    }

    /// Leads connections made from now on to another port.
    pub fn lead_to(&self, upstream: u16) {
        self.upstream.store(upstream, Relaxed);
    }

    /// The port clients connect to.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.address.port()
    }

    /// Orders that the reply to the next fitting request is lost, on whichever connection it comes.
    pub fn lose_reply(&self) {
        self.counts.ordered.fetch_add(1, Relaxed);
    }

    /// What it did so far.
    #[must_use]
    pub fn deeds(&self) -> Deeds {
        Deeds { connections: self.counts.connections.load(Relaxed), lost_replies: self.counts.lost.load(Relaxed) }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, upstream: Arc<AtomicU16>, marker: &'static [u8], counts: Arc<Counts>) {
    // Dropped with this task, so that an abort ends the connections too.
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((client, _)) = accepted else { continue };
                connections.spawn(pass_on(client, upstream.load(Relaxed), marker, counts.clone()));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn pass_on(client: TcpStream, upstream: u16, marker: &'static [u8], counts: Arc<Counts>) {
    let Ok(server) = TcpStream::connect(("127.0.0.1", upstream)).await else { return };
    // Delayed segments would be measured as delays of the store.
    if client.set_nodelay(true).and(server.set_nodelay(true)).is_err() {
        return;
    }
    counts.connections.fetch_add(1, Relaxed);
    let cut = AtomicBool::new(false);
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    tokio::select! {
        () = requests(from_client, to_server, marker, &counts, &cut) => {}
        () = replies(from_server, to_client, &counts, &cut) => {}
    }
}

/// Passes requests on; after a chosen one it marks the connection and keeps the server's side open, since closing it
/// could discard the request unread.
async fn requests(
    mut client: OwnedReadHalf, mut server: OwnedWriteHalf, marker: &[u8], counts: &Counts, cut: &AtomicBool,
) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(len @ 1..) = client.read(&mut buffer).await {
        let request = &buffer[..len];
        let fits = request.windows(marker.len()).any(|window| window == marker);
        let chosen = fits && counts.ordered.fetch_update(Relaxed, Relaxed, |ordered| ordered.checked_sub(1)).is_ok();
        // Marked first: the answer may be back before the write returns.
        cut.fetch_or(chosen, Relaxed);
        if server.write_all(request).await.is_err() {
            return;
        }
        if chosen {
            return std::future::pending().await;
        }
    }
}

/// Passes replies on until the connection is marked; then it throws the answer away and ends the connection.
async fn replies(mut server: OwnedReadHalf, mut client: OwnedWriteHalf, counts: &Counts, cut: &AtomicBool) {
    let mut buffer = vec![0; 64 << 10];
    loop {
        let Ok(len @ 1..) = server.read(&mut buffer).await else { return };
        if cut.load(Relaxed) {
            break;
        }
        if client.write_all(&buffer[..len]).await.is_err() {
            return;
        }
    }
    counts.lost.fetch_add(1, Relaxed);
    let rest = async { while let Ok(Ok(1..)) = timeout(SILENCE, server.read(&mut buffer)).await {} };
    // Bounded, in case the server talks without end.
    timeout(ANSWER, rest).await.ok();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::{Persistence, RedisServer};

    async fn ask(stream: &mut TcpStream, command: &str) -> Option<String> {
        stream.write_all(command.as_bytes()).await.ok()?;
        let mut buffer = [0; 100];
        match timeout(Duration::from_secs(5), stream.read(&mut buffer)).await.expect("an answer or an end") {
            Ok(len @ 1..) => Some(String::from_utf8_lossy(&buffer[..len]).into_owned()),
            _ => None,
        }
    }

    #[tokio::test]
    async fn a_lost_reply_belongs_to_a_call_that_was_carried_out() {
        let server = RedisServer::start(Persistence::None);
        let proxy = Proxy::start(server.port(), b"INCR").await;
        for round in 1..=20 {
            let mut stream = TcpStream::connect(("127.0.0.1", proxy.port())).await.unwrap();
            assert_eq!(ask(&mut stream, "PING\r\n").await.as_deref(), Some("+PONG\r\n"));
            proxy.lose_reply();
            assert_eq!(ask(&mut stream, "PING\r\n").await.as_deref(), Some("+PONG\r\n"), "not chosen");
            assert_eq!(ask(&mut stream, "INCR n\r\n").await, None, "the reply is lost");
            assert_eq!(proxy.deeds(), Deeds { connections: round * 2 - 1, lost_replies: round });
            let mut again = TcpStream::connect(("127.0.0.1", proxy.port())).await.unwrap();
            assert_eq!(
                ask(&mut again, "GET n\r\n").await,
                Some(format!("${}\r\n{round}\r\n", round.to_string().len()))
            );
        }
    }

    #[tokio::test]
    async fn a_server_that_comes_back_is_reached_again() {
        let mut server = RedisServer::start(Persistence::None);
        let proxy = Proxy::start(server.port(), b"INCR").await;
        server.kill();
        let mut stream = TcpStream::connect(("127.0.0.1", proxy.port())).await.unwrap();
        assert_eq!(ask(&mut stream, "PING\r\n").await, None);
        server.restart();
        let mut stream = TcpStream::connect(("127.0.0.1", proxy.port())).await.unwrap();
        assert_eq!(ask(&mut stream, "PING\r\n").await.as_deref(), Some("+PONG\r\n"));
    }
}
