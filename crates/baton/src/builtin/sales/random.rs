//! Sales that never were, to try things with.

use super::sale::Sale;
use crate::builtin::sales::amount::Amount;

const ITEMS: [&str; 10] = ["book", "game", "app", "song", "movie", "lamp", "chair", "tea", "shoe", "pen"];

/// So many sales of ten items, for up to 100.00 each, as the seed has it; transactions of one seed have the same ids.
pub fn random_sales(count: u64, seed: u64) -> impl Iterator<Item = (u64, Sale)> {
    let mut chance = fastrand::Rng::with_seed(seed);
    (1..=count).map(move |number| {
        let item = chance.choice(ITEMS).unwrap_or_default().to_owned();
        let amount = Amount { minor_units: chance.i64(1..=10_000) };
        (number, Sale { transaction_id: format!("random-{seed:016x}-{number}"), item, amount })
    })
}
