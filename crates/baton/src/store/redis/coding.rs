//! How operations are put to the server: each as the arguments of its script and the answer its reply stands for, both
//! told in the operation's own folder.

use std::{future::Future, pin::Pin};

use super::{
    RedisState,
    arguments::Arguments,
    keys::Root,
    reply::Reply,
    scripts::{Call, Script, Scripts},
};
use crate::store::{
    Answer, Request, StoreError,
    operation::{Operation, operations},
};

/// All steps of an operation that is more than one run of its script.
pub(in crate::store) type Steps<'a, A> = Pin<Box<dyn Future<Output = Result<A, StoreError>> + Send + 'a>>;

/// A number, and its name in both languages.
pub(in crate::store) type Number = (&'static str, u64);

/// An operation as the server is asked for it.
pub(in crate::store) trait Coded: Operation {
    /// The numbers of its own that its script needs.
    const NUMBERS: &'static [Number] = &[];

    /// A script that does the same for this one, by less or within other bounds.
    fn other_way<'s>(&self, _scripts: &'s Scripts) -> Option<&'s Script> {
        None
    }

    /// Adds the key of its script: the root, unless the script's head tells otherwise.
    fn key<'r>(&self, to: Arguments<'r>) -> Arguments<'r> {
        to.root()
    }

    /// Adds the arguments of its script, in the order the script's head tells.
    fn fill<'r>(&self, to: Arguments<'r>) -> Arguments<'r> {
        to
    }

    /// The answer that a reply of its script stands for, or the refusal: the code has been read, the rest has not.
    fn read(&self, code: &str, mut reply: Reply) -> Result<Self::Answer, StoreError> {
        Err(reply.refusal(code))
    }

    /// All of it, if it is more than one run of its script.
    fn steps<'a>(&'a self, _server: &'a RedisState) -> Option<Steps<'a, Self::Answer>> {
        None
    }
}

macro_rules! codings {
    ($($module:ident: $name:ident($request:ty) -> $answer:ty;)*) => {
        /// The script of a request, and its arguments.
        fn arguments<'a, 'r>(
            scripts: &'a Scripts, root: &'r Root, now: Option<u64>, request: &Request,
        ) -> (&'a Script, Arguments<'r>) {
            match request {
                $(Request::$name(it) => {
                    let script = it.other_way(scripts).unwrap_or(&scripts.$module);
                    (script, it.fill(it.key(Arguments::new(root, now, script.command()))))
                })*
            }
        }

        /// The answer to a request, or its refusal, from the rest of a reply after its code.
        pub(super) fn answer(request: &Request, code: &str, reply: Reply) -> Result<Answer, StoreError> {
            match request { $(Request::$name(it) => it.read(code, reply).map(Answer::$name),)* }
        }

        /// All steps of a request that takes several.
        pub(super) fn steps<'a>(request: &'a Request, server: &'a RedisState) -> Option<Steps<'a, Answer>> {
            match request {
                $(Request::$name(it) => {
                    let steps = it.steps(server)?;
                    Some(Box::pin(async { steps.await.map(Answer::$name) }))
                })*
            }
        }
    };
}

operations!(codings);

/// The call of a request's script, at this time of the server if that is known.
pub(super) fn call<'a>(scripts: &'a Scripts, root: &Root, now: Option<u64>, request: &Request) -> Call<'a> {
    let (script, Arguments { command, staged, .. }) = arguments(scripts, root, now, request);
    if staged.is_empty() { script.call(command) } else { script.call_with_staged(staged, command) }
}
