//! What a waiting message takes beyond its body: in parcels, and pushed one by one with nothing to travel with.
//!
//! Redis tells its memory; what it keeps for connections is not the messages' and is left out. SQLite is measured by
//! the pages in use of a file of its own, closed so that everything is in it.

use std::{fs::File, io::Read as _, path::Path, time::Duration};

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
    stand::Stand,
};
use crate::exit::Failure;

/// The most messages in parcels, and the most single ones.
const MOST: (u64, u64) = (1_000_000, 20_000);
/// How long single messages are pushed: a slow disk takes fewer.
const LIMIT: Duration = Duration::from_secs(5);
/// How long a file may take to be closed.
const CLOSE_LIMIT: Duration = Duration::from_secs(10);

/// How messages get to the store.
#[derive(Clone, Copy)]
enum Way {
    Bulk,
    Singles,
}

/// Memory a message, both ways.
pub(super) async fn measure(plan: &Plan, stand: &Stand, figures: &mut Figures) -> Result<(), Failure> {
    say(stand, "memory");
    for (way, figure) in
        [(Way::Bulk, &mut figures.memory_bulk_bytes), (Way::Singles, &mut figures.memory_singles_bytes)]
    {
        let each = match &stand.bare {
            Some(bare) => in_redis(plan, stand, bare, way).await?,
            None => in_sqlite(plan, stand.settings.wait.value, way).await?,
        };
        *figure = Figure(Some(each - plan.bytes as f64));
    }
    Ok(())
}

async fn in_redis(plan: &Plan, stand: &Stand, bare: &Bare, way: Way) -> Result<f64, Failure> {
    let before = used(bare).await?;
    let count = push(plan, stand, way).await?;
    let after = used(bare).await?;
    stand.drain(way.queue()).await?;
    Ok((after - before) / count as f64)
}

async fn used(bare: &Bare) -> Result<f64, Failure> {
    Ok(bare.info("memory", &["used_memory"]).await? - bare.info("memory", &["mem_clients_normal"]).await?)
}

async fn in_sqlite(plan: &Plan, wait: Duration, way: Way) -> Result<f64, Failure> {
    let folder = Folder::make()?;
    let path = folder.path().join("memory.db");
    let open = || Stand::open(StoreUrl::Sqlite(path.clone()), wait);
    let stand = open().await?;
    stand.connection.session().await?;
    let before = closed(stand, &path).await?;
    let stand = open().await?;
    let count = push(plan, &stand, way).await?;
    let after = closed(stand, &path).await?;
    Ok((after - before) / count as f64)
}

/// Leaves the store, waits until its log is part of the file, and gives the bytes of the pages in use.
async fn closed(stand: Stand, path: &Path) -> Result<f64, Failure> {
    stand.connection.leave().await;
    drop(stand);
    let log = path.with_extension("db-wal");
    let deadline = Instant::now() + CLOSE_LIMIT;
    while log.exists() && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let cannot = |why: String| Failure::new(format!("cannot measure {}: {why}", path.display()), "run this again");
    if log.exists() {
        return Err(cannot("it is not closed".to_owned()));
    }
    let mut header = [0; 100];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut header));
    read.map_err(|error| cannot(error.to_string()))?;
    Ok(in_use(&header))
}

/// Bytes in use by the header of an SQLite file: the size of a page, the pages, and those of them that are free.
fn in_use(header: &[u8; 100]) -> f64 {
    let number = |at: usize, len: usize| {
        header.iter().skip(at).take(len).fold(0_u64, |number, byte| (number << 8) | u64::from(*byte))
    };
    let page = match number(16, 2) {
        1 => 65_536,
        page => page,
    };
    (number(28, 4).saturating_sub(number(36, 4)) * page) as f64
}

/// Pushes messages that then wait; how many.
async fn push(plan: &Plan, stand: &Stand, way: Way) -> Result<u64, Failure> {
    match way {
        Way::Bulk => {
            let count = plan.messages.min(MOST.0);
            let parcels = Parcels::make(count, plan.parcel, plan.bytes)?;
            bulk::submit(stand, way.queue(), parcels.of(count)).await?;
            Ok(count)
        }
        Way::Singles => {
            let queue = stand.connection.fleet().queue::<str>(way.queue());
            let (began, mut count) = (Instant::now(), 0);
            while count < plan.messages.min(MOST.1) && began.elapsed() < LIMIT {
                let pushed = queue.push(&bodies::text(plan.bytes)).await;
                pushed.map_err(|error| Failure::new(error.to_string(), "run the command again"))?;
                count += 1;
            }
            stand.note(way.queue(), count);
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
