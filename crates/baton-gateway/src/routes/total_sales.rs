//! How much was sold of an item, or of all: an expensive answer, cached for all of the fleet.

use std::sync::LazyLock;

use axum::{
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, header},
    routing::{MethodRouter, get},
};
use baton::{
    builtin::sales::{self, Sales, SalesError, Total},
    cache::{CacheError, Cached, Generation, Mode, Reading, Source, Value},
};
use sha2::{Digest as _, Sha256};

use super::query::Query;
use crate::{
    problem::{Problem, ProblemShape},
    state::Shared,
};

const CACHE_STATUS: HeaderName = HeaderName::from_static("cache-status");
const MIN_GENERATION: &str = "baton-min-generation";
/// The length of a tag with its quotes: it stands before the text in what is kept.
const TAG: usize = 18;

pub(super) fn routes() -> MethodRouter<Shared> {
    get(total)
}

/// Total sales
///
/// The total of an item, or of all. Equal requests at the same time share one computation, in all of the fleet, and its
/// answer is kept for 30 s or until sales are added. While the store is away it is not waited for: each request
/// computes, and nothing is kept.
#[utoipa::path(get, path = "/totalSales", tag = "sales",
    params(
        ("item" = Option<String>, Query, description = "The item; without it all of them", max_length = 1024),
        ("cache" = Option<String>, Query, description = "`off`: it is computed for this request alone; `batch`: shared with those who ask at the same time, and not kept; `on`, the default", pattern = "^(off|batch|on)$"),
        ("Baton-Min-Generation" = Option<u64>, Header, description = "The total includes the sales whose answer had this `Baton-Generation`. Do not use a generation for more than some minutes: a store that lost its data counts from 1 again, and each request with a later generation is computed", minimum = 0),
        ("If-None-Match" = Option<String>, Header, description = "The `ETag` of what the caller has")),
    responses(
        (status = 200, description = "`Total sales for item X is N`, or `Total sales for all items is N`", body = String, content_type = "text/plain", headers(
            ("Cache-Status" = String, description = "As of RFC 9211: `baton; hit; ttl=12`, `baton; fwd=miss; collapsed; stored`"),
            ("Age" = u64), ("ETag" = String), ("Cache-Control" = String))),
        (status = 304, description = "As the caller has it"),
        (status = 400, description = "The query or the generation is malformed", body = ProblemShape, content_type = "application/problem+json"),
        (status = 401, description = "No token, or none that is valid", body = ProblemShape, content_type = "application/problem+json"),
        (status = 404, description = "This gateway has no sales", body = ProblemShape, content_type = "application/problem+json"),
        (status = 500, description = "The sales cannot be read", body = ProblemShape, content_type = "application/problem+json"),
        (status = 503, description = "Too much is under way, or it took too long", body = ProblemShape, content_type = "application/problem+json", headers(("Retry-After" = u64)))))]
pub(crate) async fn total(State(state): State<Shared>, request: Request<Body>) -> Result<Response<Body>, Problem> {
    // As it came: a hit would pay for a copy of its headers.
    let (asked, _) = request.into_parts();
    let (query, headers) = (Query::parse(asked.uri.query().unwrap_or_default())?, asked.headers);
    query.only(&["item", "cache"])?;
    let (item, reading) = (query.get("item")?, reading(&query, &headers)?);
    if let Some(item) = item {
        sales::check_item(item).map_err(|error| Problem::bad("bad-item", error.to_string()))?;
    }
    let sales = state.sales.as_ref().ok_or_else(none)?;
    let key = match sales.known_key(item) {
        Some(key) => key,
        None => match sales.key(item).await {
            Ok(key) => key,
            // Nothing was sold, and there is nothing to keep that by.
            Err(SalesError::Missing(_)) => {
                return Ok(answer(&headers, &shown(item, Total::default()), CacheStatus::BYPASS, 0));
            }
            Err(_) => return Err(unreadable()),
        },
    };
    let compute = {
        let (sales, item) = (sales.clone(), item.map(str::to_owned));
        move || async move { computed(&sales, item.as_deref()).await }
    };
    let cached = state.cache.get(&key, reading, compute).await.map_err(|error| failed(&error))?;
    let age = cached.age.as_secs();
    let status = CacheStatus::of(&cached, reading.mode);
    Ok(answer(&headers, &cached.value, status, age))
}

async fn computed(sales: &Sales, item: Option<&str>) -> Result<Value, SalesError> {
    match sales.total(item).await {
        Ok(total) => Ok(Value::new(shown(item, total))),
        Err(SalesError::Missing(_)) => Ok(Value::new(shown(item, Total::default())).uncached()),
        Err(error) => Err(error),
    }
}

