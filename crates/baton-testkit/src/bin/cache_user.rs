//! A process that gets one key from the cache and computes it for ever: for the test in which it is killed.

use std::{fs::OpenOptions, io::Write as _, path::PathBuf, process::ExitCode, time::Duration};

use baton::{
    Fleet, FleetOptions,
    cache::{Cache, CacheKey, CacheOptions, Reading, Value},
    store::StoreUrl,
};
use baton_testkit::subject::test_fleet;
use clap::Parser;

/// CacheTable the key `slow`; its computation tells that it has begun, and never ends.
#[derive(Debug, Parser)]
#[command(name = "cache_user")]
struct Arguments {
    /// The store
    #[arg(long, value_name = "URL")]
    store: StoreUrl,
    /// Where each computation writes a line as it begins
    #[arg(long, value_name = "PATH")]
    begun: PathBuf,
    /// After how long a silence somebody else computes
    #[arg(long, value_name = "MS")]
    lease_ms: u64,
}

#[tokio::main]
async fn main() -> ExitCode {
    let Arguments { store, begun, lease_ms } = Arguments::parse();
    let mut options = FleetOptions::new(test_fleet());
    options.session.lease = Duration::from_millis(lease_ms);
    let fleet = match Fleet::connect_with(&store, options) {
        Ok(fleet) => fleet,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let cache = Cache::shared(&fleet, CacheOptions::default());
    let compute = move || async move {
        let mut file = OpenOptions::new().append(true).create(true).open(begun)?;
        writeln!(file, "begun")?;
        std::future::pending::<std::io::Result<Value>>().await
    };
    match cache.get(&CacheKey::new("slow"), Reading::on(), compute).await {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
