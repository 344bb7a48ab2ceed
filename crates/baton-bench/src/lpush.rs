//! The least that a single push can cost on Redis: `LPUSH` by as many `redis-benchmark` processes, a connection and one
//! command under way each.
//!
//! Each is asked what it reached; the rate of all is that of the slowest over its own time, so that the start of a
//! process does not count. Nothing is measured where the tool is missing, or would need a password or TLS.

use std::{process::Stdio, time::Duration};

use baton::store::StoreUrl;
use tokio::{process::Command, task::JoinSet};

use super::{
    bare::{self, Bare},
    bodies,
    cpu::Meter,
    target::Target,
};
use crate::failure::Failure;

/// How long it may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// The list that is pushed to.
pub(super) const LPUSH: &str = "lpush";

/// What bare pushes did.
pub(super) struct Reached {
    pub(super) per_s: f64,
    /// Of the server, a call.
    pub(super) cpu_us: Option<f64>,
}

/// Has `number` processes push `each` bodies of `bytes` bytes.
pub(super) async fn measure(target: &Target, number: u64, each: u64, bytes: usize) -> Result<Option<Reached>, Failure> {
    let (Some(bare), Some(place)) = (&target.bare, place(&target.settings.store.value)) else { return Ok(None) };
    let list = bare.list(LPUSH);
    let meter = Meter::of_server(target).await?;
    let reached = all(&place, &list, number, each, bytes).await;
    let cpu_us = match meter {
        Some(meter) => meter.stop().await?,
        None => None,
    };
    let stored = clear(bare, &list).await?;
    let Some(slowest) = reached else { return Ok(None) };
    if stored != number * each {
        return Err(Failure::new(format!("redis-benchmark left {stored} entries"), "run the command again"));
    }
    Ok(Some(Reached { per_s: slowest * number as f64, cpu_us: cpu_us.map(|micros| micros / stored as f64) }))
}

/// Where the server is, as arguments; nothing if it asks for more than an address.
fn place(store: &StoreUrl) -> Option<Vec<String>> {
    let StoreUrl::Redis(url) = store else { return None };
    let plain = url.scheme() == "redis" && url.username().is_empty() && url.password().is_none();
    let host = url.host_str().filter(|_| plain)?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let database = url.path().trim_start_matches('/');
    let arguments = ["-h", host, "-p", &url.port().unwrap_or(6379).to_string()];
    let database = if database.is_empty() { &[][..] } else { &["--dbnum", database][..] };
    Some(arguments.iter().chain(database).map(|argument| (*argument).to_owned()).collect())
}

/// Calls a second of the slowest process; nothing if the tool is missing or does not say.
async fn all(place: &[String], list: &str, number: u64, each: u64, bytes: usize) -> Option<f64> {
    let mut tools = JoinSet::new();
    for _ in 0..number {
        let mut tool = Command::new("redis-benchmark");
        tool.args(place).args(["-c", "1", "-P", "1", "--csv", "-n", &each.to_string()]);
        tool.args(["LPUSH", list, &bodies::text(bytes + 2)]);
        tool.stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
        tools.spawn(async move { tool.output().await });
    }
    let mut slowest = f64::INFINITY;
    let ended = tokio::time::timeout(PATIENCE, async {
        while let Some(tool) = tools.join_next().await {
            let output = tool.ok()?.ok()?;
            slowest = slowest.min(rate(&String::from_utf8_lossy(&output.stdout))?);
        }
        Some(slowest)
    });
    ended.await.ok().flatten()
}

/// The figure in the line of this command.
fn rate(csv: &str) -> Option<f64> {
    let line = csv.lines().find(|line| line.trim_start_matches('"').starts_with("LPUSH "))?;
    line.split("\",\"").nth(1)?.trim_matches('"').parse().ok()
}

/// Removes the list; how many entries it had. Its memory is free when this returns.
async fn clear(bare: &Bare, list: &str) -> Result<u64, Failure> {
    let mut connection = bare.connect().await?;
    let both = redis::pipe().cmd("LLEN").arg(list).cmd("DEL").arg(list).ignore().to_owned();
    let (entries,) = both.query_async(&mut connection).await.map_err(|error| bare::failed(&error))?;
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tool_is_read() {
        let csv = "\"test\",\"rps\",\"avg_latency_ms\"\n\"LPUSH {f}:l body\",\"12345.67\",\"0.1\"\n";
        assert_eq!(rate(csv), Some(12345.67));
        assert_eq!(rate("Error from server: no\n"), None);
    }

    #[test]
    fn only_a_plain_address_is_asked() {
        let place = |url: &str| place(&url.parse().unwrap());
        assert_eq!(place("redis://127.0.0.1:7000/3").unwrap(), ["-h", "127.0.0.1", "-p", "7000", "--dbnum", "3"]);
        assert_eq!(place("redis://127.0.0.1/").unwrap(), ["-h", "127.0.0.1", "-p", "6379"]);
        assert_eq!(place("redis://:secret@127.0.0.1/"), None);
        assert_eq!(place("sqlite:/x.db"), None);
    }
}
