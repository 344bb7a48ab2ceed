//! The scripts: one file an operation, over shared parts; a library of functions on the server.
//!
//! The first line of an operation's file is its shebang with the flags. The parts and all operations make one library,
//! which a server reads once: a call builds none of it anew. Its name and those of its functions carry the hash of its
//! text, so that several releases and the clock of tests live side by side on a server. A server that does not know it
//! (a restart, a flush) did nothing; it is given the library and asked again.
//!
//! Where functions are refused (by access rights, or at maxmemory before they were loaded) the same operation runs as a
//! script: the parts, the operation and its flags in one text, by its hash or in full. However often functions and
//! scripts are flushed, a text sent in full is carried out.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, Ordering},
};

use redis::{
    Arg, Cmd, ErrorKind, Pipeline, RedisError, ServerErrorKind, Value,
    aio::{ConnectionLike as _, MultiplexedConnection},
};

use super::{constants, libraries, rights};
use crate::store::operation::operations;

/// What all libraries of this product are called, before their hash.
pub(super) const LIBRARIES: &str = "baton_";

/// How an operation begins, and one that only reads.
const BEGIN: &str = "begin(KEYS[1])\n";
const BEGIN_READING: &str = "begin(KEYS[1], true)\n";
/// How one begins that has a shorter way, where it does not take that.
const BEGINS_ITSELF: &str = "\nbegin(";

/// The operation that looks whether a user may do all that anybody does.
const LOOKING_AT_RIGHTS: [&str; 2] = ["join", "foreign"];

/// The keys of a script.
const KEYS: &str = "1";

/// What most calls have room in.
const FEW_ARGUMENTS: usize = 12;
const FEW_BYTES: usize = 384;

/// Reports that bring something new are those of `settle.lua`, but refused at maxmemory as pushes are.
const BRINGING: &str = "settle_bringing";

/// The shared parts, in the order they build on each other; the clock comes second.
const PARTS: &[&str] = &[
    include_str!("lua/rights.lua"),
    include_str!("lua/clock.lua"),
    include_str!("lua/foreign.lua"),
    include_str!("lua/fleet.lua"),
    include_str!("lua/standing.lua"),
    include_str!("lua/offers.lua"),
    include_str!("lua/counts.lua"),
    include_str!("lua/inbox.lua"),
    include_str!("lua/submits.lua"),
    include_str!("lua/ways.lua"),
    include_str!("lua/queue.lua"),
    include_str!("lua/span.lua"),
    include_str!("lua/singles.lua"),
    include_str!("lua/claimed.lua"),
    include_str!("lua/body.lua"),
    include_str!("lua/partly.lua"),
    include_str!("lua/intake.lua"),
    include_str!("lua/results.lua"),
    include_str!("lua/calls.lua"),
    include_str!("lua/cache.lua"),
    include_str!("lua/errors.lua"),
    include_str!("lua/claim.lua"),
    include_str!("lua/short.lua"),
    include_str!("lua/returns.lua"),
    include_str!("lua/count.lua"),
    include_str!("lua/begin.lua"),
];

/// The library as the server gets it.
#[derive(Debug)]
struct Library {
    name: String,
    /// The shared parts of its text.
    parts: String,
    text: String,
    /// Whether the server lets this user have no functions.
    refused: AtomicBool,
    /// Whether it was given to the server from here.
    was_loaded: AtomicBool,
}

/// A script by itself.
#[derive(Debug)]
struct InFull {
    text: String,
    hash: String,
}

/// One operation: a function of the library, and the same as a script.
#[derive(Debug)]
pub(in crate::store) struct Script {
    library: Arc<Library>,
    function: String,
    /// The first line of the operation's file, how it begins, and what it does.
    shebang: &'static str,
    begin: &'static str,
    body: String,
    /// The commands that it may come to, as words.
    needs: String,
    /// Made where functions are refused: it is long, and seldom needed.
    script: OnceLock<InFull>,
}

impl Script {
    /// A call of this script: its key, for most the root of a fleet, and its arguments are still to come.
    pub(in crate::store) fn command(&self) -> Cmd {
        let mut command = Cmd::with_capacity(FEW_ARGUMENTS, FEW_BYTES);
        if self.library.refused.load(Ordering::Relaxed) {
            command.arg("EVALSHA").arg(&self.script().hash);
        } else {
            command.arg("FCALL").arg(&self.function);
        }
        command.arg(KEYS);
        command
    }

