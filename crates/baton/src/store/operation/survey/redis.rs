//! The arguments and the answer of `survey.lua`: of a large fleet, page by page.

use bytes::Bytes;

use crate::{
    message::SessionId,
    store::{
        Kind, SessionView, SourceView, StoreError, Survey, TakeSurvey,
        redis::{Coded, Number, RedisState, Reply, Steps, numbers, parsed, read_books},
    },
};

/// The most members, sources and queues together that are read in one step.
const SURVEYED_AT_ONCE: usize = 250;

impl Coded for TakeSurvey {
    const NUMBERS: &'static [Number] = numbers![SURVEYED_AT_ONCE];

    fn steps<'a>(&'a self, server: &'a RedisState) -> Option<Steps<'a, Survey>> {
        Some(Box::pin(take(server)))
    }
}

/// Sources are read before queues: when one has ended, its messages are in the books.
async fn take(server: &RedisState) -> Result<Survey, StoreError> {
    let mut reply = server.run(&server.scripts.survey, |to| to).await?;
    let mut survey = match reply.text()?.as_str() {
        "OK" => read(reply)?,
        "MANY" => {
            let now_ms = reply.parsed()?;
            let mut survey = Survey { now_ms, sessions: Vec::new(), sources: Vec::new(), queues: Vec::new() };
            for kind in ["sessions", "sources", "queues"] {
                let names = reply.list()?.rest(Reply::text)?;
                for names in names.chunks(SURVEYED_AT_ONCE) {
                    let page = page(server, kind, names).await?;
                    survey.sessions.extend(page.sessions);
                    survey.sources.extend(page.sources);
                    survey.queues.extend(page.queues);
                }
            }
            survey
        }
        code => return Err(reply.refusal(code)),
    };
    survey.sessions.sort_unstable_by_key(|view| view.session);
    survey.sources.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    survey.queues.sort_unstable_by(|a, b| a.queue.cmp(&b.queue));
    Ok(survey)
}

/// These of one kind.
async fn page(server: &RedisState, kind: &str, names: &[String]) -> Result<Survey, StoreError> {
    let mut reply = server.run(&server.scripts.survey, |to| to.arg(kind).arg(names)).await?;
    match reply.text()?.as_str() {
        "OK" => read(reply),
        code => Err(reply.refusal(code)),
    }
}

fn read(mut it: Reply) -> Result<Survey, StoreError> {
    let now_ms = it.parsed()?;
    let sessions = it.list()?.rest(|it| session_view(it.list()?))?;
    let sources = it.list()?.rest(|it| source_view(it.list()?))?;
    let queues = it.list()?.rest(|it| read_books(it.list()?))?;
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
