//! All that users can see, held against the golden files: JSON, routes, keys of baton.toml, variables, public names.
//!
//! The help of the commands is held against its files where it is made, in `src/help.rs`.

mod answers;
mod description;
mod environment;
mod fleet;
mod library;
mod old_words;
#[path = "../sandbox/mod.rs"]
mod sandbox;
mod shape;
mod shapes;
mod sources;
#[path = "../web/mod.rs"]
mod web;
