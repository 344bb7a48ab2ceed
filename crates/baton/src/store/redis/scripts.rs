//! The scripts: assembled from a prelude, shared parts and one file an operation; run by their hash.
//!
//! The first line of an operation's file is its shebang with the flags and stays first; then come the prelude that
//! reads the clock and the parts the operation needs, in the order they build on each other. A server that does not
//! know a script (a restart, a flush) did nothing; it is asked again with the script's text in the place of its hash,
//! which it then knows again. However often scripts are flushed, nothing comes between the two.

use redis::{
    Arg, Cmd, ErrorKind, Pipeline, RedisError, ServerErrorKind, Value,
    aio::{ConnectionLike as _, MultiplexedConnection},
};

use super::constants;

const KEYS: &str = include_str!("lua/keys.lua");
const CLOCK: &str = include_str!("lua/clock.lua");
const FLEET: &str = include_str!("lua/fleet.lua");
const OFFERS: &str = include_str!("lua/offers.lua");
const QUEUE: &str = include_str!("lua/queue.lua");
const PIECE: &str = include_str!("lua/piece.lua");
const BODY: &str = include_str!("lua/body.lua");
const INTAKE: &str = include_str!("lua/intake.lua");
const REGISTRY: &str = include_str!("lua/registry.lua");
const RETURNS: &str = include_str!("lua/returns.lua");
const COUNT: &str = include_str!("lua/count.lua");

/// One script as the server gets it.
#[derive(Debug)]
pub(in crate::store) struct Script {
    text: String,
    hash: String,
}

impl Script {
    fn assemble(prelude: &str, parts: &[&str], operation: &str) -> Self {
        let (shebang, operation) = operation.split_once('\n').unwrap_or((operation, ""));
        let text = [&[shebang, prelude, KEYS], parts, &[operation]].concat().join("\n");
        let hash = redis::Script::new(&text).get_hash().to_owned();
        Self { text, hash }
    }

    /// A call of this script on the fleet with this root, its arguments still to come.
    pub(super) fn command(&self, root: &str) -> Cmd {
        let mut command = redis::cmd("EVALSHA");
        command.arg(&self.hash).arg(1).arg(root);
        command
    }

    /// The call that a command made by [`Script::command`] is by itself.
    pub(super) fn call(&self, command: Cmd) -> Call<'_> {
        let mut commands = Pipeline::with_capacity(1);
        commands.add_command(command);
        Call { script: self, commands, count: 1, in_transaction: false }
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
        Call { script: self, commands, count, in_transaction: true }
    }

    /// A command made by [`Script::command`] with the text in the place of the hash.
    fn in_full(&self, command: &Cmd) -> Cmd {
        let mut full = redis::cmd("EVAL");
        full.arg(&self.text);
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
    commands: Pipeline,
    count: usize,
    in_transaction: bool,
}

/// Whether the server does not know a script: it was restarted or told to forget, and did nothing.
pub(super) fn is_unknown(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::NoScript)
}

impl Call<'_> {
    /// Runs the script; its reply.
    pub(super) async fn run(&self, connection: &mut MultiplexedConnection) -> Result<Value, RedisError> {
        match self.attempt(connection).await {
            Err(error) if is_unknown(&error) => self.in_full().attempt(connection).await,
            answer => answer,
        }
    }

    /// The same with the script in full.
    fn in_full(&self) -> Self {
        let mut commands = Pipeline::with_capacity(self.count);
        for command in self.commands.cmd_iter() {
            let of_script = command.args_iter().next() == Some(Arg::Simple(b"EVALSHA"));
            commands.add_command(if of_script { self.script.in_full(command) } else { command.clone() });
        }
        Self { commands, ..*self }
    }

    async fn attempt(&self, connection: &mut MultiplexedConnection) -> Result<Value, RedisError> {
        let mut replies = connection.req_packed_commands(&self.commands, 0, self.count).await?.into_iter();
        let mut last = replies.next_back().unwrap_or(Value::Nil);
        // An error of what went before says more than that the transaction was not carried out for it.
        for reply in replies {
            reply.extract_error()?;
        }
        if let (true, Value::Array(executed)) = (self.in_transaction, &mut last) {
            last = executed.pop().unwrap_or(Value::Nil);
        }
        last.extract_error()
    }
}

