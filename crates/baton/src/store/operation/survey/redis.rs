//! The arguments and the answer of `survey.lua`.

use bytes::Bytes;

use crate::{
    message::SessionId,
    store::{
        Kind, SessionView, SourceView, StoreError, Survey, TakeSurvey,
        redis::{Coded, Reply, parsed, read_books},
    },
};

impl Coded for TakeSurvey {
    fn read(&self, code: &str, mut reply: Reply) -> Result<Survey, StoreError> {
        match code {
            "OK" => survey(reply),
            _ => Err(reply.refusal(code)),
        }
    }
}

fn survey(mut it: Reply) -> Result<Survey, StoreError> {
    let now_ms = it.parsed()?;
    let mut sessions = it.list()?.rest(|it| session_view(it.list()?))?;
    sessions.sort_unstable_by_key(|view| view.session);
    let mut sources = it.list()?.rest(|it| source_view(it.list()?))?;
    sources.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    let mut queues = it.list()?.rest(|it| read_books(it.list()?))?;
    queues.sort_unstable_by(|a, b| a.queue.cmp(&b.queue));
    Ok(Survey { now_ms, sessions, sources, queues })
}

fn session_view(mut it: Reply) -> Result<SessionView, StoreError> {
    let session: SessionId = it.parsed()?;
    let kind = if it.text()? == "n" { Kind::Node } else { Kind::Client };
    let (host, pid) = (it.text()?, it.parsed()?);
    let queues = it.text()?;
    let queues = queues.split(',').filter(|name| !name.is_empty()).map(parsed).collect::<Result<_, _>>()?;
    let (lease_ms, join_no, joined_ms, beat_ms) = (it.parsed()?, it.parsed()?, it.parsed()?, it.parsed()?);
    let report: Bytes = it.bytes()?;
    Ok(SessionView { session, kind, host, pid, queues, lease_ms, join_no, joined_ms, beat_ms, report })
}

fn source_view(mut it: Reply) -> Result<SourceView, StoreError> {
    let (name, queue) = (it.parsed()?, it.parsed()?);
    let holder = Some(it.text()?).filter(|holder| !holder.is_empty());
    let holder = holder.map(|holder| parsed(&holder)).transpose()?;
    let epoch = Some(it.text()?).filter(|epoch| !epoch.is_empty());
    let epoch = epoch.map(|epoch| parsed(&epoch)).transpose()?.unwrap_or(0);
    Ok(SourceView { name, queue, holder, epoch, cursor: it.text()?, ended: it.text()? == "1" })
}
