//! The `baton` command. Each subcommand is a thin file under `command`: it reads its flags and prints; what it does lies in
//! `baton::admin`.

mod arguments;
mod attendance;
mod command;
mod confirming;
mod connection;
mod exit;
mod first_lines;
mod following;
mod gateway;
mod help;
mod interrupt;
mod late_store;
mod node;
mod output;
mod panel;
mod port_holder;
mod progress;
mod refusal;
mod settings;
mod supervisor;

use std::{ops::ControlFlow, process::ExitCode};

use mimalloc::MiMalloc;
use tokio::runtime::Builder;

use crate::{
    arguments::Command,
    exit::{Exit, Failure},
    output::remark,
};

/// Parcels are large, and live from one thread to another: the one of the C library gives their memory back to the system
/// and asks for it again all the time.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    baton::pool::guard_children();
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(|at| format!(" at {}:{}", at.file(), at.line())).unwrap_or_default();
        remark(&format!(
            "a fault in baton itself or in a handler{place}; if it is not your handler's, report this line"
        ));
    }));
    run()
        .unwrap_or_else(|failure| {
            remark(&failure.to_string());
            failure.exit
        })
        .into()
}

/// The threads of the runtime: one for each core within these bounds. With one alone, what blocks it would hold up all the
/// rest; over the upper bound nothing was measured, and calls to the store and connections of the gateway have threads of
/// their own.
fn threads() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from).clamp(2, 8)
}

fn run() -> Result<Exit, Failure> {
    let arguments = match arguments::read(std::env::args_os())? {
        ControlFlow::Continue(arguments) => arguments,
        ControlFlow::Break(exit) => return Ok(exit),
    };
    if let Command::Config(config) = &arguments.command
        && config.only_checks()
    {
        return command::config::check(arguments.globals);
    }
    let settings = arguments.globals.resolve()?;
    let runtime = match &arguments.command {
        // It does one thing at a time, as a web process that pushes what each request asks for.
        Command::Bench(bench) if bench.produces() => Builder::new_current_thread().enable_all().build(),
        _ => Builder::new_multi_thread().worker_threads(threads()).enable_all().build(),
    };
    let runtime =
        runtime.map_err(|error| Failure::new(format!("cannot start: {error}"), "free some memory or threads"))?;
    let ended = runtime.block_on(async {
        match arguments.command {
            Command::Up(command) => command.run(&settings).await,
            Command::Node(command) => command.run(&settings).await,
            Command::Push(command) => command.run(&settings).await,
            Command::Call(command) => command.run(&settings).await,
            Command::Errors(command) => command.run(&settings).await,
            Command::Audit(command) => command.run(&settings).await,
            Command::Status(command) => command.run(&settings).await,
            Command::Stats(command) => command.run(&settings).await,
            Command::Source(command) => command.run(&settings).await,
            Command::Pause(command) => command.run(&settings).await,
            Command::Resume(command) => command.run(&settings).await,
            Command::Stop(command) => command.run(&settings).await,
            Command::Purge(command) => command.run(&settings).await,
            Command::Destroy(command) => command.run(&settings).await,
            Command::Backup(command) => command.run(&settings).await,
            Command::Restore(command) => command.run(&settings).await,
            Command::Migrate(command) => command.run(&settings).await,
            Command::SubsetSum(command) => command.run(&settings).await,
            Command::Sales(command) => command.run(&settings).await,
            Command::Token(command) => command.run(&settings).await,
            Command::Bench(command) => command.run(&settings).await,
            Command::Config(command) => command.run(&settings),
        }
    });
    // What still reads its input must not keep the process.
    runtime.shutdown_background();
    ended
}
