//! Sales from outside.

use std::{borrow::Cow, collections::BTreeMap};

use axum::{
    body::Body,
    extract::{RawQuery, State},
    http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header},
    routing::{MethodRouter, post},
};
use baton::{
    Name,
    builtin::sales::{Added, Sale, SalesError},
    cache::Generation,
};
use serde::{Deserialize, Serialize, de::IgnoredAny};
use serde_json::value::RawValue;
use utoipa::openapi::{ObjectBuilder, OneOfBuilder, Schema, schema::Type};

use super::{
    query::Query,
    total_sales::{none, unreadable},
};
use crate::{
    admission::Admission,
    body::{Media, awaited_bytes, check_one, media, read_message, refuse},
    gate::Operates,
    intake::unready,
    problem::{Problem, ProblemShape},
    state::{Shared, State as GatewayState},
};

const GENERATION: HeaderName = HeaderName::from_static("baton-generation");

pub(super) fn routes() -> MethodRouter<Shared> {
    post(add)
}

/// A sale.
const FIELDS: [&str; 3] = ["transaction_id", "item", "amount"];

/// A sale as it comes in.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row<'a> {
    #[serde(borrow)]
    transaction_id: Cow<'a, str>,
    #[serde(borrow)]
    item: Cow<'a, str>,
    /// As it is written: a number with decimals has no exact other form.
    #[serde(borrow)]
    amount: &'a RawValue,
}

/// The shape of a sale, for the description of the routes.
#[derive(Serialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Sale)]
pub(crate) struct SaleShape {
    #[schema(min_length = 1, max_length = 1024)]
    transaction_id: String,
    #[schema(max_length = 1024)]
    item: String,
    #[schema(schema_with = amount_shape)]
    amount: f64,
}

fn amount_shape() -> Schema {
    let number = ObjectBuilder::new().schema_type(Type::Number).multiple_of(Some(0.01));
    let text = ObjectBuilder::new().schema_type(Type::String).pattern(Some("^-?[0-9]{1,16}([.][0-9]{1,2})?$"));
    let either = OneOfBuilder::new().item(number).item(text);
    either.description(Some("With up to two decimals; a number, or a text with one.")).build().into()
}

/// One sale, or many.
#[derive(Serialize, utoipa::ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "it is described")]
pub(crate) enum SalesShape {
    One(SaleShape),
    Many(Vec<SaleShape>),
}

/// The outcome of a request with sales.
#[derive(Serialize, utoipa::ToSchema)]
pub(crate) struct Sold {
    /// Sales that are stored now.
    stored: u64,
    /// Sales that were stored before.
    known: u64,
}

/// Add sales
///
/// One as a JSON object, many as an array or as NDJSON, one a line: all are stored or none. When it is answered, no
/// total that was computed before is kept any more. A transaction exists once, so it is safe to repeat.
#[utoipa::path(post, path = "/sales", tag = "sales",
    request_body(content((SalesShape = "application/json"), (String = "application/x-ndjson"))),
    responses(
        (status = 200, description = "All were stored before", body = Sold, content_type = "application/json", headers(("Baton-Generation" = u64))),
        (status = 201, description = "Stored", body = Sold, content_type = "application/json", headers(("Baton-Generation" = u64, description = "Who sends it as `Baton-Min-Generation` reads no total from before"))),
        (status = 400, description = "Not JSON, or no sale: `line` says which; or a query; nothing is stored", body = ProblemShape, content_type = "application/problem+json"),
        (status = 401, description = "No token, or none that is valid", body = ProblemShape, content_type = "application/problem+json"),
        (status = 403, description = "The token does not allow it, or another site asks", body = ProblemShape, content_type = "application/problem+json"),
        (status = 404, description = "This gateway has no sales", body = ProblemShape, content_type = "application/problem+json"),
        (status = 408, description = "They took too long to come in", body = ProblemShape, content_type = "application/problem+json"),
        (status = 409, description = "A transaction is known with another item or amount; nothing is stored", body = ProblemShape, content_type = "application/problem+json"),
        (status = 413, description = "Too many at once", body = ProblemShape, content_type = "application/problem+json"),
        (status = 415, description = "Neither JSON nor NDJSON, or packed", body = ProblemShape, content_type = "application/problem+json"),
        (status = 500, description = "The sales cannot be written", body = ProblemShape, content_type = "application/problem+json"),
        (status = 503, description = "Too much is under way, or the store is away; with the code `sales-busy` another writes to the file for over 10 s, and nothing is stored; with the code `not-told` they are stored, and totals may be up to 30 s old", body = ProblemShape, content_type = "application/problem+json", headers(("Retry-After" = u64)))))]
