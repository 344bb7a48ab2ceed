//! The scripts: assembled from a prelude, shared parts and one file an operation; run by their hash.
//!
//! The first line of an operation's file is its shebang with the flags and stays first; then come the prelude that
//! reads the clock and the parts the operation needs, in the order they build on each other. A server that does not
//! know a script (a restart, a flush) is given it once and asked again: a script that was not known did nothing.

use redis::{Cmd, ErrorKind, ServerErrorKind, Value, aio::MultiplexedConnection};

const KEYS: &str = include_str!("scripts/lib_keys.lua");
const CLOCK: &str = include_str!("scripts/lib_clock.lua");
const FLEET: &str = include_str!("scripts/lib_fleet.lua");
const OFFERS: &str = include_str!("scripts/lib_offers.lua");
const QUEUE: &str = include_str!("scripts/lib_queue.lua");
const PIECE: &str = include_str!("scripts/lib_piece.lua");
const BODY: &str = include_str!("scripts/lib_body.lua");
const INTAKE: &str = include_str!("scripts/lib_intake.lua");
const REGISTRY: &str = include_str!("scripts/lib_registry.lua");
const RETURNS: &str = include_str!("scripts/lib_returns.lua");
const COUNT: &str = include_str!("scripts/lib_count.lua");

/// One script as the server gets it.
#[derive(Debug)]
pub(super) struct Script {
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

    /// Runs a call made by [`Script::command`].
    pub(super) async fn run(
        &self, connection: &mut MultiplexedConnection, command: &Cmd,
    ) -> Result<Value, redis::RedisError> {
        match command.query_async(connection).await {
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                let _hash: Value = redis::cmd("SCRIPT").arg("LOAD").arg(&self.text).query_async(connection).await?;
                command.query_async(connection).await
            }
            answer => answer,
        }
    }
}

/// Declares the scripts: a field each, its file, and the parts it needs.
macro_rules! scripts {
    ($($name:ident: $file:literal [$($part:ident),*];)*) => {
        /// All scripts of the store.
        #[derive(Debug)]
        pub(super) struct Scripts { $(pub(super) $name: Script,)* }

        impl Scripts {
            /// The scripts over the server's clock, or over the key that tests set.
            pub(super) fn new(test_clock: bool) -> Self {
                let prelude = if test_clock {
                    include_str!("scripts/prelude_test_clock.lua")
                } else {
                    include_str!("scripts/prelude_time.lua")
                };
                Self { $($name: Script::assemble(prelude, &[$($part),*], include_str!(concat!("scripts/", $file))),)* }
            }
        }
    };
}

scripts! {
    join: "join.lua" [CLOCK, FLEET, OFFERS, QUEUE];
    beat: "beat.lua" [CLOCK, OFFERS];
    leave: "leave.lua" [CLOCK, QUEUE, PIECE, BODY, REGISTRY, RETURNS];
    reap: "reap.lua" [CLOCK, QUEUE, PIECE, BODY, REGISTRY, RETURNS];
    take: "take.lua" [CLOCK, OFFERS];
    resign: "resign.lua" [CLOCK];
    rewind: "rewind.lua" [CLOCK];
    order: "order.lua" [FLEET, QUEUE];
    push: "push.lua" [CLOCK, QUEUE, INTAKE];
    submit: "submit.lua" [CLOCK, QUEUE, INTAKE];
    claim: "claim.lua" [CLOCK, QUEUE, PIECE, BODY];
    settle: "settle.lua" [CLOCK, QUEUE, PIECE, BODY, INTAKE, REGISTRY, RETURNS];
    drain_begin: "drain_begin.lua" [CLOCK];
    dispose: "dispose.lua" [CLOCK, QUEUE];
    peek: "peek.lua" [];
    result: "result.lua" [];
    bookmark: "bookmark.lua" [];
    survey: "survey.lua" [CLOCK, QUEUE];
    recount: "recount.lua" [QUEUE, COUNT];
    recount_plan: "recount_plan.lua" [QUEUE];
    recount_page: "recount_page.lua" [COUNT];
    hold: "hold.lua" [];
    new_run: "new_run.lua" [];
    purge: "purge.lua" [];
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
