//! Sources of a simulated fleet: endless, finite, idle, failing and panicking ones.

use std::{sync::Arc, time::Duration};

use baton::{Batch, BoxFuture, Flow, Source, SourceError, Stream};

use super::{
    chance::drawn,
    scene::Shared,
    topology::{SourcePlan, Trouble},
    work::{Body, SIMULATED},
};

/// A source as one life of a node offers it.
#[derive(Clone)]
pub(super) struct Spring {
    pub(super) scene: Shared,
    pub(super) seed: u64,
    pub(super) member: usize,
    pub(super) life: u32,
    pub(super) source: usize,
    pub(super) plan: Arc<SourcePlan>,
}

impl Spring {
    /// Whether something goes wrong at the moment that `what` stands for; it passes in the end.
    fn has_trouble(&self, kind: Trouble, what: &[u64], one_in: u64) -> bool {
        self.plan.trouble == kind && !self.scene.lock().unwrap().winding_down && drawn(self.seed, what, one_in) == 0
    }
}

impl Source for Spring {
    fn definition(&self) -> String {
        self.plan.name.clone()
    }

    fn open<'a>(&'a self, cursor: &'a str) -> BoxFuture<'a, Result<Box<dyn Stream>, SourceError>> {
        Box::pin(async move {
            let position = cursor.parse().unwrap_or(0);
            let opened = self.scene.lock().unwrap().opened(self.source, self.member, self.life);
            let what = [self.source as u64, opened, 3];
            if self.has_trouble(Trouble::OpenPanics, &what, 2) {
                self.scene.lock().unwrap().source_failed(self.source, self.member, "panics when opened");
                panic!("{SIMULATED}: opening a source");
            }
            if self.has_trouble(Trouble::OpenFails, &what, 2) {
                self.scene.lock().unwrap().source_failed(self.source, self.member, "cannot be opened");
                return Err(SourceError::new("it cannot be opened now"));
            }
            Ok(Box::new(Flowing { spring: self.clone(), position, opened, ended: false }) as Box<dyn Stream>)
        })
    }
}

/// An open source.
struct Flowing {
    spring: Spring,
    position: u64,
    opened: u64,
    /// It has given all it has, which may not be stored yet.
    ended: bool,
}

impl Stream for Flowing {
    fn pull<'a>(&'a mut self, batch: &'a mut Batch) -> BoxFuture<'a, Result<Flow, SourceError>> {
        Box::pin(async move {
            let Spring { scene, seed, source, member, plan, .. } = &self.spring;
            if plan.every_ms > 0 {
                tokio::time::sleep(Duration::from_millis(plan.every_ms)).await;
            }
            if plan.end.is_none() && scene.lock().unwrap().winding_down {
                std::future::pending::<()>().await;
            }
            let what = [*source as u64, self.opened, self.position, 4];
            if self.spring.has_trouble(Trouble::PullPanics, &what, 4) {
                scene.lock().unwrap().source_failed(*source, *member, "panics when pulled");
                panic!("{SIMULATED}: pulling a source");
            }
            if self.spring.has_trouble(Trouble::PullFails, &what, 4) {
                scene.lock().unwrap().source_failed(*source, *member, "fails when pulled");
                return Err(SourceError::new("it fails now"));
            }
            let end = plan.end.unwrap_or(u64::MAX);
            for _ in 0..plan.batch.min(end.saturating_sub(self.position)) {
                self.position += 1;
                let unique = drawn(*seed, &[*source as u64, self.position, 5], 0);
                let body = Body { queue: plan.queue, depth: 0, unique };
                batch.add(&serde_json::to_vec(&body).map_err(SourceError::new)?)?;
            }
            batch.reach(self.position);
            self.ended = self.position >= end;
            Ok(if self.ended { Flow::End } else { Flow::More })
        })
    }
}

impl Drop for Flowing {
    fn drop(&mut self) {
        let Spring { scene, source, member, life, .. } = &self.spring;
        if !self.ended {
            scene.lock().unwrap_or_else(std::sync::PoisonError::into_inner).closed(*source, *member, *life);
        }
    }
}
