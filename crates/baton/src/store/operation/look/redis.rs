//! The arguments and the answer of `look.lua`.

use crate::{
    message::Name,
    store::{
        Look, Looked, StoreError,
        redis::{Arguments, Coded, Reply},
    },
};

impl Coded for Look {
    fn fill<'r>(&self, to: Arguments<'r>) -> Arguments<'r> {
        to.text(self.session)
    }

    fn read(&self, code: &str, mut reply: Reply) -> Result<Looked, StoreError> {
        if code != "OK" {
            return Err(reply.refusal(code));
        }
        let mut queues: Vec<(Name, u64)> = reply.list()?.rest(|it| Ok((it.parsed()?, it.parsed()?)))?;
        queues.sort_unstable();
        Ok(Looked { queues })
    }
}
