//! Subset sums: all subsets of some integers that have a sum, as they are found.

use axum::{
    body::Body,
    extract::{RawQuery, State},
    http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header},
    routing::{MethodRouter, get},
};
use baton::{
    CallId, CallOptions, Name, Since,
    builtin::subset_sum::{self, Interleaved, MOST_NUMBERS, Order, SearchOptions},
};
use tokio::time::{Duration, Instant};

use super::{messages, query::Query};
use crate::{
    admission::Admission,
    apart,
    following::Streaming,
    forms::Form,
    gate::{Operates, fault},
    intake::of_store,
    negotiation,
    problem::{Problem, ProblemShape},
    room::Room,
    searching::Searching,
    state::Shared,
    stream::{TimeLimit, respond},
};

/// The queue of subset sums.
const QUEUE: &str = "subset-sum";
/// How long the estimate of what a search costs may take, with the wait for a turn. What is not known by then is judged
/// by the worker that searches.
const ESTIMATE: Duration = Duration::from_secs(2);

pub(super) fn routes() -> MethodRouter<Shared> {
    get(search)
}

/// Which subsets of some integers have a sum
///
/// Each match is a line `Match: [1,2,-3]`, as it is found; or an event `match`, where events are accepted. With
/// `Last-Event-ID` a search that was begun is gone on with. A search whose caller leaves is cancelled. What would take
/// over ten minutes is refused before it is begun; what is not finished after twenty (`--search-timeout`) ends with an
/// error. A search starts work, and is stored as a message but for `mode=interleaved`: a token needs the right to
/// admin, as for `POST /push`. One with the right to read can follow a search that was begun, at the `events` of the
/// message that `Location` names.
#[utoipa::path(get, path = "/subsetSum", tag = "subset sums",
    params(
        ("data" = String, Query, description = "Up to 64 integers of 64 bits, as a JSON array"),
        ("sum" = String, Query, description = "The sum that they must have", pattern = "^-?[0-9]{1,38}$"),
        ("mode" = Option<String>, Query, description = "Where it is computed: by one worker, split over the fleet, or in the gateway itself, in slices of time; the last needs no store, and cannot be gone on with", pattern = "^(process|fleet|interleaved)$"),
        ("limit" = Option<u64>, Query, description = "The number of matches after which the search ends; not with `mode=fleet`", minimum = 1),
        ("count_only" = Option<bool>, Query, description = "`true`: matches are counted and not listed; the answer is a line `Count: N`, or the event `end` with the count; not with `mode=fleet`"),
        ("Last-Event-ID" = Option<String>, Header, description = "The last event that was read, as `subset-sum/id@born:number`")),
    responses(
        (status = 200, description = "Matches as they are found", content((String = "text/plain"), (String = "text/event-stream"), (String = "application/x-ndjson")), headers(("Location" = String, description = "The message"))),
        (status = 204, description = "The search has ended, and its last event was read before"),
        (status = 400, description = "What is missing or malformed", body = ProblemShape, content_type = "application/problem+json"),
        (status = 401, description = "No token, or none that is valid", body = ProblemShape, content_type = "application/problem+json"),
        (status = 403, description = "The token has only the right to read, and a search starts work in every mode; or another site asks", body = ProblemShape, content_type = "application/problem+json"),
        (status = 404, description = "There is no such search, or no more", body = ProblemShape, content_type = "application/problem+json"),
        (status = 406, description = "No form is accepted", body = ProblemShape, content_type = "application/problem+json"),
        (status = 410, description = "These events are not kept any more, or another message has this id by now: the store lost data after the push", body = ProblemShape, content_type = "application/problem+json"),
        (status = 422, description = "It would take too long", body = ProblemShape, content_type = "application/problem+json"),
        (status = 429, description = "The queue is full", body = ProblemShape, content_type = "application/problem+json"),
        (status = 503, description = "Too much is under way, or the store is away and did not answer in time; with the code `maybe-stored` it may have begun", body = ProblemShape, content_type = "application/problem+json")))]
