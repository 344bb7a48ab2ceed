//! A mixed node of the soak as a process of its own.

use std::{path::PathBuf, process::ExitCode};

use baton::{Role, store::StoreUrl};
use baton_testkit::soak::mixed;
use clap::{Parser, ValueEnum};

/// Works six queues and offers five sources until its fleet is told to stop; `soak` starts it.
#[derive(Debug, Parser)]
#[command(name = "soak-node")]
struct Arguments {
    /// The store
    #[arg(long, value_name = "URL")]
    store: StoreUrl,
    /// Whether it may generate
    #[arg(long, value_enum, default_value_t = Roles::Auto)]
    role: Roles,
    /// Bytes a queue may hold
    #[arg(long, default_value_t = 64 << 20)]
    max_queue_bytes: u64,
    /// The command whose children run the messages of the command's queue
    #[arg(long, value_name = "COMMAND")]
    exec: Option<String>,
    /// Where it writes what it ran
    #[arg(long, value_name = "PATH")]
    journal: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Roles {
    Auto,
    Worker,
}

#[tokio::main]
async fn main() -> ExitCode {
    let Arguments { store, role, max_queue_bytes, exec, journal } = Arguments::parse();
    let role = if role == Roles::Auto { Role::Auto } else { Role::Worker };
    match mixed::run(&store, role, max_queue_bytes, exec.as_deref(), &journal).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