    /// The call that a command made by [`Script::command`] is by itself.
    pub(super) fn call(&self, command: Cmd) -> Call<'_> {
        Call { script: self, commands: Commands::One(command) }
    }

    /// The same in one transaction with what is staged for it.
    pub(super) fn call_with_staged(&self, staged: Vec<Cmd>, command: Cmd) -> Call<'_> {
        let count = staged.len() + 3;
        let mut commands = Pipeline::with_capacity(count);
        commands.cmd("MULTI");
        for stage in staged {
            commands.add_command(stage);
        }
        commands.add_command(command).cmd("EXEC");
        Call { script: self, commands: Commands::Transaction(commands, count) }
    }

    /// The same as a script: the flags, the parts, the operation. That is a function of its own here too: Lua bounds how many
    /// locals one may have.
    fn script(&self) -> &InFull {
        let make = || {
            let Self { shebang, begin, body, needs, library, .. } = self;
            let text = format!(
                "{shebang}\n{}\nrights.needs = {needs}\nreturn (function(KEYS, ARGV)\n{begin}{body}\nend)(KEYS, ARGV)",
                library.parts
            );
            InFull { hash: redis::Script::new(&text).get_hash().to_owned(), text }
        };
        self.script.get_or_init(make)
    }

    /// A command made by [`Script::command`] with the text in the place of the name.
    fn in_full(&self, command: &Cmd) -> Cmd {
        let mut full = redis::cmd("EVAL");
        full.arg(&self.script().text);
        for argument in command.args_iter().skip(2) {
            if let Arg::Simple(argument) = argument {
                full.arg(argument);
            }
        }
        full
    }
}

/// What is sent to have a script run: its command, and what goes before it.
pub(super) struct Call<'a> {
    script: &'a Script,
    commands: Commands,
}

enum Commands {
    One(Cmd),
    /// So many, from `MULTI` to `EXEC`, and the script last before that.
    Transaction(Pipeline, usize),
}

/// Whether the server did nothing because it does not know the script, or does not let this user run it so.
pub(super) fn was_not_run(error: &RedisError) -> bool {
    is_unknown(error) || is_refused(error)
}

/// Whether this user may not call functions, or scripts by their hash, or the server has no such command. A right that is
/// missing within a script is no reason to run it otherwise.
fn is_refused(error: &RedisError) -> bool {
    let is_named = |detail: &str| ["'fcall'", "'evalsha'"].iter().any(|name| detail.to_lowercase().contains(name));
    error.detail().is_some_and(|detail| {
        let refuses = error.code() == Some("NOPERM") || detail.starts_with("unknown command");
        refuses && is_named(detail)
    })
}

/// Whether the server does not know a function or a script: it was restarted or told to forget, and did nothing.
fn is_unknown(error: &RedisError) -> bool {
    let is_function = || error.detail().is_some_and(|detail| detail.starts_with("Function not found"));
    error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) || is_function()
}

impl Call<'_> {
    /// Runs the script; its reply.
    pub(super) async fn run(&self, connection: &mut MultiplexedConnection) -> Result<Value, RedisError> {
        match self.attempt(connection).await {
            Err(error) if was_not_run(&error) => Box::pin(self.run_unknown(connection)).await,
            answer => answer,
        }
    }

    /// Runs a script that the server has just not run.
    pub(super) async fn run_unknown(&self, connection: &mut MultiplexedConnection) -> Result<Value, RedisError> {
        let library = &self.script.library;
        if !library.refused.load(Ordering::Relaxed) {
            match library.load(connection).await {
                Ok(()) => match self.attempt(connection).await {
                    Err(error) if was_not_run(&error) => {
                        // It may load functions and not call them.
                        library.refused.fetch_or(is_refused(&error), Ordering::Relaxed);
                    }
                    answer => return answer,
                },
                Err(error) if error.is_io_error() => return Err(error),
                Err(_) => {}
            }
        }
        self.in_full().attempt(connection).await
    }

    /// The same with the script in full.
    fn in_full(&self) -> Self {
        let commands = match &self.commands {
            Commands::One(command) => Commands::One(self.script.in_full(command)),
            Commands::Transaction(commands, count) => {
                let mut full = Pipeline::with_capacity(*count);
                for command in commands.cmd_iter() {
                    let of_script = matches!(command.args_iter().next(), Some(Arg::Simple(b"FCALL" | b"EVALSHA")));
                    full.add_command(if of_script { self.script.in_full(command) } else { command.clone() });
                }
                Commands::Transaction(full, *count)
            }
        };
        Self { script: self.script, commands }
    }

    async fn attempt(&self, connection: &mut MultiplexedConnection) -> Result<Value, RedisError> {
        match &self.commands {
            Commands::One(command) => connection.send_packed_command(command).await?.extract_error(),
            // Few are, and they take more room.
            Commands::Transaction(commands, count) => Box::pin(carry_out(commands, *count, connection)).await,
        }
    }
}

