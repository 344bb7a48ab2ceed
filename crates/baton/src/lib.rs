//! A fleet of identical nodes over one store.

mod fleet;
pub mod message;
pub mod store;

pub use fleet::{ConnectError, DEFAULT_FLEET, Fleet, FleetOptions, PushError, Queue};