pub(crate) async fn add(
    _: Operates, State(state): State<Shared>, admission: Admission, RawQuery(query): RawQuery, headers: HeaderMap,
    body: Body,
) -> Result<Response<Body>, Problem> {
    let wanted = || {
        Query::none(query.as_deref(), &[])?;
        let media = media(&headers).map_err(|problem| of_csv(problem, &headers))?;
        state.sales.as_ref().ok_or_else(none)?;
        Ok((media, state.seat(awaited_bytes(&state.limits, &headers))?))
    };
    let (media, mut seat) = match wanted() {
        Ok(wanted) => wanted,
        Err(problem) => {
            refuse(&headers, body).await;
            return Err(problem);
        }
    };
    let mut permit = admission.bytes(&state.room);
    let bytes = read_message(&state, &headers, body, &mut permit).await?;
    seat.hold(bytes.len()).map_err(unready)?;
    let rows = match media {
        Media::Json => of_json(check_one(&state.limits, &bytes)?),
        Media::Lines => of_lines(&bytes),
    }?;
    drop(bytes);
    // In a task of its own: a caller that leaves in the middle must leave no total behind that is older than the stored
    // sales. Its bytes count until then.
    let held = std::sync::Arc::clone(&state);
    let begin = |_| {
        std::future::ready(tokio::spawn(async move {
            let stored = stored(&held, rows).await;
            drop(permit);
            stored
        }))
    };
    let stored = seat.call(begin).await.map_err(unready)?.await;
    let (Added { stored, known }, generation) = stored.map_err(|_| unreadable())??;
    let mut response = Response::new(Body::from(serde_json::to_vec(&Sold { stored, known }).unwrap_or_default()));
    *response.status_mut() = if stored > 0 { StatusCode::CREATED } else { StatusCode::OK };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(GENERATION, HeaderValue::from(generation.0));
    Ok(response)
}

/// The same of a text in a form that the command takes.
fn of_csv(problem: Problem, headers: &HeaderMap) -> Problem {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let is_csv = kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("text/csv"));
    if is_csv { problem.next("CSV is loaded by `baton sales load`") } else { problem }
}

/// Stores sales, and has totals from before forgotten.
async fn stored(state: &GatewayState, rows: Vec<(u64, Sale)>) -> Result<(Added, Generation), Problem> {
    let sales = state.sales.as_ref().ok_or_else(none)?;
    let added = sales.add(rows).await.map_err(|error| match error {
        SalesError::Conflict { line } => {
            let detail =
                format!("sale {line}: its transaction_id is known with another item or amount; nothing is stored");
            Problem::new(StatusCode::CONFLICT, "transaction-used", detail).with("line", line)
        }
        SalesError::Busy(_) => {
            let detail =
                "the sales file is being written by another, which takes long; nothing is stored; try again later";
            Problem::busy("sales-busy", detail, 2)
        }
        _ => unreadable(),
    })?;
    let prefix = sales.prefix().await.map_err(|_| unreadable())?;
    let invalidated = tokio::time::timeout(state.limits.store_time, state.cache.invalidate_prefix(&prefix)).await;
    match invalidated {
        Ok(Ok(generation)) => Ok((added, generation)),
        _ => {
            let detail = "the sales are stored, but the store went away before it took note: totals may be up to 30 s old; it is safe to repeat this";
            Err(Problem::busy("not-told", detail, 2))
        }
    }
}

fn of_json(bytes: &[u8]) -> Result<Vec<(u64, Sale)>, Problem> {
    if bytes.first() != Some(&b'[') {
        return Ok(vec![(1, row(1, bytes)?)]);
    }
    let rows: Vec<&RawValue> = serde_json::from_slice(bytes).map_err(|error| bad(1, &error.to_string()))?;
    (1..).zip(rows).map(|(line, one)| Ok((line, row(line, one.get().as_bytes())?))).collect()
}

