//! HTTP in front of a fleet.
//!
//! A [`Gateway`] stands on a [`Fleet`](baton::Fleet) and knows no command line. What is guaranteed:
//!
//! * Every request, whatever its method and path, passes the same guards in the same order: the name by which this host
//!   was addressed, the page that asked, the bearer's token. What they refuse reaches neither a route nor the store.
//! * Nothing is waited for without a bound, and nothing that comes in is kept without one. What is too much is refused
//!   at once, with the time after which it may be tried again, and never queued.
//! * What was answered with 202 is stored.
//!
//! Every refusal is a problem as of RFC 9457, but for heads that are no HTTP, which the protocol's own code answers.
//!
//! | file | what it is |
//! |---|---|
//! | `server`, `threads`, `connection`, `stall` | the loop that accepts, the threads that speak to peers, one connection from its begin to its end, a peer that does not read |
//! | `gate`, `admission` | what every request passes; what it was admitted with, and what its response holds until its last byte |
//! | `hosts` | by which names this host is addressed, and which pages may ask |
//! | `tokens/` | who may read and who may operate |
//! | `event` | what the gateway reports to its log |
//! | `room`, `shares`, `pace`, `limits` | how much there may be at once; how much of it a peer may have; how fast it goes; all bounds |
//! | `queues` | which queues messages are taken for |
//! | `readiness`, `fleet_view` | whether the store answers; the queues of the fleet, and how many live nodes work for each |
//! | `body`, `lines`, `intake` | bodies as they come in, many in one request, and their way into the store |
//! | `negotiation`, `forms` | what a caller wants to read, and events as bytes |
//! | `stream`, `following`, `searching` | bodies that stream; calls as they are followed; searches in the gateway itself |
//! | `say` | a module that takes its time to start |
//! | `problem` | refusals |
//! | `routes/`, `openapi` | what can be asked, a resource a file, and its description |

mod admission;
mod apart;
mod body;
mod connection;
mod event;
mod fleet_view;
mod following;
mod forms;
mod gate;
mod hosts;
mod intake;
mod limits;
mod lines;
mod negotiation;
mod openapi;
mod pace;
mod problem;
mod queues;
mod readiness;
mod room;
mod routes;
mod say;
mod searching;
mod server;
mod shares;
mod stall;
mod state;
mod stream;
mod threads;
pub mod tokens;

pub use self::{
    event::{GatewayEar, GatewayEvent},
    limits::Limits,
    server::{DEFAULT_ADDRESS, Gateway, GatewayError, GatewayOptions, Listen, Recipes},
};
