//! What a store costs in processor time.
//!
//! Redis tells what its own process used. SQLite is embedded, so the process that calls it is measured, library and
//! all: this one for a push, the worker for processing. The kernel keeps that for each thread; where it does not tell
//! (`/proc` is Linux's), there is no figure.

use std::{collections::BTreeMap, fs};

use super::target::Target;
use crate::failure::Failure;

/// A measurement that was begun.
pub(super) enum Meter<'a> {
    Server(&'a super::bare::Bare, f64),
    Process(u32, BTreeMap<u32, u64>),
}

impl<'a> Meter<'a> {
    /// Begins with the server's time, or with that of process `pid` if the store is embedded.
    pub(super) async fn start(target: &'a Target, pid: u32) -> Result<Self, Failure> {
        Ok(match &target.bare {
            Some(bare) => Self::Server(bare, server_seconds(bare).await?),
            None => Self::Process(pid, thread_nanos(pid)),
        })
    }

    /// Begins with the server's time; nothing if the store is embedded.
    pub(super) async fn of_server(target: &'a Target) -> Result<Option<Self>, Failure> {
        match &target.bare {
            Some(bare) => Ok(Some(Self::Server(bare, server_seconds(bare).await?))),
            None => Ok(None),
        }
    }

    /// Microseconds used since then.
    pub(super) async fn stop(self) -> Result<Option<f64>, Failure> {
        Ok(match self {
            Self::Server(bare, before) => Some((server_seconds(bare).await? - before) * 1e6),
            Self::Process(pid, before) => {
                let used =
                    |(thread, nanos): (u32, u64)| nanos.saturating_sub(before.get(&thread).copied().unwrap_or(0));
                let nanos: u64 = thread_nanos(pid).into_iter().map(used).sum();
                (nanos > 0).then_some(nanos as f64 / 1e3)
            }
        })
    }
}

async fn server_seconds(bare: &super::bare::Bare) -> Result<f64, Failure> {
    bare.info("cpu", &["used_cpu_user", "used_cpu_sys"]).await
}

/// Nanoseconds each thread of a process has run.
fn thread_nanos(pid: u32) -> BTreeMap<u32, u64> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let nanos = threads.filter_map(|thread| {
        let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        let nanos = text.split_whitespace().next()?.parse().ok()?;
        Some((thread.file_name().to_str()?.parse().ok()?, nanos))
    });
    nanos.collect()
}