/// The cached value: the tag of the text, and the text.
fn shown(item: Option<&str>, total: Total) -> Bytes {
    let text = match item {
        Some(item) => format!("Total sales for item {item} is {total}"),
        None => format!("Total sales for all items is {total}"),
    };
    let digest = Sha256::digest(text.as_bytes());
    let tag: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("\"{tag}\"{text}").into()
}

fn reading(query: &Query<'_>, headers: &HeaderMap) -> Result<Reading, Problem> {
    let mode = match query.get("cache")? {
        None | Some("on") => Mode::On,
        Some("batch") => Mode::Batch,
        Some("off") => Mode::Off,
        Some(_) => return Err(Problem::bad("bad-query", "cache is off, batch or on")),
    };
    let mut given = headers.get_all(MIN_GENERATION).iter();
    let Some(least) = given.next() else { return Ok(Reading::by(mode)) };
    let least = if given.next().is_none() { least.to_str().ok() } else { None };
    let least = least.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    let least: Option<Generation> = least.and_then(|text| text.parse().ok());
    let bad = || {
        Problem::bad(
            "bad-generation",
            "Baton-Min-Generation is one number, taken from the header Baton-Generation of an answer",
        )
    };
    Ok(Reading::by(mode).since(least.ok_or_else(bad)?))
}

/// The header values of hits, by the seconds that are left; most are one of these.
static HITS: LazyLock<Vec<HeaderValue>> = LazyLock::new(|| (0..=60).map(hit).collect());

fn hit(left: u64) -> HeaderValue {
    let text = Bytes::from(format!("baton; hit; ttl={left}"));
    HeaderValue::from_maybe_shared(text).unwrap_or(CacheStatus::BYPASS.0)
}

/// How the answer came about, as of RFC 9211.
struct CacheStatus(HeaderValue);

impl CacheStatus {
    const BYPASS: Self = Self(HeaderValue::from_static("baton; fwd=bypass"));

    fn of(cached: &Cached, mode: Mode) -> Self {
        let text = match (mode, cached.source) {
            (_, Source::Hit { .. }) => {
                let left = cached.ttl.unwrap_or_default().as_secs();
                let written = usize::try_from(left).ok().and_then(|left| HITS.get(left));
                return Self(written.cloned().unwrap_or_else(|| hit(left)));
            }
            (Mode::Off, _) => return Self::BYPASS,
            (Mode::Batch, Source::Collapsed { .. }) => "baton; fwd=bypass; collapsed",
            (Mode::Batch, _) => return Self::BYPASS,
            (Mode::On, Source::Collapsed { stored: true }) => "baton; fwd=miss; collapsed; stored",
            (Mode::On, Source::Collapsed { stored: false }) => "baton; fwd=miss; collapsed",
            (Mode::On, Source::Computed { stored: true }) => "baton; fwd=miss; stored",
            (Mode::On, Source::Computed { stored: false }) => "baton; fwd=miss",
        };
        Self(HeaderValue::from_static(text))
    }
}

/// The answer with this value, or that the caller has it.
fn answer(asked: &HeaderMap, value: &Bytes, status: CacheStatus, age: u64) -> Response<Body> {
    let (tag, text) = (value.slice(..TAG.min(value.len())), value.slice(TAG.min(value.len())..));
    let is_known = is_among(asked, &tag);
    let mut response = Response::new(if is_known { Body::empty() } else { Body::from(text) });
    let headers = response.headers_mut();
    headers.reserve(8);
    headers.insert(CACHE_STATUS, status.0);
    headers.insert(header::AGE, HeaderValue::from(age));
    headers.extend(HeaderValue::from_maybe_shared(tag).ok().map(|tag| (header::ETAG, tag)));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    if is_known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    } else {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    }
    response
}

/// Whether the caller says that it has this; a weak tag is as good here.
fn is_among(asked: &HeaderMap, tag: &[u8]) -> bool {
    asked.get_all(header::IF_NONE_MATCH).iter().any(|value| {
        let mut tags = value.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
        tags.any(|it| it == b"*" || it.strip_prefix(b"W/").unwrap_or(it) == tag)
    })
}

pub(super) fn none() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "no-sales", "this gateway has no sales; name a file with --sales")
}

/// The file's own words name paths.
pub(super) fn unreadable() -> Problem {
    let detail = "the sales cannot be used; `baton sales total`, with the gateway's --sales, says why";
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "sales", detail)
}

fn failed(error: &CacheError) -> Problem {
    match error {
        CacheError::Timeout(_) => Problem::busy("slow", "the total took too long", 10),
        CacheError::Dropped => Problem::busy("slow", "the gateway stops", 2),
        _ => unreadable(),
    }
}
