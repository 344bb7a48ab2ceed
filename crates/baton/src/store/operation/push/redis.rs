//! The arguments and the answer of `push.lua`.

use crate::store::{
    Push, Pushed, StoreError,
    redis::{Arguments, Coded, Reply},
};

impl Coded for Push {
    fn fill<'r>(&self, to: Arguments<'r>) -> Arguments<'r> {
        let to = to
            .text(self.session)
            .text(&self.source)
            .text(self.epoch)
            .text(self.batch_no)
            .text(&self.from)
            .text(&self.to)
            .text(u8::from(self.end))
            .text(self.max_queue_bytes);
        self.parcels.iter().fold(to, |to, parcel| to.text(parcel.len()).parcel(self.session, parcel))
    }

    fn read(&self, code: &str, mut reply: Reply) -> Result<Pushed, StoreError> {
        match code {
            "OK" => Ok(Pushed { firsts: reply.rest(Reply::parsed)?, duplicate: false }),
            "DUP" => Ok(Pushed { firsts: Vec::new(), duplicate: true }),
            _ => Err(reply.refusal(code)),
        }
    }
}
