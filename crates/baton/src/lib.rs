//! A fleet of identical nodes over one store.

pub mod message;
pub mod store;
