//! Sources of a drawn fleet: endless, finite, idle, failing and panicking ones.

use std::{sync::Arc, time::Duration};

use baton::{Batch, BoxFuture, Flow, Source, SourceError, Stream};

use super::{
    body::Body,
    chance::drawn,
    topology::{SourcePlan, Trouble},
    witness::{Life, Witness},
    work::SIMULATED,
};

/// A source as one life of a node offers it.
#[derive(Clone)]
pub(super) struct DrawnSource {
    pub(super) witness: Arc<dyn Witness>,
    pub(super) seed: u64,
    pub(super) of: Life,
    pub(super) source: usize,
    pub(super) plan: Arc<SourcePlan>,
}

impl DrawnSource {
    /// Whether something goes wrong at the moment that `what` stands for; it passes in the end.
    fn has_trouble(&self, kind: Trouble, what: &[u64], one_in: u64) -> bool {
        self.plan.trouble == kind && !self.witness.winds_down() && drawn(self.seed, what, one_in) == 0
    }
}

impl Source for DrawnSource {
    fn definition(&self) -> String {
        self.plan.name.clone()
    }

    fn open<'a>(&'a self, cursor: &'a str) -> BoxFuture<'a, Result<Box<dyn Stream>, SourceError>> {
        Box::pin(async move {
            let position = cursor.parse().unwrap_or(0);
            let opened = self.witness.opened(self.source, self.of);
            let what = [self.source as u64, opened, 3];
            if self.has_trouble(Trouble::OpenPanics, &what, 2) {
                self.witness.source_failed(self.source, self.of, "panics when opened");
                panic!("{SIMULATED}: opening a source");
            }
            if self.has_trouble(Trouble::OpenFails, &what, 2) {
                self.witness.source_failed(self.source, self.of, "cannot be opened");
                return Err(SourceError::new("it cannot be opened now"));
            }
            Ok(Box::new(Flowing { drawn: self.clone(), position, opened, ended: false }) as Box<dyn Stream>)
        })
    }
}

/// An open source.
struct Flowing {
    drawn: DrawnSource,
    position: u64,
    opened: u64,
    /// It has given all it has, which may not be stored yet.
    ended: bool,
}

impl Stream for Flowing {
    fn pull<'a>(&'a mut self, batch: &'a mut Batch) -> BoxFuture<'a, Result<Flow, SourceError>> {
        Box::pin(async move {
            let DrawnSource { witness, seed, of, source, plan } = &self.drawn;
            if plan.every_ms > 0 {
                tokio::time::sleep(Duration::from_millis(plan.every_ms)).await;
            }
            if plan.end.is_none() && witness.winds_down() {
                std::future::pending::<()>().await;
            }
            let what = [*source as u64, self.opened, self.position, 4];
            if self.drawn.has_trouble(Trouble::PullPanics, &what, 4) {
                witness.source_failed(*source, *of, "panics when pulled");
                panic!("{SIMULATED}: pulling a source");
            }
            if self.drawn.has_trouble(Trouble::PullFails, &what, 4) {
                witness.source_failed(*source, *of, "fails when pulled");
                return Err(SourceError::new("it fails now"));
            }
            let end = plan.end.unwrap_or(u64::MAX);
            for _ in 0..plan.batch.min(end.saturating_sub(self.position)) {
                self.position += 1;
                batch.add(&Body::generated(*seed, *source, plan, self.position).bytes())?;
            }
            batch.reach(self.position);
            self.ended = self.position >= end;
            Ok(if self.ended { Flow::End } else { Flow::More })
        })
    }
}

impl Drop for Flowing {
    fn drop(&mut self) {
        if !self.ended {
            self.drawn.witness.closed(self.drawn.source, self.drawn.of);
        }
    }
}
