//! The form that a caller accepts (`Accept`), and how long it waits for a result (`Prefer`).

use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use tokio::time::Duration;

use crate::{forms::Form, problem::Problem};

const PREFER: HeaderName = HeaderName::from_static("prefer");
/// The longest that an answer is waited for, in seconds.
const LONGEST_WAIT: u64 = 60;

/// The form that suits a caller best; of equal ones the first that is offered, which is also for those who do not say.
pub(crate) fn form(headers: &HeaderMap, offered: &[Form]) -> Result<Form, Problem> {
    let accepted: Vec<&str> = headers.get_all(header::ACCEPT).iter().filter_map(|it| it.to_str().ok()).collect();
    let ranges: Vec<Range<'_>> = accepted.iter().flat_map(|it| it.split(',')).filter_map(Range::parse).collect();
    let best = offered.iter().rev().map(|form| (quality(&ranges, *form), *form)).max_by_key(|(quality, _)| *quality);
    match best {
        _ if ranges.is_empty() => offered.first().copied().ok_or_else(|| unacceptable(offered)),
        Some((1.., form)) => Ok(form),
        _ => Err(unacceptable(offered)),
    }
}

fn unacceptable(offered: &[Form]) -> Problem {
    let media: Vec<&str> = offered.iter().map(|form| form.media()).collect();
    let detail = format!("this is available as {}; name one of them in Accept", media.join(" or "));
    Problem::new(StatusCode::NOT_ACCEPTABLE, "not-acceptable", detail)
}

/// One entry of an Accept header, with its weight in thousandths.
struct Range<'a> {
    kind: &'a str,
    subtype: &'a str,
    weight: u32,
}

impl<'a> Range<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let (kind, subtype) = parts.next()?.split_once('/')?;
        let weight = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
        let weight = weight.map_or(Some(1.0), |it| it.parse::<f64>().ok())?;
        Some(Self { kind, subtype, weight: (weight.clamp(0.0, 1.0) * 1000.0) as u32 })
    }

    /// How closely it names a media type, if it does.
    fn closeness(&self, media: &str) -> Option<u8> {
        let (kind, subtype) = media.split_once('/')?;
        match (self.kind, self.subtype) {
            ("*", "*") => Some(0),
            (it, "*") if it.eq_ignore_ascii_case(kind) => Some(1),
            (it, other) if it.eq_ignore_ascii_case(kind) && other.eq_ignore_ascii_case(subtype) => Some(3),
            _ => None,
        }
    }

    /// How closely it names a form. Who asks for JSON can read it line by line: `curl --json` says no more than that.
    fn closeness_to(&self, form: Form) -> Option<u8> {
        let is_json = || form == Form::Lines && self.closeness("application/json") == Some(3);
        self.closeness(form.media()).or_else(|| is_json().then_some(2))
    }
}

/// The weight that the closest range gives a form.
fn quality(ranges: &[Range<'_>], form: Form) -> u32 {
    let named = ranges.iter().filter_map(|range| Some((range.closeness_to(form)?, range.weight)));
    named.max_by_key(|(closeness, _)| *closeness).map_or(0, |(_, weight)| weight)
}

/// How long the caller waits for the end of what it pushes, if it does (`Prefer: wait=10`).
pub(crate) fn wait(headers: &HeaderMap) -> Option<Duration> {
    let values = headers.get_all(PREFER).iter().filter_map(|it| it.to_str().ok());
    let mut preferences = values.flat_map(|it| it.split([',', ';'])).filter_map(|it| it.trim().split_once('='));
    let (_, seconds) = preferences.find(|(name, _)| name.trim().eq_ignore_ascii_case("wait"))?;
    let seconds = seconds.trim().trim_matches('"');
    let is_number = !seconds.is_empty() && seconds.bytes().all(|byte| byte.is_ascii_digit());
    // One that is too large for a number is the longest.
    is_number.then(|| Duration::from_secs(seconds.parse().unwrap_or(u64::MAX).min(LONGEST_WAIT)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, value.parse().unwrap())])
    }

    #[test]
    fn the_best_form_of_those_offered_is_taken() {
        let offered = [Form::Lines, Form::Events];
        let of = |accept: &str| form(&with(header::ACCEPT, accept), &offered).map_err(|it| it.status().as_u16());
        assert_eq!(form(&HeaderMap::new(), &offered).unwrap(), Form::Lines);
        assert_eq!(of("*/*"), Ok(Form::Lines));
        assert_eq!(of("text/event-stream"), Ok(Form::Events));
        assert_eq!(of("Text/Event-Stream, */*;q=0.1"), Ok(Form::Events));
        assert_eq!(of("text/*"), Ok(Form::Events));
        assert_eq!(of("application/x-ndjson;q=0.2, text/event-stream;q=0.3"), Ok(Form::Events));
        assert_eq!(of("application/x-ndjson;q=0, */*"), Ok(Form::Events));
        assert_eq!(
            ["application/json", "application/*", "text/html, Application/JSON;q=0.1"].map(of),
            [Ok(Form::Lines); 3]
        );
        assert_eq!(of("application/json;q=0.2, text/event-stream"), Ok(Form::Events));
        assert_eq!(of("application/json, application/x-ndjson;q=0"), Err(406));
        assert_eq!(of("text/html"), Err(406));
        assert_eq!(of("text/event-stream;q=0"), Err(406));
    }

    #[test]
    fn a_wait_is_at_most_a_minute() {
        let of = |value: &str| wait(&with(PREFER, value)).map(|it| it.as_secs());
        assert_eq!(of("wait=5"), Some(5));
        assert_eq!(of("respond-async, Wait = \"7\""), Some(7));
        assert_eq!(of("wait=99999999999999999999999"), Some(60));
        assert_eq!(["wait", "wait=", "wait=-1", "wait=x", "respond-async"].map(of), [None; 5]);
    }
}