fn of_lines(bytes: &[u8]) -> Result<Vec<(u64, Sale)>, Problem> {
    let lines = (1..).zip(bytes.split(|byte| *byte == b'\n'));
    let lines = lines.filter(|(_, line)| !line.trim_ascii().is_empty());
    lines.map(|(number, line)| Ok((number, row(number, line)?))).collect()
}

fn row(line: u64, bytes: &[u8]) -> Result<Sale, Problem> {
    let row: Row<'_> = serde_json::from_slice(bytes).map_err(|error| bad(line, &no_echo(&error, bytes)))?;
    let text = row.amount.get();
    let amount: Cow<'_, str> =
        if text.starts_with('"') { serde_json::from_str(text).unwrap_or_default() } else { text.into() };
    Sale::new(&row.transaction_id, &row.item, &amount).map_err(|error| bad(line, &error.to_string()))
}

/// The mistake in a row, without data of the row but the name of a field that it should not have.
fn no_echo(error: &serde_json::Error, bytes: &[u8]) -> String {
    let fields: BTreeMap<Cow<'_, str>, IgnoredAny> = serde_json::from_slice(bytes).unwrap_or_default();
    if let Some(unknown) = fields.keys().find(|name| !FIELDS.contains(&name.as_ref())) {
        let name = Name::new(unknown).map_or_else(|_| "a field".to_owned(), |name| format!("the field {name}"));
        return format!("{name} is not known; there are: {}", FIELDS.join(", "));
    }
    let kind = match error.classify() {
        serde_json::error::Category::Data => "not an object with transaction_id, item (texts) and amount",
        _ => "not JSON",
    };
    format!("{kind}, at column {}", error.column())
}

fn bad(line: u64, why: &str) -> Problem {
    Problem::bad("bad-sale", format!("sale {line}: {why}; nothing is stored")).with("line", line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_exactly_and_what_is_none_is_told_by_its_number() {
        let one = of_json(br#"{"transaction_id":"a","item":"__proto__","amount":12.30}"#).unwrap();
        assert_eq!(one, [(1, Sale::new("a", "__proto__", "12.30").unwrap())]);
        let two = of_json(
            br#"[{"transaction_id":"a\u0062","item":"","amount":"1.5"},{"amount":-7,"item":"x","transaction_id":"c"}]"#,
        );
        assert_eq!(two.unwrap(), [(1, Sale::new("ab", "", "1.5").unwrap()), (2, Sale::new("c", "x", "-7").unwrap())]);
        assert_eq!(of_json(b"[]").unwrap(), []);
        let unknown = |name: &str| {
            let sale = format!(r#"{{"transaction_id":"a","item":"x","amount":1,"{name}":"secret"}}"#);
            of_json(sale.as_bytes()).unwrap_err().json()["detail"].to_string()
        };
        assert!(unknown("price").contains("the field price is not known"), "{}", unknown("price"));
        assert!(unknown("a b").contains("a field is not known") && !unknown("a b").contains("secret"));
        let lines = of_lines(b"\n{\"transaction_id\":\"a\",\"item\":\"x\",\"amount\":1}\r\n\n").unwrap();
        assert_eq!(lines, [(2, Sale::new("a", "x", "1").unwrap())]);
        for bad in [
            "1",
            "\"x\"",
            "{}",
            "null",
            r#"{"transaction_id":"a","item":"x"}"#,
            r#"{"transaction_id":"","item":"x","amount":1}"#,
            r#"{"transaction_id":1,"item":"x","amount":1}"#,
            r#"{"transaction_id":"a","item":null,"amount":1}"#,
            r#"{"transaction_id":"a","item":"x","amount":1.234}"#,
            r#"{"transaction_id":"a","item":"x","amount":1e2}"#,
            r#"{"transaction_id":"a","item":"x","amount":null}"#,
            r#"{"transaction_id":"a","item":"x","amount":"\ud800"}"#,
            r#"{"transaction_id":"a","item":"x","amount":1,"amount":2}"#,
            r#"{"transaction_id":"a","item":"x","amount":1,"more":2}"#,
        ] {
            assert_eq!(of_json(bad.as_bytes()).unwrap_err().json()["code"], "bad-sale", "{bad}");
            let many = format!(r#"[{{"transaction_id":"ok","item":"x","amount":1}},{bad}]"#);
            assert_eq!(of_json(many.as_bytes()).unwrap_err().json()["line"], 2, "{bad}");
        }
    }
}