/// Carries out a transaction; the reply of the script, its last command.
async fn carry_out(
    commands: &Pipeline, count: usize, connection: &mut MultiplexedConnection,
) -> Result<Value, RedisError> {
    let mut replies = connection.req_packed_commands(commands, 0, count).await?.into_iter();
    let mut last = replies.next_back().unwrap_or(Value::Nil);
    let is_begun = replies.next().unwrap_or(Value::Nil).extract_error().is_ok();
    if !is_begun {
        // Without a transaction each command was carried out by itself, and the script's reply tells what became of it.
        last = replies.next_back().unwrap_or(Value::Nil);
    }
    // An error of what went before says more than that the transaction was not carried out for it.
    for reply in replies {
        reply.extract_error()?;
    }
    if let Value::Array(executed) = &mut last
        && is_begun
    {
        last = executed.pop().unwrap_or(Value::Nil);
    }
    last.extract_error()
}

impl Library {
    /// Gives the library to the server. If it refuses for good, functions are not asked for again.
    async fn load(&self, connection: &mut MultiplexedConnection) -> Result<(), RedisError> {
        let loaded = redis::cmd("FUNCTION").arg("LOAD").arg(&self.text).query_async::<Value>(connection).await;
        match loaded {
            // Another one was quicker.
            Err(error) if error.detail().is_some_and(|detail| detail.contains("already exists")) => Ok(()),
            Err(error) => {
                // At maxmemory or as a replica it may take it later.
                if matches!(error.code(), Some("NOPERM" | "ERR")) {
                    self.refused.store(true, Ordering::Relaxed);
                }
                Err(error)
            }
            Ok(_) => {
                if !self.was_loaded.swap(true, Ordering::Relaxed) {
                    // Libraries that it may not remove disturb nobody.
                    libraries::remove(connection, Some(&self.name)).await.ok();
                }
                Ok(())
            }
        }
    }
}

/// Declares the scripts: one an operation, and those that belong to none alone.
macro_rules! scripts {
    ($($module:ident: $name:ident($request:ty) -> $answer:ty;)*) => {
        scripts! {
            $($module: concat!("../operation/", stringify!($module), "/", stringify!($module), ".lua");)*
            settle_bringing: "../operation/settle/settle.lua";
            submit_one: "../operation/submit/submit_one.lua";
            recount_plan: "../operation/recount/recount_plan.lua";
            recount_page: "../operation/recount/recount_page.lua";
            hold: "../operation/recount/hold.lua";
            serve: "serve.lua";
            new_run: "new_run.lua";
            standing: "standing.lua";
            convert: "convert.lua";
            foreign: "foreign.lua";
        }
    };
    ($($name:ident: $file:expr;)*) => {
        /// All scripts of the store.
        #[derive(Debug)]
        pub(in crate::store) struct Scripts { $(pub(in crate::store) $name: Script,)* }

        impl Scripts {
            /// The scripts over the server's clock, or over the key that tests set.
            pub(super) fn new(test_clock: bool) -> Self {
                let operations = [$((stringify!($name), include_str!($file))),*];
                // What follows from the texts is found once in a process.
                static NEEDS: OnceLock<Vec<String>> = OnceLock::new();
                static NEEDS_OF_TESTS: OnceLock<Vec<String>> = OnceLock::new();
                let needs = if test_clock { &NEEDS_OF_TESTS } else { &NEEDS };
                let mut scripts = assemble(parts(test_clock), &operations, needs).into_iter();
                Self { $($name: scripts.next().unwrap_or_else(|| unreachable!("one a name")),)* }
            }
        }
    };
}
operations!(scripts);

