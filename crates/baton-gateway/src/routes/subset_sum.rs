//! Subset sums: all subsets of some integers that have a sum, as they are found.

use axum::{
    body::Body,
    extract::{RawQuery, State},
    http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header},
    routing::{MethodRouter, get},
};
use baton::{
    CallOptions, Name, Since,
    jobs::subset_sum::{self, MOST_NUMBERS, Order, Wish},
};

use super::{jobs, query::Query};
use crate::{
    forms::Form,
    gate::Operates,
    intake::of_store,
    negotiation,
    problem::{Problem, ProblemShape},
    room::Admission,
    state::Shared,
    stream::Streaming,
};

/// The queue of subset sums.
const QUEUE: &str = "subset-sum";

pub(super) fn routes() -> MethodRouter<Shared> {
    get(search)
}

/// Which subsets of some integers have a sum
///
/// Each match is a line `Match: [1,2,-3]`, as it is found; or an event `match`, where events are accepted. With
/// `Last-Event-ID` a search that was begun is gone on with. A search whose caller leaves is cancelled.
#[utoipa::path(get, path = "/subsetSum", tag = "subset sums",
    params(
        ("data" = String, Query, description = "Up to 64 integers of 64 bits, as a JSON array"),
        ("sum" = String, Query, description = "The sum that they must have", pattern = "^-?[0-9]{1,38}$"),
        ("mode" = Option<String>, Query, description = "Where it is computed: by one worker, or split over the fleet", pattern = "^(process|fleet)$"),
        ("Last-Event-ID" = Option<String>, Header, description = "The last event that was read, as `subset-sum/id:number`")),
    responses(
        (status = 200, description = "Matches as they are found", content((String = "text/plain"), (Object = "text/event-stream"), (String = "application/x-ndjson")), headers(("Location" = String, description = "The job"))),
        (status = 204, description = "The search has ended, and its last event was read before"),
        (status = 400, description = "What is missing or malformed", body = ProblemShape, content_type = "application/problem+json"),
        (status = 401, description = "No token, or none that is valid", body = ProblemShape, content_type = "application/problem+json"),
        (status = 403, description = "The token does not allow it, or another site asks", body = ProblemShape, content_type = "application/problem+json"),
        (status = 404, description = "There is no such search, or no more", body = ProblemShape, content_type = "application/problem+json"),
        (status = 406, description = "No form is accepted", body = ProblemShape, content_type = "application/problem+json"),
        (status = 410, description = "These events are not kept any more", body = ProblemShape, content_type = "application/problem+json"),
        (status = 429, description = "The queue is full", body = ProblemShape, content_type = "application/problem+json"),
        (status = 503, description = "Too much is under way, or the store is away and was waited for in vain; with the code `maybe-stored` it may have begun", body = ProblemShape, content_type = "application/problem+json")))]
pub(crate) async fn search(
    _: Operates, State(state): State<Shared>, admission: Admission, method: Method, RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response<Body>, Problem> {
    if method == Method::HEAD {
        let problem = Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method", "HEAD would begin a search for nobody");
        return Err(problem.header(header::ALLOW, HeaderValue::from_static("GET")));
    }
    let queue = Name::new(QUEUE).map_err(|error| of_store(&error.into()))?;
    let form = negotiation::form(&headers, &[Form::Matches, Form::Events, Form::Lines])?;
    if let Some((call, number)) = jobs::last_event(&headers)? {
        let call = call.filter(|call| call.queue == queue);
        let call = call.ok_or_else(|| Problem::bad("bad-event-id", "the Last-Event-ID is none of a subset sum"))?;
        return jobs::follow(&state, &admission, call, Since::Number(number.saturating_add(1)), form).await;
    }
    let task = task(query.as_deref().unwrap_or_default())?;
    let options = CallOptions { linger: Some(state.linger), ..CallOptions::default() };
    let call = state.store_call(&mut state.seat(task.len())?, &queue, task.as_bytes(), &options).await?;
    Streaming { call, since: Since::Start, form, forsaken: !form.has_numbers() }.respond(&state, &admission)
}

/// What a worker is given.
fn task(query: &str) -> Result<String, Problem> {
    let bad = |detail: String| Problem::bad("bad-query", detail);
    let query = Query::parse(query)?;
    query.only(&["data", "sum", "mode"])?;
    let missing = |name: &str, example: &str| bad(format!("{name} is missing: give {name}={example}"));
    let data = query.get("data")?.ok_or_else(|| missing("data", "[1,2,-3]"))?;
    let sum = query.get("sum")?.ok_or_else(|| missing("sum", "0"))?;
    let data: Vec<i64> = serde_json::from_str(data)
        .map_err(|error| bad(format!("data is not a JSON array of integers of 64 bits: {error}")))?;
    if data.is_empty() || data.len() > MOST_NUMBERS {
        return Err(bad(format!("data has {} integers; there may be 1 to {MOST_NUMBERS}", data.len())));
    }
    let sum: i128 = sum.parse().map_err(|_| bad("sum is not an integer".to_owned()))?;
    let problem = subset_sum::Problem::new(data, sum);
    let task = match query.get("mode")? {
        None | Some("process") => serde_json::to_string(&problem),
        Some("fleet") => serde_json::to_string(&Order::new(&problem, &Wish::default())),
        Some(_) => return Err(bad("mode is process or fleet".to_owned())),
    };
    task.map_err(|error| bad(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::task;

    #[test]
    fn what_is_wrong_is_said() {
        assert_eq!(task("data=[1,2,-3]&sum=0").unwrap(), r#"{"data":[1,2,-3],"sum":0}"#);
        let split = task("sum=-7&data=%5B1%5D&mode=fleet").unwrap();
        assert!(split.starts_with(r#"{"data":[1],"sum":-7,"#) && split.contains(r#""parts":"#), "{split}");
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
            ("data=[1]&sum=1&mode=magic", "mode is process or fleet"),
            ("data=[1]&sum=1&sum=2", "more than once"),
            ("data=[1]&sum=1&some=2", "not known"),
        ] {
            let problem = task(query).unwrap_err();
            let detail = problem.json()["detail"].as_str().unwrap().to_owned();
            assert!(problem.status().as_u16() == 400 && detail.contains(says), "{query}: {detail}");
        }
    }
}
