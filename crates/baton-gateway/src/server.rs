//! The loop that accepts connections.

use std::{
    fmt, io,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use axum::Router;
use baton::{
    Fleet, Name, Shutdown,
    builtin::sales::{Sales, SalesError},
    cache::{Cache, CacheOptions},
};
use rustix::net::sockopt;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};

use crate::{
    GatewayEar, GatewayEvent, Limits, connection,
    fleet_view::FleetView,
    gate,
    hosts::Hosts,
    limits::make_room,
    pace::Pace,
    readiness::Readiness,
    room::Room,
    routes,
    say::Speaker,
    state::State,
    threads::Threads,
    tokens::{Keeper, Standing, TokenError, TokenFile},
};

/// The default address.
pub const DEFAULT_ADDRESS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8000);
/// How many ports after it are tried.
const PORTS: u16 = 100;
/// How long peers have to read the last answers.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// How long nothing is accepted after the system could not.
const AFTER_A_FAILURE: Duration = Duration::from_millis(50);
/// The answer to connections over the bound, as JSON.
const TOO_MANY: &str = "{\"type\":\"about:blank\",\"title\":\"Service Unavailable\",\"status\":503,\
    \"code\":\"too-many-connections\",\"detail\":\"the gateway has as many connections as it may have; try again later\"}";
/// Keep-alive: the silence before the first probe, the pause between probes, and their number.
const SILENT: Duration = Duration::from_secs(30);
const ASK_EVERY: Duration = Duration::from_secs(10);
const ASKED: u32 = 3;

/// Where a gateway listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Listen {
    /// At [`DEFAULT_ADDRESS`].
    #[default]
    Default,
    /// At [`DEFAULT_ADDRESS`] or, if that is taken, at the next free port.
    NextFree,
    /// At this address.
    At(SocketAddr),
}

/// The routes of the recipes: `/subsetSum`, `/totalSales`, `/sales` and `/say`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recipes {
    /// The file with the sales; without one there are none.
    pub sales: Option<PathBuf>,
    /// How long the module behind `/say` takes to start: requests that come earlier wait.
    pub demo_init: Duration,
    /// How long a search goes on whose caller has gone, and could come again: a second at least.
    pub linger: Duration,
}

impl Default for Recipes {
    fn default() -> Self {
        Self { sales: None, demo_init: Duration::ZERO, linger: Duration::from_secs(10) }
    }
}

/// How a gateway is set up.
#[derive(Clone)]
pub struct GatewayOptions {
    /// Where it listens.
    pub listen: Listen,
    /// Names by which it is addressed, in addition to `localhost` and its own address.
    pub hosts: Vec<String>,
    /// The queues that the fleet's description names. Messages for a queue that is neither one of them, nor stored, nor
    /// worked for by a live node are refused; without a description, messages for any queue are taken.
    pub queues: Option<Vec<Name>>,
    /// The tokens; without a file, or with an empty one, every caller on this machine may do everything.
    pub tokens: Option<TokenFile>,
    /// The recipes; without them their routes answer 404.
    pub recipes: Option<Recipes>,
    /// Its bounds.
    pub limits: Limits,
    /// The listener for its events.
    pub ear: Option<GatewayEar>,
}

impl Default for GatewayOptions {
    fn default() -> Self {
        let (listen, limits) = (Listen::default(), Limits::default());
        Self { listen, hosts: Vec::new(), queues: None, tokens: None, recipes: None, limits, ear: None }
    }
}

impl fmt::Debug for GatewayOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { listen, hosts, queues, tokens, recipes, limits, ear: _ } = self;
        let mut shown = f.debug_struct("GatewayOptions");
        shown
            .field("listen", listen)
            .field("hosts", hosts)
            .field("queues", queues)
            .field("tokens", tokens)
            .field("recipes", recipes)
            .field("limits", limits);
        shown.finish_non_exhaustive()
    }
}

