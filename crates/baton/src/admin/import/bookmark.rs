//! Where the input under a key stands, and which input into which queue that is.
//!
//! The chained digest of a bookmark begins with the name of the queue, so the same lines into another queue are other
//! input. Bookmarks of the first programs began with nothing. One of those is taken for this queue only if it can be of
//! no other, and goes on as a bookmark of this one with the next lines.
//!
//! A queue that was given fewer messages than the bookmark has lines cannot be the bookmark's: the key is refused for it
//! before anything is read.

use super::ImportCause;
use crate::{
    admin::Admin,
    message::{Digest, Key, Name},
    store::{Books, Place, ReadBookmark},
};

/// A key's bookmark as it was read.
#[derive(Debug, Clone)]
pub(super) struct Bookmark {
    pub(super) key: Key,
    pub(super) queue: Name,
    /// What was taken before.
    pub(super) taken: Place,
    /// Whether a bookmark without a queue can only be of this one.
    only_here: bool,
}

/// The digests of the lines read so far.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chain {
    lines: u64,
    digest: Digest,
    /// As the first programs had it; needed until the bookmark is reached.
    without_queue: Digest,
}

impl Bookmark {
    pub(super) async fn read(admin: &Admin, key: &Key, queue: &Name) -> Result<Self, ImportCause> {
        let taken = admin.ask(ReadBookmark { key: key.clone() }).await?;
        let mut only_here = false;
        if taken.lines > 0 {
            let survey = admin.survey().await?;
            let could_be = |it: &&Books| it.pushed >= taken.lines;
            let possible: Vec<&Name> = survey.queues.iter().filter(could_be).map(|it| &it.queue).collect();
            let of_another = |of: Option<&Name>| {
                let (key, queue, of) = (key.clone(), queue.clone(), of.cloned());
                ImportCause::OtherQueue { key, queue, of }
            };
            match possible[..] {
                [one] if one == queue => only_here = true,
                [one] => return Err(of_another(Some(one))),
                _ if !possible.contains(&queue) => return Err(of_another(None)),
                _ => {}
            }
        }
        Ok(Self { key: key.clone(), queue: queue.clone(), taken, only_here })
    }

    /// Before the first line.
    pub(super) fn start(&self) -> Chain {
        let digest = Digest::START.then(self.queue.as_str().as_bytes());
        Chain { lines: 0, digest, without_queue: Digest::START }
    }

    /// Whether the lines are those taken before.
    pub(super) fn is_of(&self, chain: &Chain) -> bool {
        let unbound = self.only_here && chain.without_queue == self.taken.digest;
        self.taken.digest == chain.digest || unbound
    }
}

impl Chain {
    pub(super) fn then(&mut self, body: &[u8], bookmark: &Bookmark) {
        if self.lines < bookmark.taken.lines {
            self.without_queue = self.without_queue.then(body);
        }
        self.digest = self.digest.then(body);
        self.lines += 1;
    }

    /// Where a bookmark stands behind these lines.
    pub(super) const fn place(&self) -> Place {
        Place { lines: self.lines, digest: self.digest }
    }
}
