//! A store that is not up when `up` begins.
//!
//! Where a gateway answers, requests wait for the store, so the process does too: a server is waited for until it is up or
//! somebody stops this, unless it was said how long (`--wait`, its variable or a file). Elsewhere a store that was never
//! there is an error after the usual time, and so is a file that cannot be used.

use std::time::Duration;

use baton::{
    admin::Admin,
    store::{StoreError, StoreUrl},
};

use crate::{
    connection::Connection,
    node::Log,
    settings::{Origin, Settings},
};

/// After how long a person who waits for a file wants to know what is there already.
const LONG: Duration = Duration::from_secs(1);
/// How often a store is tried that is waited for without a bound.
const AGAIN: Duration = Duration::from_millis(100);

/// Waits for the store, and says the first lines: at once before a server, for which requests wait; before a file when it is
/// open, or once that takes long. An error of the file comes at once and ends this without them.
pub(crate) async fn awaited(
    settings: &Settings, connection: &Connection, has_gateway: bool, announce: impl Fn(), log: &Log,
) -> Result<(), StoreError> {
    let is_server = matches!(settings.store.value, StoreUrl::Redis(_));
    let is_bounded = !has_gateway || !is_server || settings.wait.from != Origin::Default;
    let up = async {
        if is_bounded { connection.admin.survey().await.map(drop) } else { until_up(&connection.admin, log).await }
    };
    tokio::pin!(up);
    if is_server {
        announce();
        return up.await;
    }
    tokio::select! {
        up = &mut up => {
            if up.is_ok() {
                announce();
            }
            return up;
        }
        () = tokio::time::sleep(LONG) => announce(),
    }
    up.await
}

/// Tries until the store is up, and says once that it is not; what will not pass is an error at once.
async fn until_up(admin: &Admin, log: &Log) -> Result<(), StoreError> {
    // The pauses are this one's, which are not bounded.
    let admin = admin.clone().wait(Duration::ZERO);
    let mut was_said = false;
    loop {
        match admin.survey().await {
            Err(StoreError::Unreachable(why)) => {
                if !std::mem::replace(&mut was_said, true) {
                    log.say(&format!("the store is not up; waiting for it (--wait SECONDS is a limit): {why}"));
                }
                tokio::time::sleep(AGAIN).await;
            }
            surveyed => return surveyed.map(drop),
        }
    }
}
