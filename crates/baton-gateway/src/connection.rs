//! One connection from its begin to its end.
//!
//! It ends when its peer is silent for too long before or between heads, sends a head that is too long or none, or
//! reads nothing of what is sent to it; and when the gateway stops, after what is under way.

use std::{convert::Infallible, net::IpAddr, pin::pin, sync::Arc};

use axum::Router;
use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;

use crate::{
    gate,
    limits::{HEAD_BYTES, HEADERS, Limits},
    stall::{Stalling, UnderWay},
    state::State,
};

/// How connections are spoken to.
pub(crate) fn protocol(limits: &Limits) -> http1::Builder {
    let mut protocol = http1::Builder::new();
    // Without a timer the time for a head would not run.
    protocol.timer(TokioTimer::new()).header_read_timeout(limits.head_time);
    protocol.max_headers(HEADERS).max_header_size(HEAD_BYTES).max_buf_size(HEAD_BYTES).keep_alive(true);
    // Answers are short: head and body together are sent sooner than as a list of two (a twentieth of a hit's
    // rate).
    protocol.writev(false);
    protocol
}

/// Serves one peer, which is at this address.
pub(crate) async fn serve(
    stream: TcpStream, address: IpAddr, protocol: http1::Builder, router: Router, state: Arc<State>,
) {
    let mut closing = state.closing.subscribe();
    let under_way = UnderWay::default();
    let io = TokioIo::new(Stalling::new(stream, state.limits.stall_time, under_way.clone()));
    let service = service_fn(move |request| {
        let (state, router, asked) = (Arc::clone(&state), router.clone(), under_way.begin());
        async move { Ok::<_, Infallible>(gate::answer(state, router, address, request).await.map(|body| body.to(asked))) }
    });
    let mut served = pin!(protocol.serve_connection(io, service));
    tokio::select! {
        // How it ended is the peer's concern.
        _ = served.as_mut() => return,
        _ = closing.wait_for(|closing| *closing) => served.as_mut().graceful_shutdown(),
    }
    served.await.ok();
}
