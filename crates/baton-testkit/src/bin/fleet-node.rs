//! A node of a drawn fleet as a process of its own.

use std::{path::PathBuf, process::ExitCode};

use baton::store::StoreUrl;
use baton_testkit::real::node;
use clap::Parser;

/// Runs a node of the fleet of a seed until it is asked to finish; the test of real fleets starts it.
#[derive(Debug, Parser)]
#[command(name = "fleet-node")]
struct Arguments {
    /// The store
    #[arg(long, value_name = "URL")]
    store: StoreUrl,
    /// What the fleet is drawn from
    #[arg(long)]
    seed: u64,
    /// Which of its nodes this is
    #[arg(long)]
    node: usize,
    /// How often it was started before
    #[arg(long)]
    life: u32,
    /// Where it writes what it does
    #[arg(long, value_name = "PATH")]
    folder: PathBuf,
}

#[tokio::main]
async fn main() -> ExitCode {
    let Arguments { store, seed, node, life, folder } = Arguments::parse();
    match node::run(&store, seed, node, life, &folder).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
