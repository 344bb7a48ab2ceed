//! The arguments and the answer of `progress.lua`.

use crate::store::{
    Progress, ReadProgress, StoreError,
    redis::{Arguments, Coded, Reply, parsed, read_books},
};

impl Coded for ReadProgress {
    fn fill<'r>(&self, to: Arguments<'r>) -> Arguments<'r> {
        to.text(&self.queue).text(self.source.as_ref().map_or("", |source| source.as_str()))
    }

    fn read(&self, code: &str, mut reply: Reply) -> Result<Progress, StoreError> {
        if code != "OK" {
            return Err(reply.refusal(code));
        }
        let ended = reply.text()? == "1";
        let due = reply.text()?;
        let due_ms = if due.is_empty() { None } else { Some(parsed(&due)?) };
        let books = reply.list()?;
        let books = if books.is_done() { None } else { Some(read_books(books)?) };
        Ok(Progress { books, due_ms, ended })
    }
}
