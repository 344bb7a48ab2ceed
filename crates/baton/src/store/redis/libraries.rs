//! Removing libraries of functions that nobody may need any more.
//!
//! A library is named by its text, so each release has one of its own, and the server does not tell who uses which. One
//! that is removed while somebody uses it does no harm: the server then answers that it has no such function, and whoever
//! asked loads it again (`scripts.rs`). So a store that has given the server a library for the first time removes all
//! others, and does so once: two releases at work side by side settle after a few loads, and what earlier releases left is gone.

use std::collections::HashMap;

use redis::{RedisError, Value, aio::MultiplexedConnection};

use super::scripts::LIBRARIES;

/// Removes the libraries of this product but the one to be kept, which no database of the server owns.
pub(super) async fn remove(connection: &mut MultiplexedConnection, kept: Option<&str>) -> Result<(), RedisError> {
    let mut list = redis::cmd("FUNCTION");
    list.arg("LIST").arg("LIBRARYNAME").arg(format!("{LIBRARIES}*"));
    let libraries: Vec<HashMap<String, Value>> = list.query_async(connection).await?;
    for library in libraries {
        let Some(Value::BulkString(name)) = library.get("library_name") else { continue };
        if kept.is_none_or(|kept| kept.as_bytes() != name) {
            let mut delete = redis::cmd("FUNCTION");
            // Another one may have removed it.
            delete.arg("DELETE").arg(&name[..]).exec_async(connection).await.ok();
        }
    }
    Ok(())
}
