//! Looks after a fleet, as a person would: `cargo run -p baton-fleet --example admin -- sqlite:baton.db`

use std::{error::Error, time::Duration};

use baton::{
    Fleet,
    admin::{Admin, Stopped, Wanted},
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "memory:".to_owned());
    look_after(&Admin::new(&Fleet::connect(&url)?)).await?;
    Ok(())
}

/// Lists the errors, tries the first one again, watches the rates for a while, and stops all nodes.
pub(crate) async fn look_after(admin: &Admin) -> Result<Stopped, Box<dyn Error>> {
    let errors = admin.errors(&Wanted::default()).await?;
    for error in &errors {
        println!("{}/{} failed: {}", error.queue, error.id, error.error);
    }
    if let Some(first) = errors.first() {
        println!("requeued: {}", admin.requeue(&first.queue, vec![first.id]).await?);
    }
    let mut watch = admin.watch(None, Duration::from_millis(500));
    for _ in 0..2 {
        println!("{}", serde_json::to_string(&watch.next().await?)?);
    }
    let stopped = admin.stop(Some(Duration::from_secs(10))).await?;
    println!("{}", serde_json::to_string(&stopped)?);
    Ok(stopped)
}
