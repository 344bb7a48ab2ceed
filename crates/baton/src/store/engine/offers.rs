//! Offers of sources: who is ready to run one.

use super::{Moved, Tables};
use crate::{
    message::{Name, SessionId},
    store::Offer,
};

/// The first session by id that offers this source as `like` wants it.
pub(in crate::store) fn offering<T: Tables>(
    tables: &mut T, source: &Name, like: impl Fn(SessionId, &Offer) -> bool,
) -> Moved<Option<SessionId>> {
    let sessions = tables.sessions()?.into_iter();
    let mut offering =
        sessions.filter(|(id, session)| session.offers.iter().any(|offer| offer.source == *source && like(*id, offer)));
    Ok(offering.next().map(|(id, _)| id))
}
