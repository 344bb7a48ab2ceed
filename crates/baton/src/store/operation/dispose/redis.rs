//! The arguments and the answer of `dispose.lua`.

use crate::store::{
    Disposal, Dispose, Disposed, StoreError,
    redis::{Arguments, Coded, Number, Reply, numbers},
};

/// Bytes of bodies after which a call that puts errors back is to be made again.
const REQUEUED_BYTES: u64 = 512 << 10;

impl Coded for Dispose {
    const NUMBERS: &'static [Number] = numbers![REQUEUED_BYTES];

    fn fill<'r>(&self, to: Arguments<'r>) -> Arguments<'r> {
        let disposal = if self.disposal == Disposal::Remove { "d" } else { "q" };
        to.text(self.session).text(self.dispose_no).text(&self.queue).text(disposal).joined(self.ids.iter(), ",")
    }

    fn read(&self, code: &str, mut reply: Reply) -> Result<Disposed, StoreError> {
        match code {
            "OK" => Ok(Disposed { count: reply.parsed()? }),
            _ => Err(reply.refusal(code)),
        }
    }
}