fn parts(test_clock: bool) -> String {
    let clock =
        if test_clock { include_str!("lua/prelude_test_clock.lua") } else { include_str!("lua/prelude_time.lua") };
    let parts = [&[&constants::lua(), include_str!("lua/keys.lua"), clock], PARTS].concat().join("\n");
    constants::with_numbers(&parts)
}

/// The scripts of these operations, over one library.
fn assemble(parts: String, operations: &[(&str, &'static str)], kept: &OnceLock<Vec<String>>) -> Vec<Script> {
    let names: Vec<&str> = operations.iter().map(|(name, _)| *name).collect();
    let operations: Vec<_> = operations.iter().map(|&(name, operation)| split(name, operation)).collect();
    let needs = kept.get_or_init(|| needs(&parts, &names, &operations));
    let hash = redis::Script::new(&format!("{parts}{operations:?}{needs:?}")).get_hash()[..16].to_owned();
    let name = format!("{LIBRARIES}{hash}");
    let mut text = format!("#!lua name={name}\n{parts}\n");
    let functions: Vec<_> = names.iter().map(|operation| format!("{name}_{operation}")).collect();
    for ((function, needs), (shebang, begin, body)) in functions.iter().zip(needs).zip(&operations) {
        let flag = flag(shebang).map(|flag| format!("'{flag}'")).unwrap_or_default();
        text += &format!(
            "redis.register_function{{ function_name = '{function}', flags = {{ {flag} }}, callback = \
             function(KEYS, ARGV)\nrights.needs = {needs}\n{begin}{body}\nend }}\n"
        );
    }
    let (refused, was_loaded) = (AtomicBool::new(false), AtomicBool::new(false));
    let library = Arc::new(Library { name, parts, text, refused, was_loaded });
    let script = |((function, needs), (shebang, begin, body)): ((String, &String), Operation)| {
        let (library, needs, script) = (Arc::clone(&library), needs.clone(), OnceLock::new());
        Script { library, function, shebang, begin, body, needs, script }
    };
    functions.into_iter().zip(needs).zip(operations).map(script).collect()
}

/// The commands that each operation may come to, as words.
fn needs(parts: &str, names: &[&str], operations: &[Operation]) -> Vec<String> {
    let functions = rights::Functions::of(parts);
    let own: Vec<_> = operations.iter().map(|(_, _, body)| functions.commands(body)).collect();
    let all = rights::all(own.iter());
    let of = |(name, own)| rights::words(if LOOKING_AT_RIGHTS.contains(&name) { &all } else { own });
    names.iter().copied().zip(&own).map(of).collect()
}

/// The first line of an operation, how it begins, and what it does.
type Operation = (&'static str, &'static str, String);

/// The first line of an operation, how it begins, and what it does.
fn split(name: &str, operation: &'static str) -> Operation {
    let (shebang, body) = operation.split_once('\n').unwrap_or((operation, ""));
    let shebang = if name == BRINGING { "#!lua" } else { shebang };
    let begin = match flag(shebang) {
        _ if body.contains(BEGINS_ITSELF) => "",
        Some("no-writes") => BEGIN_READING,
        _ => BEGIN,
    };
    (shebang, begin, constants::with_numbers(body))
}

fn flag(shebang: &str) -> Option<&str> {
    shebang.split_once("flags=").map(|(_, flag)| flag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shebang_stays_first_and_push_is_refused_at_maxmemory() {
        let scripts = Scripts::new(false);
        assert!(scripts.settle.script().text.starts_with("#!lua flags=allow-oom\n"));
        assert!(scripts.survey.script().text.starts_with("#!lua flags=no-writes\n"));
        let refused = [(&scripts.push, ""), (&scripts.submit, ""), (&scripts.settle_bringing, "")];
        let allowed = [(&scripts.claim, "'allow-oom'"), (&scripts.settle, "'allow-oom'")];
        for (script, flags) in refused.into_iter().chain(allowed) {
            let registered = format!("function_name = '{}', flags = {{ {flags} }}", script.function);
            assert!(script.library.text.contains(&registered), "{registered}");
        }
        assert!(scripts.push.script().text.starts_with("#!lua\n"));
        assert!(scripts.submit.script().text.starts_with("#!lua\n"));
        assert!(scripts.settle_bringing.script().text.starts_with("#!lua\n"));
        let of_tests = Scripts::new(true);
        assert_ne!(scripts.push.script().hash, of_tests.push.script().hash);
        assert_ne!(scripts.push.function, of_tests.push.function);
    }
}
