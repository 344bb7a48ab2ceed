//! `cache` and `deferred` in a program that knows no HTTP: what takes its time to open is used at once, many readers of an
//! expensive sum share one computation, its value is kept, and who changes what it is computed from invalidates it. Two reads the cache over one store stand for two processes; `memory:` would
//! be `sqlite:PATH` or `redis://` then.

use std::{
    error::Error,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use baton::{
    Fleet,
    cache::{Cache, CacheError, CacheKey, CacheOptions, Cached, Prefix, Reading},
    deferred::{Bounds, Deferred},
};

/// What is sold, and how often all of it was added up.
#[derive(Clone, Default)]
struct Sales {
    amounts: Arc<Mutex<Vec<u64>>>,
    scans: Arc<AtomicUsize>,
}

impl Sales {
    async fn total(self) -> Result<String, String> {
        self.scans.fetch_add(1, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(50)).await;
        let amounts = self.amounts.lock().map_err(|_| "the sales are in disorder".to_owned())?;
        let total = amounts.iter().try_fold(0_u64, |sum, amount| sum.checked_add(*amount));
        total.map(|total| total.to_string()).ok_or_else(|| "the total is beyond all numbers".to_owned())
    }
}

async fn read(cache: &Cache, sales: &Sales, reading: Reading) -> Result<Cached, CacheError> {
    let sales = sales.clone();
    cache.get(&CacheKey::new("sales").part("total"), reading, move || sales.total()).await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let fleet = Fleet::connect("memory:")?;
    let cache = [0, 1].map(|_| Cache::shared(&fleet, CacheOptions::default()));
    let opening = Deferred::spawn(Bounds::default(), async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        Ok::<_, String>(Sales::default())
    });
    // Made before there is anything to sell in: they wait, and begin in this order.
    let sell = |amount| {
        opening.call(8, move |sales: Sales| async move { sales.amounts.lock().map(|mut it| it.push(amount)).is_ok() })
    };
    let (first, second) = tokio::join!(sell(40), sell(2));
    let sales = opening.get().await?;
    println!("sold before the start: {}, {:?}", first? && second?, sales.amounts.lock().map_err(|_| "poisoned")?);
    let never = Deferred::<Sales, _>::spawn(Bounds::default(), async { Err("no such file") });
    println!("a failed start is told: {}", never.get().await.err().map(|error| error.to_string()).unwrap_or_default());

    let readers: Vec<_> = (0..1_000)
        .map(|nth| {
            let (cache, sales) = (cache[nth % 2].clone(), sales.clone());
            tokio::spawn(async move { read(&cache, &sales, Reading::on()).await })
        })
        .collect();
    for reader in readers {
        assert_eq!(reader.await??.value, "42");
    }
    println!("1000 readers, {} computation", sales.scans.load(Ordering::SeqCst));

    sales.amounts.lock().map_err(|_| "poisoned")?.push(8);
    let generation = cache[0].invalidate_prefix(&Prefix::new("sales")).await?;
    let own_write = read(&cache[1], &sales, Reading::on().since(generation)).await?;
    println!(
        "after a sale: {}, {} computations",
        String::from_utf8_lossy(&own_write.value),
        sales.scans.load(Ordering::SeqCst)
    );

    let failed = cache[0].get(&CacheKey::new("broken"), Reading::on(), || async { Err::<String, _>("no data") }).await;
    println!("an error reaches its readers: {}", failed.err().map(|error| error.to_string()).unwrap_or_default());
    fleet.leave().await?;
    Ok(())
}
