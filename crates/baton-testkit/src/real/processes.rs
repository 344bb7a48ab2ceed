//! The processes of a drawn fleet.

use std::{
    io,
    path::{Path, PathBuf},
};

use tokio::process::Command;

use crate::{
    sim::topology::Topology,
    soak::launch::{Roster, on_a_leash},
};

/// How the nodes of a drawn fleet are started.
#[derive(Clone)]
pub(super) struct Processes {
    program: PathBuf,
    folder: PathBuf,
    stores: Vec<String>,
    seed: u64,
    /// The first node.
    first: usize,
    /// How many follow.
    pub(super) count: usize,
}

impl Processes {
    pub(super) fn new(topology: &Topology, program: &Path, folder: &Path, stores: Vec<String>) -> Self {
        let (program, folder) = (program.to_owned(), folder.to_owned());
        Self { program, folder, stores, seed: topology.seed, first: 0, count: topology.nodes.len() }
    }

    /// The one more node that works for every queue.
    pub(super) fn sweeper(&self) -> Self {
        Self { first: self.count, count: 1, ..self.clone() }
    }
}

impl Roster for Processes {
    fn count(&self) -> usize {
        self.count
    }

    fn command(&self, slot: usize, start: u32) -> io::Result<Command> {
        let (node, store) = (self.first + slot, &self.stores[slot % self.stores.len()]);
        let mut command = on_a_leash(&self.program, &self.folder.join(format!("node-{node}.log")))?;
        command.args(["--store", store, "--seed", &self.seed.to_string()]);
        command.args(["--node", &node.to_string(), "--life", &start.to_string()]);
        command.arg("--folder").arg(&self.folder);
        Ok(command)
    }
}
