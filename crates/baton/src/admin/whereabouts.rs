//! Where a session runs.

use std::{fmt, path::PathBuf, time::Duration};

use rustix::{
    io::Errno,
    process::{Pid, test_kill_process},
};
use serde::{Serialize, Serializer};
use tokio::time::Instant;

use super::{Admin, wording::tame};
use crate::{
    message::SessionId,
    store::{Kind, SessionView, StoreError, Survey, session::host_name},
};

const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long after its lease the session of a killed node must be gone.
const GRACE: Duration = Duration::from_secs(2);

/// Where a session runs. Shown, and serialized, as `host/pid`, or by its id if it is gone; safe to print.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Whereabouts {
    /// The session.
    pub session: SessionId,
    /// Its host and process id, if it is still known.
    pub process: Option<(String, u32)>,
}

impl Whereabouts {
    pub(super) fn of(view: &SessionView) -> Self {
        Self { session: view.session, process: Some((view.host.clone(), view.pid)) }
    }

    /// The folder that its process works in; nothing if that cannot be told from here: it runs on another host, belongs to
    /// another user, or the system does not say.
    #[must_use]
    pub fn folder(&self) -> Option<PathBuf> {
        let (_, pid) = self.process.as_ref().filter(|(host, _)| *host == host_name())?;
        std::fs::read_link(format!("/proc/{pid}/cwd")).ok()
    }

    /// Whether its process is there; nothing if that cannot be told from here: it runs on another host, or is this one,
    /// which says nothing of a node within it.
    pub(super) fn is_there(&self) -> Option<bool> {
        let (host, pid) = self.process.as_ref()?;
        if *host != host_name() || *pid == std::process::id() {
            return None;
        }
        let process = Pid::from_raw(i32::try_from(*pid).ok()?)?;
        let there = !matches!(test_kill_process(process), Err(Errno::SRCH));
        // One that has ended and was not waited for is there by name alone.
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let ended = stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with(['Z', 'X']));
        Some(there && !ended)
    }
}

impl fmt::Display for Whereabouts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.process {
            Some((host, pid)) => write!(f, "{}/{pid}", tame(host)),
            None => write!(f, "session {}", self.session),
        }
    }
}

impl Serialize for Whereabouts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The sessions of nodes.
pub(super) fn nodes(survey: &Survey) -> impl Iterator<Item = &SessionView> {
    survey.sessions.iter().filter(|session| session.kind == Kind::Node)
}

/// The nodes within their leases; past it, a session is there until somebody reaps it and is no longer one of them.
pub(super) fn live_nodes(survey: &Survey) -> impl Iterator<Item = &SessionView> {
    nodes(survey).filter(|it| survey.now_ms.saturating_sub(it.beat_ms) <= it.lease_ms)
}

impl Admin {
    /// Waits until the session is gone; where it runs if it lives. Who beats is alive, and who does not is gone when its
    /// lease is over.
    pub(super) async fn outlive(&self, session: SessionId) -> Result<Option<Whereabouts>, StoreError> {
        let admin = self.apart();
        let mut first: Option<(u64, Instant)> = None;
        let alive = loop {
            // The beats of a session move the fleet's clock on and reap those whose lease is over.
            admin.session().await?;
            let survey = admin.survey().await?;
            let Some(it) = survey.sessions.iter().find(|it| it.session == session) else { break None };
            let until = Instant::now() + Duration::from_millis(it.lease_ms) + GRACE;
            let (beat, until) = *first.get_or_insert((it.beat_ms, until));
            if it.beat_ms != beat || Instant::now() > until {
                break Some(Whereabouts::of(it));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        };
        admin.leave().await;
        Ok(alive)
    }
}
