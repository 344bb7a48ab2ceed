//! The test kit: one conformance suite for every store, a state machine that holds stores against the model, real
//! servers on free ports, faults on demand, and a soak that throws all of them at real processes. Not published.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    reason = "a test that meets the unexpected should stop there and say where"
)]

pub mod conformance;
pub mod faults;
pub mod golden;
pub mod load;
pub mod machine;
pub mod proxy;
pub mod real;
pub mod server;
pub mod sim;
pub mod soak;
pub mod stores;
pub mod subject;
