//! One sale.

use super::amount::{Amount, InvalidAmount};

/// The longest id of a transaction, and the longest name of an item, in bytes.
pub const MAX_TEXT_BYTES: usize = 1024;

/// A sale. An item may have any name, also an empty one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Sale {
    pub(super) transaction_id: String,
    pub(super) item: String,
    pub(super) amount: Amount,
}

/// Why something is no sale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidSale {
    /// No id, or a very long one.
    #[error("a transaction_id has 1 to {MAX_TEXT_BYTES} bytes")]
    Transaction,
    /// A very long name.
    #[error("an item has at most {MAX_TEXT_BYTES} bytes")]
    Item,
    /// No amount.
    #[error(transparent)]
    Amount(#[from] InvalidAmount),
}

impl Sale {
    /// A sale of these parts.
    ///
    /// # Errors
    /// [`InvalidSale`]
    pub fn new(transaction_id: &str, item: &str, amount: &str) -> Result<Self, InvalidSale> {
        if transaction_id.is_empty() || transaction_id.len() > MAX_TEXT_BYTES {
            return Err(InvalidSale::Transaction);
        }
        check_item(item)?;
        Ok(Self { transaction_id: transaction_id.to_owned(), item: item.to_owned(), amount: amount.parse()? })
    }
}

/// Refuses what no item can be called.
///
/// # Errors
/// [`InvalidSale::Item`]
pub fn check_item(item: &str) -> Result<(), InvalidSale> {
    if item.len() > MAX_TEXT_BYTES { Err(InvalidSale::Item) } else { Ok(()) }
}
