//! The fleet is looked at, and nothing is moved.

use crate::store::{
    SessionView, SourceView, Survey, TakeSurvey,
    engine::{Effect, Moved, Tables, clock::alive},
};

impl Effect for TakeSurvey {
    fn apply<T: Tables>(&self, tables: &mut T, now: u64) -> Moved<Survey> {
        let sessions = tables.sessions()?;
        let sessions = sessions.into_iter().map(|(session, record)| SessionView {
            session,
            kind: record.kind,
            host: record.host,
            pid: record.pid,
            queues: record.queues,
            lease_ms: record.lease_ms,
            join_no: record.join_no,
            joined_ms: record.joined_ms,
            beat_ms: record.beat_ms,
            report: record.report,
        });
        let sessions = sessions.collect();
        let mut sources = Vec::new();
        for (name, record) in tables.sources()? {
            sources.push(SourceView {
                name,
                queue: record.queue,
                holder: alive(tables, record.holder)?,
                epoch: record.epoch,
                cursor: record.cursor,
                ended: record.ended,
            });
        }
        let queues = tables.queues()?.into_iter().map(|queue| queue.books).collect();
        Ok(Survey { now_ms: now, sessions, sources, queues })
    }
}