/// Declares the scripts: a field each, its file, and the parts it needs.
macro_rules! scripts {
    ($($name:ident: $file:literal [$($part:ident),*];)*) => {
        /// All scripts of the store.
        #[derive(Debug)]
        pub(in crate::store) struct Scripts { $(pub(in crate::store) $name: Script,)* }

        impl Scripts {
            /// The scripts over the server's clock, or over the key that tests set.
            pub(super) fn new(test_clock: bool) -> Self {
                let clock = if test_clock {
                    include_str!("lua/prelude_test_clock.lua")
                } else {
                    include_str!("lua/prelude_time.lua")
                };
                let prelude = &[&constants::lua(), clock].concat();
                Self { $($name: Script::assemble(prelude, &[$($part),*], include_str!(concat!("../", $file))),)* }
            }
        }
    };
}

scripts! {
    join: "operation/join/join.lua" [CLOCK, FLEET, OFFERS, QUEUE];
    beat: "operation/beat/beat.lua" [CLOCK, OFFERS];
    leave: "operation/leave/leave.lua" [CLOCK, QUEUE, PIECE, BODY, REGISTRY, RETURNS];
    reap: "operation/reap/reap.lua" [CLOCK, QUEUE, PIECE, BODY, REGISTRY, RETURNS];
    take: "operation/take/take.lua" [CLOCK, OFFERS, QUEUE];
    resign: "operation/resign/resign.lua" [CLOCK, QUEUE];
    rewind: "operation/rewind/rewind.lua" [CLOCK];
    remove: "operation/remove/remove.lua" [OFFERS];
    order: "operation/order/order.lua" [CLOCK, FLEET, QUEUE];
    push: "operation/push/push.lua" [CLOCK, QUEUE, INTAKE];
    submit: "operation/submit/submit.lua" [CLOCK, QUEUE, INTAKE];
    claim: "operation/claim/claim.lua" [CLOCK, QUEUE, PIECE, BODY, REGISTRY];
    pass: "operation/pass/pass.lua" [CLOCK, QUEUE];
    look: "operation/look/look.lua" [];
    settle: "operation/settle/settle.lua" [CLOCK, QUEUE, PIECE, BODY, INTAKE, REGISTRY, RETURNS];
    drain_begin: "operation/drain_begin/drain_begin.lua" [CLOCK];
    dispose: "operation/dispose/dispose.lua" [CLOCK, QUEUE, BODY];
    peek: "operation/peek/peek.lua" [];
    result: "operation/result/result.lua" [];
    bookmark: "operation/bookmark/bookmark.lua" [];
    survey: "operation/survey/survey.lua" [CLOCK, QUEUE];
    recount: "operation/recount/recount.lua" [QUEUE, COUNT];
    recount_plan: "operation/recount/recount_plan.lua" [QUEUE];
    recount_page: "operation/recount/recount_page.lua" [COUNT];
    hold: "operation/recount/hold.lua" [];
    new_run: "redis/new_run.lua" [];
    purge: "operation/purge/purge.lua" [];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shebang_stays_first_and_push_is_refused_at_maxmemory() {
        let scripts = Scripts::new(false);
        assert!(scripts.settle.text.starts_with("#!lua flags=allow-oom\n"));
        assert!(scripts.survey.text.starts_with("#!lua flags=no-writes\n"));
        assert!(scripts.push.text.starts_with("#!lua\n"));
        assert!(scripts.submit.text.starts_with("#!lua\n"));
        assert_ne!(scripts.push.hash, Scripts::new(true).push.hash);
    }
}
