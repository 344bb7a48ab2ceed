//! Errors are removed: for good, or back into their queue.

use crate::{
    message::{BodyPlace, IdSum, Parcel, Range, Span},
    store::{
        Disposal, Dispose, Disposed, Refusal,
        engine::{BodyKey, Effect, Line, Moved, Series, Tables, clock::visit, queues},
    },
};

impl Effect for Dispose {
    fn apply<T: Tables>(&self, tables: &mut T, _now: u64) -> Moved<Disposed> {
        let mut session = visit(tables, self.session)?;
        if self.dispose_no != session.dispose_no + 1 {
            let answer = tables.answer(self.session, Series::Dispose, self.dispose_no)?;
            // What is no number is the answer to a purge.
            let count = answer.and_then(|answer| answer.parse().ok());
            return Ok(Disposed { count: count.ok_or(Refusal::OutOfTurn { last: session.dispose_no })? });
        }
        let queue = tables.queue(&self.queue)?.filter(|queue| queue.drainer == Some(self.session));
        let mut queue = queue.ok_or(Refusal::NotRemover)?;
        let mut count = 0;
        for id in &self.ids {
            let Some(message) = tables.take_error(&self.queue, *id)? else { continue };
            if self.disposal == Disposal::Requeue && message.body.is_empty() {
                tables.put_error(&self.queue, &message)?;
                continue;
            }
            count += 1;
            let books = &mut queue.books;
            let range = Range::one(*id);
            books.failed -= 1;
            match self.disposal {
                Disposal::Remove => {
                    books.removed += 1;
                    books.removed_sum = books.removed_sum.plus(IdSum::of(range));
                }
                Disposal::Requeue => {
                    let parcel = Parcel::of_stored(&message.headers, &message.body)?;
                    books.requeued += 1;
                    books.ready += 1;
                    books.bytes += parcel.bytes().len() as u64;
                    tables.put_bodies(&self.queue, BodyKey::Own(*id), &parcel)?;
                    let span =
                        Span { place: BodyPlace::Own, range, attempts: 0, crashes: 0, born: message.born, role: None };
                    tables.push_back(&self.queue, Line::Ready, &span)?;
                }
            }
        }
        queue.wakes = usize::from(self.disposal == Disposal::Requeue && count > 0);
        queues::close(tables, &mut queue)?;
        session.dispose_no = self.dispose_no;
        tables.put_session(self.session, &session)?;
        tables.put_answer(self.session, Series::Dispose, self.dispose_no, 1, &count.to_string())?;
        Ok(Disposed { count })
    }
}