pub(crate) async fn search(
    _: Operates, State(state): State<Shared>, admission: Admission, method: Method, RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response<Body>, Problem> {
    if method == Method::HEAD {
        let problem = Problem::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "method",
            "HEAD would begin a search without a reader: use GET",
        );
        return Err(problem.header(header::ALLOW, HeaderValue::from_static("GET")));
    }
    let queue = Name::new(QUEUE).map_err(|error| of_store(&error.into()))?;
    let sought = Sought::parse(query.as_deref().unwrap_or_default());
    let text = if sought.as_ref().is_ok_and(|sought| sought.options.count_only) { Form::Count } else { Form::Matches };
    let form = negotiation::form(&headers, &[text, Form::Events, Form::Lines])?;
    if let Some((call, number)) = messages::last_event(&headers)? {
        let call = call.filter(|call| call.queue == queue);
        let call = call.ok_or_else(|| Problem::bad("bad-event-id", "the Last-Event-ID is none of a subset sum"))?;
        return messages::follow(&state, &admission, call, Since::Number(number.saturating_add(1)), form).await;
    }
    let sought = sought?;
    let limit = TimeLimit { time: state.limits.search_time, advice: sought.mode.advice() };
    if sought.mode == Mode::Interleaved {
        let (place, turn) = (state.room.stream()?, state.room.search()?);
        let Sought { problem, options, .. } = sought;
        let ready = apart::compute(turn, move |is_left| Interleaved::ready(problem, options, is_left)).await;
        let (search, turn) = ready.ok_or_else(fault)?;
        let search = search.map_err(|it| too_long(&it, Mode::Interleaved))?;
        let searching = Searching { search, form, _turn: turn };
        return Ok(respond(searching, form, Some(limit), &state, &admission, place));
    }
    let task = sought.task()?;
    let place = state.room.stream()?;
    sought.check(&state.room).await?;
    let options = CallOptions { linger: Some(state.linger), ..CallOptions::default() };
    let call = begun(&state, &queue, &task, &options).await;
    let call = call.map_err(|problem| problem.leaving_instead("no search was begun"))?;
    let forsaken = !form.has_numbers();
    Ok(Streaming { call, since: Since::Start, form, forsaken, limit: Some(limit) }.respond(&state, &admission, place))
}

/// The search as a call that was stored.
async fn begun(state: &Shared, queue: &Name, task: &str, options: &CallOptions) -> Result<CallId, Problem> {
    let mut seat = state.seat(task.len())?;
    Ok(state.store_call(&mut seat, queue, task.as_bytes(), options).await?.0)
}

/// The parameters of a request.
#[derive(Debug)]
struct Sought {
    problem: subset_sum::Problem,
    options: SearchOptions,
    mode: Mode,
}

/// Where it is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// By one worker.
    Process,
    /// Split over the fleet.
    Fleet,
    /// In the gateway itself.
    Interleaved,
}

impl Mode {
    /// How a search in this mode ends sooner.
    const fn advice(self) -> &'static str {
        match self {
            Self::Fleet => "take mode=process instead of mode=fleet, with limit=1000 or count_only=true",
            Self::Process | Self::Interleaved => "give limit=1000 or count_only=true",
        }
    }
}

fn bad(detail: impl Into<String>) -> Problem {
    Problem::bad("bad-query", detail)
}

impl Sought {
    fn parse(query: &str) -> Result<Self, Problem> {
        let query = Query::parse(query)?;
        query.only(&["data", "sum", "mode", "limit", "count_only"])?;
        let missing = |name: &str, example: &str| bad(format!("{name} is missing: give {name}={example}"));
        let data = query.get("data")?.ok_or_else(|| missing("data", "[1,2,-3]"))?;
        let sum = query.get("sum")?.ok_or_else(|| missing("sum", "0"))?;
        let data: Vec<i64> = serde_json::from_str(data)
            .map_err(|error| bad(format!("data is not a JSON array of integers of 64 bits: {error}")))?;
        if data.is_empty() || data.len() > MOST_NUMBERS {
            return Err(bad(format!("data has {} integers; there may be 1 to {MOST_NUMBERS}", data.len())));
        }
        let sum: i128 = sum.parse().map_err(|_| bad("sum is not an integer"))?;
        let mode = match query.get("mode")? {
            None | Some("process") => Mode::Process,
            Some("fleet") => Mode::Fleet,
            Some("interleaved") => Mode::Interleaved,
            Some(_) => return Err(bad("mode is process, fleet or interleaved")),
        };
        let limit = query.get("limit")?.map(|limit| limit.parse().ok().filter(|limit| *limit > 0));
        let limit = limit.map(|limit| limit.ok_or_else(|| bad("limit is a number from 1 on"))).transpose()?;
        let count_only = match query.get("count_only")? {
            None | Some("false") => false,
            Some("true") => true,
            Some(_) => return Err(bad("count_only is true or false")),
        };
        // Each part of a search would count for itself.
        if mode == Mode::Fleet && (limit.is_some() || count_only) {
            let given = if limit.is_some() { "limit" } else { "count_only" };
            return Err(bad(format!("{given} is for mode=process and mode=interleaved, not for mode=fleet")));
        }
        let options = SearchOptions { limit, count_only, ..SearchOptions::default() };
        Ok(Self { problem: subset_sum::Problem::new(data, sum), options, mode })
    }