/// Why a gateway does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GatewayError {
    /// Others could reach it, and there is no token.
    #[error("{0} can be reached from other machines, and there is no token")]
    Open(SocketAddr),
    /// The tokens cannot be used.
    #[error(transparent)]
    Tokens(#[from] TokenError),
    /// There can be no sales where they are to be.
    #[error(transparent)]
    Sales(SalesError),
    /// Nothing can listen there.
    #[error("cannot listen at {address}: {error}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why not.
        error: io::Error,
    },
    /// The system gives no thread.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

/// A gateway that listens, and answers once it runs.
pub struct Gateway {
    listener: TcpListener,
    address: SocketAddr,
    connections: usize,
    threads: Threads,
    state: Arc<State>,
}

impl Gateway {
    /// Listens. The store need not be up.
    ///
    /// # Errors
    /// [`GatewayError`]: e.g. an address that other machines can reach and no token guards, or sales without a folder.
    pub async fn bind(fleet: &Fleet, options: GatewayOptions) -> Result<Self, GatewayError> {
        let GatewayOptions { listen, hosts, queues, tokens, recipes, limits, ear } = options;
        let keeper = Keeper::new(tokens)?;
        let has_recipes = recipes.is_some();
        let Recipes { sales, demo_init, linger } = recipes.unwrap_or_default();
        let sales = sales.map(Sales::at);
        // A file that is not there yet may come; its folder does not.
        if let Some(Err(error @ SalesError::Folder { .. })) = sales.as_ref().map(Sales::look) {
            return Err(GatewayError::Sales(error));
        }
        if let Listen::At(address) = listen
            && !address.ip().is_loopback()
        {
            if !keeper.has_some() {
                return Err(GatewayError::Open(address));
            }
            keeper.demand();
        }
        let listener = bind(listen).await?;
        let address =
            listener.local_addr().map_err(|error| GatewayError::Listen { address: DEFAULT_ADDRESS, error })?;
        let connections = make_room(limits.connections);
        let threads = Threads::start().map_err(GatewayError::Thread)?;
        let ear: GatewayEar = ear.unwrap_or_else(|| Arc::new(|_| {}));
        let state = State {
            fleet: fleet.clone(),
            hosts: Hosts::new(address, &hosts),
            keeper,
            room: Room::new(&limits, connections),
            readiness: Readiness::new(limits.waiting),
            view: FleetView::new(fleet),
            described: queues.map(|queues| queues.into_iter().collect()),
            cache: Cache::shared(fleet, CacheOptions::default()),
            sales,
            speaker: Speaker::start(demo_init, limits.waiting),
            trouble: Default::default(),
            limits,
            has_recipes,
            linger: linger.max(Duration::from_secs(1)),
            closing: watch::Sender::new(false),
            over: watch::Sender::new(false),
            ear,
        };
        Ok(Self { listener, address, connections, threads, state: Arc::new(state) })
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The tokens in force, and whether callers need one; shown as a sentence.
    #[must_use]
    pub fn standing(&self) -> Standing {
        self.state.keeper.standing()
    }

    /// Answers until it is asked to stop. Then streams, and requests that wait for the store, are answered at once.
    /// Others may end within [`Limits::stop_time`], or not at all if the stop is immediate; then they are answered, and
    /// cut off.
    pub async fn run(self, shutdown: Shutdown) {
        let state = Arc::clone(&self.state);
        tokio::select! {
            () = gate::watch_tokens(&state) => {}
            () = self.answer(shutdown) => {}
        }
    }

    async fn answer(self, shutdown: Shutdown) {
        let Self { listener, connections, mut threads, state, .. } = self;
        let router = routes::router(Arc::clone(&state));
        let mut open = JoinSet::new();
        tokio::select! {
            biased;
            () = shutdown.any() => {}
            () = state.readiness.watch(&state.fleet, &state.trouble) => {}
            () = accept(&listener, connections, &router, &state, &mut threads, &mut open) => {}
        }
        drop(listener);
        state.closing.send_replace(true);
        state.readiness.close();
        tokio::select! {
            biased;
            () = shutdown.at_once() => {}
            _ = tokio::time::timeout(state.limits.stop_time, all_ended(&mut open)) => {}
        }
        state.over.send_replace(true);
        // A peer that does not read it is cut off.
        tokio::time::timeout(LAST_WORDS, all_ended(&mut open)).await.ok();
        open.shutdown().await;
    }
}

async fn all_ended(open: &mut JoinSet<()>) {
    while open.join_next().await.is_some() {}
}

async fn accept(
    listener: &TcpListener, most: usize, router: &Router, state: &Arc<State>, threads: &mut Threads,
    open: &mut JoinSet<()>,
) {
    let protocol = connection::protocol(&state.limits);
    let (mut was_full, mut has_failed, ends) = (false, false, Pace::default());
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = open.join_next() => {
                ends.ended();
                continue;
            }
        };
        match accepted {
            Ok((stream, _)) if open.len() >= most => {
                turn_away(&stream, ends.seconds_for(1));
                if !std::mem::replace(&mut was_full, true) {
                    (state.ear)(&GatewayEvent::Full { connections: most });
                }
            }
            Ok((stream, address)) => {
                // Answers are small and are waited for; a socket that is gone already is found out by reading.
                stream.set_nodelay(true).ok();
                ask_after(&stream).ok();
                let (protocol, router, state) = (protocol.clone(), router.clone(), Arc::clone(state));
                let serve = move |stream| connection::serve(stream, address.ip(), protocol, router, state);
                // One that cannot be handed over is closed.
                threads.serve(stream, serve, open).ok();
            }
            // The peer was faster.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(error) => {
                if !std::mem::replace(&mut has_failed, true) {
                    (state.ear)(&GatewayEvent::CannotAccept { why: error.to_string() });
                }
                tokio::time::sleep(AFTER_A_FAILURE).await;
            }
        }
    }
}

