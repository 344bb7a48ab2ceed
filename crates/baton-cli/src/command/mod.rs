//! The subcommands, a file each.

pub(crate) mod audit;
pub(crate) mod backup;
pub(crate) mod bench;
pub(crate) mod call;
pub(crate) mod config;
pub(crate) mod destroy;
pub(crate) mod errors;
pub(crate) mod migrate;
pub(crate) mod node;
pub(crate) mod pause;
pub(crate) mod purge;
pub(crate) mod push;
pub(crate) mod restore;
pub(crate) mod sales;
pub(crate) mod source;
pub(crate) mod stats;
pub(crate) mod status;
pub(crate) mod stop;
pub(crate) mod subset_sum;
pub(crate) mod token;
pub(crate) mod up;
