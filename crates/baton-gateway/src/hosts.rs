//! By which names this host is addressed, and which pages may ask.
//!
//! A page whose name is made to point here (rebinding) sends its own name as that of the host: it is refused before
//! anything else is looked at. A page of another site, also of another port, is refused by what browsers say of it: no
//! request from another origin is answered, and no header lets a browser expect one. Programs that are no browsers
//! send neither header.

use std::net::{IpAddr, SocketAddr};

use axum::http::{HeaderMap, HeaderName, Request, StatusCode, header};

use crate::problem::Problem;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The names by which this host may be addressed, at any port: one may be forwarded.
#[derive(Debug)]
pub(crate) struct Hosts {
    bound: IpAddr,
    named: Vec<String>,
}

impl Hosts {
    /// For a listener at this address; loopback is always meant, and who listens at all addresses may be addressed by
    /// any. Further names are said by those who start the gateway.
    pub(crate) fn new(bound: SocketAddr, named: &[String]) -> Self {
        Self { bound: bound.ip(), named: named.to_vec() }
    }

    /// Refuses a request for another host, or from another page.
    pub(crate) fn admit<B>(&self, request: &Request<B>) -> Result<(), Problem> {
        let headers = request.headers();
        let host =
            only(headers, &header::HOST)?.ok_or_else(|| Problem::bad("no-host", "the Host header is missing"))?;
        let target = request.uri().authority().map(axum::http::uri::Authority::as_str);
        for authority in [Some(host), target].into_iter().flatten() {
            if !self.is_meant(authority) {
                return Err(Problem::new(
                    StatusCode::MISDIRECTED_REQUEST,
                    "unknown-host",
                    "this gateway is not addressed by that name; start it with --host NAME if it should be",
                ));
            }
        }
        let foreign = |what| {
            let detail = format!(
                "{what}, and pages of other origins may not ask: send the request from a program, or put the page and the \
                 gateway behind one proxy, at one name (--host NAME)"
            );
            Problem::new(StatusCode::FORBIDDEN, "cross-origin", detail)
        };
        match only(headers, &SEC_FETCH_SITE)? {
            None | Some("same-origin" | "none") => {}
            Some(_) => return Err(foreign("Sec-Fetch-Site says that this comes from elsewhere")),
        }
        match only(headers, &header::ORIGIN)? {
            None => Ok(()),
            Some(origin) => {
                let own = ["http://", "https://"].iter().find_map(|scheme| origin.strip_prefix(scheme));
                let is_own = own.is_some_and(|own| own.eq_ignore_ascii_case(host));
                if is_own { Ok(()) } else { Err(foreign("the Origin is another one")) }
            }
        }
    }

    fn is_meant(&self, authority: &str) -> bool {
        let Some(host) = host_of(authority) else { return false };
        let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        match address.parse::<IpAddr>() {
            Ok(ip) => ip.is_loopback() || ip == self.bound || self.bound.is_unspecified(),
            Err(_) => {
                host.eq_ignore_ascii_case("localhost") || self.named.iter().any(|name| name.eq_ignore_ascii_case(host))
            }
        }
    }
}

/// The host of `host` or `host:port`; nothing if it is neither.
fn host_of(authority: &str) -> Option<&str> {
    let (host, port) = match authority.rfind(']') {
        Some(end) if authority.starts_with('[') => authority.split_at_checked(end + 1)?,
        _ => authority.find(':').map_or((authority, ""), |at| authority.split_at(at)),
    };
    let is_port = port.is_empty() || port.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok());
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '[' | ']' | ':');
    (is_port && !host.is_empty() && host.chars().all(fits)).then_some(host)
}

/// The value of a header that may be given once.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Problem> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => {
            let text = value.to_str().map_err(|_| Problem::bad("bad-header", format!("{name} is not readable")))?;
            Ok(Some(text))
        }
        (Some(_), Some(_)) => Err(Problem::bad("bad-header", format!("{name} is given more than once"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(hosts: &Hosts, uri: &str, headers: &[(&str, &str)]) -> u16 {
        let mut request = Request::builder().uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        hosts.admit(&request.body(()).unwrap()).map_or_else(|problem| problem.status().as_u16(), |()| 200)
    }

    #[test]
    fn only_names_of_this_host_are_answered() {
        let hosts = Hosts::new("127.0.0.1:8000".parse().unwrap(), &["Baton.Example".to_owned()]);
        let host = |name: &str| status(&hosts, "/", &[("host", name)]);
        for good in ["localhost", "LOCALHOST:8000", "127.0.0.1:9000", "127.9.9.9", "[::1]:8000", "baton.example"] {
            assert_eq!(host(good), 200, "{good}");
        }
        let bad = [
            "evil.example",
            "localhost.evil.example",
            "10.0.0.1",
            "127.0.0.1.nip.io",
            "localhost:x",
            "[::1",
            "",
            "localhost@evil.example",
            "[fe80::1]",
            "localhost:8000:1",
            "::1",
            "[::1]8000",
        ];
        for bad in bad {
            assert_eq!(host(bad), 421, "{bad}");
        }
        assert_eq!(status(&hosts, "/", &[]), 400);
        assert_eq!(status(&hosts, "/", &[("host", "localhost"), ("host", "localhost")]), 400);
        assert_eq!(status(&hosts, "http://evil.example/", &[("host", "localhost")]), 421);
        let all = Hosts::new("0.0.0.0:8000".parse().unwrap(), &[]);
        assert_eq!(["10.0.0.1:8000", "evil.example"].map(|name| status(&all, "/", &[("host", name)])), [200, 421]);
    }

    #[test]
    fn pages_of_other_origins_are_refused() {
        let hosts = Hosts::new("127.0.0.1:8000".parse().unwrap(), &[]);
        let with = |name, value| status(&hosts, "/", &[("host", "localhost:8000"), (name, value)]);
        assert_eq!(
            ["same-origin", "none", "same-site", "cross-site", "x"].map(|it| with("sec-fetch-site", it)),
            [200, 200, 403, 403, 403]
        );
        let origins = [
            "http://localhost:8000",
            "https://LOCALHOST:8000",
            "http://localhost:8001",
            "http://localhost",
            "null",
            "http://evil.example",
            "localhost:8000",
            "",
        ];
        assert_eq!(origins.map(|it| with("origin", it)), [200, 200, 403, 403, 403, 403, 403, 403]);
    }
}