/// Says why and closes, without waiting: a peer that does not read it sees the end of the connection.
fn turn_away(stream: &TcpStream, seconds: u64) {
    let length = TOO_MANY.len();
    let answer = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\nretry-after: {seconds}\r\n\
         connection: close\r\ncontent-length: {length}\r\n\r\n{TOO_MANY}"
    );
    stream.try_write(answer.as_bytes()).ok();
}

/// Turns keep-alive on: the system finds out that a peer is gone, e.g. without power, also while a stream sends
/// nothing.
fn ask_after(stream: &TcpStream) -> rustix::io::Result<()> {
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, SILENT)?;
    sockopt::set_tcp_keepintvl(stream, ASK_EVERY)?;
    sockopt::set_tcp_keepcnt(stream, ASKED)?;
    #[cfg(target_os = "linux")]
    sockopt::set_tcp_user_timeout(stream, u32::try_from((SILENT + ASK_EVERY * ASKED).as_millis()).unwrap_or(u32::MAX))?;
    Ok(())
}

async fn bind(listen: Listen) -> Result<TcpListener, GatewayError> {
    let (mut address, tries) = match listen {
        Listen::Default => (DEFAULT_ADDRESS, 0),
        Listen::NextFree => (DEFAULT_ADDRESS, PORTS),
        Listen::At(address) => (address, 0),
    };
    for _ in 0..tries {
        match TcpListener::bind(address).await {
            Ok(listener) => return Ok(listener),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => address.set_port(address.port() + 1),
            Err(error) => return Err(GatewayError::Listen { address, error }),
        }
    }
    TcpListener::bind(address).await.map_err(|error| GatewayError::Listen { address, error })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_told_at_the_bound_is_a_problem_and_a_peer_that_is_silent_is_asked_after() {
        serde_json::from_str::<serde_json::Value>(TOO_MANY).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let _peer = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        ask_after(&stream).unwrap();
        assert!(sockopt::socket_keepalive(&stream).unwrap());
        assert_eq!(sockopt::tcp_keepidle(&stream).unwrap(), SILENT);
    }
}
