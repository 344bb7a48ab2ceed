//! What a waiting message takes beyond its body: in parcels, and pushed one by one with nothing to travel with.
//!
//! Redis tells its memory; what it keeps for connections is not the messages' and is left out. SQLite is measured by
//! the pages in use of a file of its own.

use std::{path::Path, time::Duration};

use baton::store::StoreUrl;
use tokio::time::Instant;

use super::{
    Figures, Plan,
    bare::Bare,
    bodies::{self, Parcels},
    bulk,
    folder::Folder,
    report::Figure,
    say,
    target::Target,
};
use crate::failure::Failure;

/// The most messages in parcels, and the most single ones.
const MOST: (u64, u64) = (1_000_000, 20_000);
/// How long single messages are pushed: a slow disk takes fewer.
const LIMIT: Duration = Duration::from_secs(5);

/// How messages get to the store.
#[derive(Clone, Copy)]
enum Way {
    Bulk,
    Singles,
}

/// Memory a message, both ways.
pub(super) async fn measure(plan: &Plan, target: &Target, figures: &mut Figures) -> Result<(), Failure> {
    say(target, "memory");
    for (way, figure) in
        [(Way::Bulk, &mut figures.memory_bulk_bytes), (Way::Singles, &mut figures.memory_singles_bytes)]
    {
        let each = match &target.bare {
            Some(bare) => in_redis(plan, target, bare, way).await?,
            None => in_sqlite(plan, target, way).await?,
        };
        *figure = Figure(Some(each - plan.bytes as f64));
    }
    Ok(())
}

async fn in_redis(plan: &Plan, target: &Target, bare: &Bare, way: Way) -> Result<f64, Failure> {
    let before = used_by(bare).await?;
    let count = push(plan, target, way).await?;
    let after = used_by(bare).await?;
    target.drain(way.queue()).await?;
    Ok((after - before) / count as f64)
}

/// Bytes in use by the server, if the store is one.
pub(super) async fn used(target: &Target) -> Result<Option<f64>, Failure> {
    match &target.bare {
        Some(bare) => used_by(bare).await.map(Some),
        None => Ok(None),
    }
}

async fn used_by(bare: &Bare) -> Result<f64, Failure> {
    Ok(bare.info("memory", &["used_memory"]).await? - bare.info("memory", &["mem_clients_normal"]).await?)
}

async fn in_sqlite(plan: &Plan, beside: &Target, way: Way) -> Result<f64, Failure> {
    let folder = Folder::make()?;
    let path = folder.path().join("memory.db");
    let (wait, tell) = (beside.settings.wait.value, beside.tell.clone());
    let target = Target::open(StoreUrl::Sqlite(path.clone()), wait, tell).await?;
    target.session().await?;
    let before = file_bytes(&target, &path).await?;
    let count = push(plan, &target, way).await?;
    let after = file_bytes(&target, &path).await?;
    Ok((after - before) / count as f64)
}

/// Leaves the store, so that nothing is written, and counts the bytes in use.
async fn file_bytes(target: &Target, path: &Path) -> Result<f64, Failure> {
    target.admin.leave().await;
    in_use(path).map_err(|error| {
        Failure::new(format!("cannot measure {}: {error}", path.display()), "name another folder with TMPDIR")
    })
}

/// Bytes of the pages in use, those in the log included.
fn in_use(path: &Path) -> rusqlite::Result<f64> {
    let db = rusqlite::Connection::open(path)?;
    let pragma = |name| db.pragma_query_value(None, name, |row| row.get::<_, u32>(0)).map(f64::from);
    Ok((pragma("page_count")? - pragma("freelist_count")?) * pragma("page_size")?)
}

/// Pushes messages that then wait; how many.
async fn push(plan: &Plan, target: &Target, way: Way) -> Result<u64, Failure> {
    match way {
        Way::Bulk => {
            let count = plan.messages.min(MOST.0);
            let parcels = Parcels::make(count, plan.parcel, plan.bytes)?;
            bulk::submit(target, way.queue(), parcels.of(count)).await?;
            Ok(count)
        }
        Way::Singles => {
            let queue = target.fleet().queue::<str>(way.queue());
            let (began, mut count) = (Instant::now(), 0);
            while count < plan.messages.min(MOST.1) && began.elapsed() < LIMIT {
                let pushed = queue.push(&bodies::text(plan.bytes)).await;
                pushed.map_err(|error| Failure::new(error.to_string(), "run the command again"))?;
                count += 1;
            }
            target.note(way.queue(), count);
            Ok(count)
        }
    }
}

impl Way {
    const fn queue(self) -> &'static str {
        match self {
            Self::Bulk => "memory-bulk",
            Self::Singles => "memory-singles",
        }
    }
}
