//! Telling that the store has no room for what a source gives: one line when it waits, one when it goes on.
//!
//! Where workers make room a little at a time, pushes are taken and refused by turns. So a source goes on only when some of
//! it was stored and nothing was refused for a while.

use std::time::Duration;

use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout},
};

use super::{
    event::Event,
    observer::{Observer, tell},
};
use crate::{
    message::Name,
    store::{StoreError, session::Session},
};

/// How long nothing is stored before that is told.
const WORTH_A_LINE: Duration = Duration::from_millis(300);
/// How long nothing is refused before the store has room again.
const QUIET: Duration = Duration::from_secs(2);

/// What a generator does at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Flow {
    /// Batches stored so far.
    pub(super) stored: u64,
    /// Whether some are on their way.
    pub(super) under_way: bool,
}

/// Looks after a source on behalf of its generator, for ever.
pub(super) async fn watch(session: &Session, mut flow: watch::Receiver<Flow>, source: &Name, observer: &dyn Observer) {
    let mut troubles = session.troubles();
    loop {
        let error = refused(&mut troubles).await;
        let before = flow.borrow_and_update().stored;
        if timeout(WORTH_A_LINE, flow.wait_for(|flow| flow.stored != before)).await.is_ok() || !flow.borrow().under_way
        {
            continue;
        }
        tell(observer, &Event::SourceWaits { source: source.clone(), error });
        let begun = Instant::now();
        loop {
            let before = flow.borrow().stored;
            if flow.wait_for(|flow| flow.stored != before).await.is_err() {
                std::future::pending::<()>().await;
            }
            tokio::select! {
                _ = refused(&mut troubles) => {}
                () = sleep(QUIET) => break,
            }
        }
        tell(observer, &Event::SourceGoesOn { source: source.clone(), after: begun.elapsed() });
    }
}

/// Waits until the store has no room.
async fn refused(troubles: &mut watch::Receiver<Option<StoreError>>) -> StoreError {
    let no_room = troubles.wait_for(|trouble| matches!(trouble, Some(StoreError::NoRoom(_)))).await;
    match no_room.ok().and_then(|error| error.clone()) {
        Some(error) => error,
        None => std::future::pending().await,
    }
}
