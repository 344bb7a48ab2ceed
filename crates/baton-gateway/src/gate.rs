//! The checks that every request passes, whatever its method and path, in this order: the names of this host, the page
//! that asks, the token, room.

use std::{net::IpAddr, panic::AssertUnwindSafe, sync::Arc};

use axum::{
    Router,
    body::Body,
    extract::FromRequestParts,
    http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header, request::Parts},
    response::IntoResponse as _,
};
use futures_util::FutureExt as _;
use hyper::body::Incoming;
use tower_service::Service as _;

use crate::{
    admission::{Admission, Held, Holding, Validity},
    intake::MAYBE_STORED,
    problem::Problem,
    shares::Peer,
    state::{Shared, State},
    tokens::{Access, LOOK_AGAIN, Right},
};

/// Paths that need no token and no room: programs that watch processes have none.
const FREE: [&str; 2] = ["/health", "/health/ready"];

/// A path that stores a message in spite of its method.
const BEGINS: &str = "/subsetSum";

/// The outcome of a request that was broken off and may have changed something.
const UNKNOWN: &str = "the request may have been carried out";

/// Answers a request that came from this address.
pub(crate) async fn answer(
    state: Arc<State>, router: Router, address: IpAddr, request: Request<Incoming>,
) -> Response<Held> {
    let (request, admission) = match admit(&state, address, request) {
        Ok(admitted) => admitted,
        Err(problem) => return held(&state, problem.into_response(), Holding::Nothing),
    };
    let (mut router, changes) = (router, !request.method().is_safe() || request.uri().path() == BEGINS);
    let response = tokio::select! {
        biased;
        answered = AssertUnwindSafe(router.call(request)).catch_unwind() => match answered {
            Ok(Ok(response)) => response,
            // The panic hook logs the place.
            Err(_) => fault().into_response(),
        },
        // Looked at only by those who are not answered at once.
        () = state.ends() => {
            let (code, unknown) = if changes { (MAYBE_STORED, UNKNOWN) } else { ("stopping", "ask again") };
            Problem::busy(code, "the gateway stops", 2).next(unknown).into_response()
        }
        () = admission.is_void(&state) => {
            let ended = Validity::ended();
            (if changes { ended.next(UNKNOWN) } else { ended }).into_response()
        }
    };
    held(&state, response, admission.into_holding())
}

/// That something panicked.
pub(crate) fn fault() -> Problem {
    let detail = "the gateway has a fault; its log says where";
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "fault", detail)
}

fn held(state: &State, response: Response<Body>, holding: Holding) -> Response<Held> {
    let mut response = response.map(|body| Held::new(body, holding));
    let is_trouble = response.status() == StatusCode::SERVICE_UNAVAILABLE;
    let headers = response.headers_mut();
    if is_trouble && !headers.contains_key(header::RETRY_AFTER) {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(state.trouble.met()));
    }
    headers.entry(header::X_CONTENT_TYPE_OPTIONS).or_insert(HeaderValue::from_static("nosniff"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

fn admit(state: &State, address: IpAddr, request: Request<Incoming>) -> Result<(Request<Body>, Admission), Problem> {
    state.hosts.admit(&request)?;
    if request
        .headers()
        .get(header::TRANSFER_ENCODING)
        .is_some_and(|it| !it.as_bytes().eq_ignore_ascii_case(b"chunked"))
    {
        let detail = "only the transfer encoding chunked is accepted: send Transfer-Encoding: chunked alone";
        return Err(Problem::new(StatusCode::NOT_IMPLEMENTED, "transfer-encoding", detail));
    }
    let is_free = FREE.contains(&request.uri().path());
    let (token, validity) = if is_free { (None, None) } else { bearer(state, request.headers())? };
    let peer = token.map_or_else(|| Peer::at(address), Peer::Token);
    let holding = if is_free { Holding::Nothing } else { Holding::Request(state.room.request(peer.clone())?) };
    let (admission, mut request) = (Admission::new(peer, validity, holding), request.map(Body::new));
    request.extensions_mut().insert(admission.clone());
    Ok((request, admission))
}

/// The token of a request, if it is a valid one, and how long the request may go on.
fn bearer(state: &State, headers: &HeaderMap) -> Result<(Option<Arc<str>>, Option<Validity>), Problem> {
    let mut given = headers.get_all(header::AUTHORIZATION).iter();
    let (presented, is_bearers) = match (given.next(), given.next()) {
        (None, _) => (None, true),
        (Some(one), None) => {
            let secret = one.to_str().ok().and_then(|text| text.split_once(' '));
            let secret = secret.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
            // A value that is no token is as wrong as another token.
            (Some(secret.map_or("", |(_, secret)| secret.trim())), secret.is_some())
        }
        (Some(_), Some(_)) => (Some(""), false),
    };
    let version = state.keeper.version();
    let access = judge(state, presented);
    let refused = |detail, challenge| {
        let problem = Problem::new(StatusCode::UNAUTHORIZED, "token", detail);
        problem.header(header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge))
    };
    match access {
        // Anything may be presented where nothing is needed: it makes no peer.
        Access::Open => Ok((None, Some(Validity::new(presented.map(Arc::from), Right::Operate, version)))),
        Access::Granted(right) => {
            let token: Option<Arc<str>> = presented.map(Arc::from);
            Ok((token.clone(), Some(Validity::new(token, right, version))))
        }
        Access::Missing => Err(refused(
            "a token is needed: send Authorization: Bearer TOKEN; `baton token add NAME` makes one",
            "Bearer realm=\"baton\"",
        )),
        Access::Wrong if !is_bearers => Err(refused(
            "one Authorization header is wanted, with a token: Authorization: Bearer TOKEN; `baton token add NAME` makes one",
            "Bearer realm=\"baton\", error=\"invalid_request\"",
        )),
        Access::Wrong => Err(refused(
            "the token is not valid, or not any more: `baton token list`, on the gateway's machine, names those that are, `baton token add NAME` makes one",
            "Bearer realm=\"baton\", error=\"invalid_token\"",
        )),
    }
}

/// The access that this bearer has now.
pub(crate) fn judge(state: &State, presented: Option<&str>) -> Access {
    let (access, news) = state.keeper.judge(presented);
    news.iter().for_each(|event| (state.ear)(event));
    access
}

/// Looks at the tokens again and again, for ever, so that requests under way hear of a change.
pub(crate) async fn watch_tokens(state: &State) {
    loop {
        tokio::time::sleep(LOOK_AGAIN).await;
        state.keeper.look_now().iter().for_each(|event| (state.ear)(event));
    }
}

/// Proof that the caller may operate; routes that change something, or start work, demand it.
pub(crate) struct Operates;

impl FromRequestParts<Shared> for Operates {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &Shared) -> Result<Self, Problem> {
        match parts.extensions.get::<Admission>().map(Admission::right) {
            Some(Right::Operate) => Ok(Self),
            _ => {
                let detail =
                    "this needs a token with the right to operate: `baton token add NAME --right operate` makes one";
                Err(Problem::new(StatusCode::FORBIDDEN, "right", detail))
            }
        }
    }
}

impl FromRequestParts<Shared> for Admission {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &Shared) -> Result<Self, Problem> {
        let admitted = parts.extensions.get::<Self>().cloned();
        admitted.ok_or_else(|| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "fault", "a request passed no gate"))
    }
}
