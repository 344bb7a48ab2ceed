//! Sales kept aside until all of them are read: input may take as long as it likes, and nobody waits for it meanwhile.
//!
//! They lie in a temporary database of SQLite that has no name and is gone with this value: up to 16 MiB of it are in memory,
//! the rest is in the temporary folder. Everything here blocks.

use rusqlite::{Connection, Error, params};

use super::{SalesError, amount::Amount, sale::Sale};

/// Sales with their lines, in the order in which they came.
pub(super) struct Aside {
    held: Connection,
}

impl Aside {
    /// Reads all of them; the first that is none ends it.
    pub(super) fn read(sales: impl Iterator<Item = Result<(u64, Sale), SalesError>>) -> Result<Self, SalesError> {
        let held = make().map_err(|error| failed(&error))?;
        {
            let insert = held.prepare("INSERT INTO aside VALUES (?1, ?2, ?3, ?4)");
            let mut insert = insert.map_err(|error| failed(&error))?;
            for sale in sales {
                let (line, Sale { transaction_id, item, amount }) = sale?;
                let row = params![line.cast_signed(), transaction_id, item, amount.minor_units];
                insert.execute(row).map_err(|error| failed(&error))?;
            }
        }
        Ok(Self { held })
    }

    /// Gives all of them to `take`.
    pub(super) fn give<T>(
        &self, take: impl FnOnce(&mut dyn Iterator<Item = Result<(u64, Sale), SalesError>>) -> Result<T, SalesError>,
    ) -> Result<T, SalesError> {
        let select = self.held.prepare("SELECT line, transaction_id, item, amount FROM aside ORDER BY rowid");
        let mut select = select.map_err(|error| failed(&error))?;
        let sales = select.query_map([], |row| {
            let sale =
                Sale { transaction_id: row.get(1)?, item: row.get(2)?, amount: Amount { minor_units: row.get(3)? } };
            Ok((row.get::<_, i64>(0)?.cast_unsigned(), sale))
        });
        let sales = sales.map_err(|error| failed(&error))?;
        take(&mut sales.map(|sale| sale.map_err(|error| failed(&error))))
    }
}

/// All of it is one transaction that is never committed: nothing has to be safe from a crash.
fn make() -> Result<Connection, Error> {
    let held = Connection::open("")?;
    held.pragma_update(None, "cache_size", -16_384)?;
    held.pragma_update(None, "synchronous", "OFF")?;
    held.pragma_update_and_check(None, "journal_mode", "OFF", |_| Ok(()))?;
    held.execute_batch(
        "BEGIN; CREATE TABLE aside (line INTEGER, transaction_id TEXT, item TEXT, amount INTEGER) STRICT;",
    )?;
    Ok(held)
}

fn failed(error: &Error) -> SalesError {
    SalesError::Input(format!("they cannot be kept in the temporary folder meanwhile: {error}"))
}
