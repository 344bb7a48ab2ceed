//! The fleet simulator: whole nodes, the real `fleet` and `session` code, over the memory store, with time that jumps to
//! the next thing that happens. A seed is a fleet: its nodes, queues, sources, kinds of work, messages and faults, and
//! every interleaving of them. The same seed is the same story, to the millisecond.
//!
//! * [`topology`] draws the fleet; [`world`] runs it; [`link`] is each node's way to the store, where faults happen.
//! * [`scene`] and [`ledger`] know everything that happened; [`rules`] says what must hold all along, [`end`] what must
//!   hold when everything has been worked off.
//! * A broken rule is reported with the seed, the fleet, the last events and those of the message it is about.
//!
//! What makes it deterministic: one thread, tokio's paused time, a store that reads that time, sessions that draw on a
//! seed ([`Environment::simulated`](baton::store::session::Environment::simulated)), and `select!`s without a draw.

pub(crate) mod assembly;
pub(crate) mod body;
mod busy;
mod calls;
mod chance;
mod drawn_source;
pub(crate) mod end;
mod gates;
mod journal;
mod known;
mod ledger;
mod link;
pub mod report;
mod rules;
mod scene;
mod small;
mod standstill;
pub mod topology;
pub(crate) mod witness;
pub mod work;
mod world;

use self::{
    report::{Failed, Summary},
    standstill::Standstill,
    topology::Topology,
    work::SIMULATED,
    world::World,
};

/// Runs the fleet of a seed to its end.
///
/// # Errors
/// The first rule it broke.
pub fn run(seed: u64) -> Result<Summary, Failed> {
    run_fleet(Topology::draw(seed)).map_err(|failed| {
        let again = format!(
            "again with: BATON_SEED={seed} BATON_FLEETS=1 cargo nextest run -p baton-testkit --test simulator random"
        );
        Failed { text: format!("{failed}{again}"), ..failed }
    })
}

/// Runs a fleet to its end.
///
/// # Errors
/// The first rule it broke.
pub fn run_fleet(topology: Topology) -> Result<Summary, Failed> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let standstill = Standstill::watch(topology.seed);
    runtime.block_on(async { World::new(topology, standstill.time.clone()).run().await })
}

/// Keeps panics that are thrown on purpose out of the output; all others are told as ever.
pub fn quiet_panics() {
    let told = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let text = panic.payload().downcast_ref::<String>().map_or("", String::as_str);
        if !text.starts_with(SIMULATED) {
            told(panic);
        }
    }));
}