    /// The message for a worker.
    fn task(&self) -> Result<String, Problem> {
        let task = match (self.mode == Mode::Fleet, self.options == SearchOptions::default()) {
            (true, _) => serde_json::to_string(&Order::new(&self.problem, &self.options)),
            (false, true) => serde_json::to_string(&self.problem),
            (false, false) => serde_json::to_string(&Order::whole(&self.problem, &self.options)),
        };
        task.map_err(|error| bad(error.to_string()))
    }

    /// Refuses a search that every worker would refuse: each request would be an error of the fleet.
    async fn check(&self, room: &Room) -> Result<(), Problem> {
        let (problem, options) = (self.problem.clone(), self.options);
        let until = Instant::now() + ESTIMATE;
        let Some(turn) = room.estimate(until).await else { return Ok(()) };
        let checked =
            move |is_left: &dyn Fn() -> bool| problem.check(&options, &|| is_left() || Instant::now() >= until);
        match apart::compute(turn, checked).await {
            Some((Err(refusal), _turn)) => Err(too_long(&refusal, self.mode)),
            _ => Ok(()),
        }
    }
}

fn too_long(refusal: &subset_sum::Refusal, mode: Mode) -> Problem {
    let detail = match refusal {
        subset_sum::Refusal::TooLong { matches, seconds, most } => {
            let advice = mode.advice();
            format!("about {matches} matches would take about {seconds} s, more than {most} s: {advice}")
        }
        refusal => refusal.to_string(),
    };
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "too-long", detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(query: &str) -> Result<String, Problem> {
        Sought::parse(query)?.task()
    }

    #[test]
    fn what_is_wrong_is_said() {
        assert_eq!(task("data=[1,2,-3]&sum=0").unwrap(), r#"{"data":[1,2,-3],"sum":0}"#);
        let split = task("sum=-7&data=%5B1%5D&mode=fleet").unwrap();
        assert!(split.starts_with(r#"{"data":[1],"sum":-7,"#) && split.contains(r#""parts":"#), "{split}");
        let limited = task("sum=0&data=[1]&limit=3&count_only=true").unwrap();
        assert!(limited.contains(r#""limit":3,"count_only":true"#) && !limited.contains("parts"), "{limited}");
        let many = format!("sum=0&data=[{}1]", "1,".repeat(64));
        for (query, says) in [
            ("", "data is missing"),
            ("data=[1]", "sum is missing"),
            ("sum=1", "data is missing"),
            ("data=&sum=1", "data is not a JSON array"),
            ("data=[1,]&sum=1", "data is not a JSON array"),
            ("data=[1.5]&sum=1", "data is not a JSON array"),
            ("data=[9223372036854775808]&sum=1", "data is not a JSON array"),
            ("data={}&sum=1", "data is not a JSON array"),
            ("data=[]&sum=1", "0 integers"),
            (&many, "65 integers"),
            ("data=[1]&sum=", "sum is not an integer"),
            ("data=[1]&sum=x", "sum is not an integer"),
            ("data=[1]&sum=1e9", "sum is not an integer"),
            ("data=[1]&sum=1&mode=magic", "mode is process, fleet or interleaved"),
            ("data=[1]&sum=1&sum=2", "more than once"),
            ("data=[1]&sum=1&some=2", "not known"),
            ("data=[1]&sum=1&limit=0", "limit is a number from 1 on"),
            ("data=[1]&sum=1&limit=x", "limit is a number from 1 on"),
            ("data=[1]&sum=1&count_only=1", "count_only is true or false"),
            ("data=[1]&sum=1&limit=1&mode=fleet", "limit is for mode=process and mode=interleaved, not for mode=fleet"),
            ("data=[1]&sum=1&count_only=true&mode=fleet", "count_only is for mode=process and mode=interleaved"),
        ] {
            let problem = task(query).unwrap_err();
            let detail = problem.json()["detail"].as_str().unwrap().to_owned();
            assert!(problem.status().as_u16() == 400 && detail.contains(says), "{query}: {detail}");
        }
    }
}
