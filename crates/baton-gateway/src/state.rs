//! The state that all requests of a gateway share.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use baton::{Fleet, Name, builtin::sales::Sales, cache::Cache, deferred::Deferred};
use tokio::sync::watch;

use crate::{
    GatewayEar, Limits, fleet_view::FleetView, hosts::Hosts, pace::Lasting, readiness::Readiness, room::Room,
    say::Speaker, tokens::Keeper,
};

/// See the module.
pub(crate) struct State {
    pub(crate) fleet: Fleet,
    pub(crate) limits: Limits,
    pub(crate) hosts: Hosts,
    pub(crate) keeper: Keeper,
    pub(crate) room: Room,
    pub(crate) readiness: Readiness,
    pub(crate) view: FleetView,
    /// The queues of the fleet's description; without one, messages are taken for any queue.
    pub(crate) described: Option<BTreeSet<Name>>,
    /// The cache of expensive answers, for all of the fleet.
    pub(crate) cache: Cache,
    /// The sales, where some are kept.
    pub(crate) sales: Option<Sales>,
    /// The demonstration behind `/say`, once it has started.
    pub(crate) speaker: Deferred<Speaker, std::convert::Infallible>,
    /// How long the trouble lasts that is answered with 503 and has no pace of its own.
    pub(crate) trouble: Lasting,
    /// Whether there are the routes of the recipes.
    pub(crate) has_recipes: bool,
    /// How long a search goes on whose caller has gone and could return.
    pub(crate) linger: Duration,
    /// Whether the gateway stops: streams end then.
    pub(crate) closing: watch::Sender<bool>,
    /// Whether its time to stop is over: all requests under way are answered with that.
    pub(crate) over: watch::Sender<bool>,
    pub(crate) ear: GatewayEar,
}

impl State {
    /// Returns when the gateway begins to stop.
    pub(crate) async fn closes(&self) {
        self.closing.subscribe().wait_for(|closing| *closing).await.ok();
    }

    /// Returns when its time to stop is over.
    pub(crate) async fn ends(&self) {
        self.over.subscribe().wait_for(|over| *over).await.ok();
    }
}

/// A reference to it, as routes get it.
pub(crate) type Shared = Arc<State>;
