//! A node of a drawn fleet as a process of its own.

use std::{path::Path, sync::Arc, time::Duration};

use baton::{Fleet, FleetOptions, Name, Shutdown, admin::obey_leash, store::StoreUrl};
use tokio::signal::unix::{SignalKind, signal};

use super::{FLEET, journal::Journal};
use crate::sim::{
    assembly::assemble,
    end::sweeper,
    quiet_panics,
    topology::Topology,
    witness::{Life, Witness},
};

/// Runs a life of a node of the fleet of a seed until it is asked to finish with SIGTERM. The node behind the last one
/// works for every queue.
///
/// # Errors
/// One line on what keeps it from running.
pub async fn run(store: &StoreUrl, seed: u64, node: usize, life: u32, folder: &Path) -> Result<(), String> {
    let mut asked = signal(SignalKind::terminate()).map_err(|error| error.to_string())?;
    let shutdown = Shutdown::new();
    obey_leash(&shutdown).map_err(|error| error.to_string())?;
    let finishing = shutdown.clone();
    tokio::spawn(async move {
        asked.recv().await;
        finishing.graceful();
    });
    quiet_panics();
    let (topology, of) = (Topology::small(seed), Life { node, life });
    let plan = topology.nodes.get(node).cloned().unwrap_or_else(|| sweeper(&topology));
    if life == 0 {
        tokio::time::sleep(Duration::from_millis(plan.starts_ms)).await;
    }
    let journal = Journal::open(folder, of).map_err(|error| format!("cannot write the journal: {error}"))?;
    let journal = Arc::new(journal);
    let witness: Arc<dyn Witness> = journal.clone();
    let options = FleetOptions::new(Name::new(FLEET).map_err(|error| error.to_string())?);
    let fleet = Fleet::connect_with(store, options).map_err(|error| error.to_string())?;
    let node = assemble(fleet.node().observed_by(journal), &topology, &plan, of, &witness);
    node.run(shutdown).await.map_err(|error| error.to_string())
}
