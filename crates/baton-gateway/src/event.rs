//! Events of a gateway, for its log.

use std::{fmt, sync::Arc};

use crate::tokens::Right;

/// The listener for the events of a gateway.
pub type GatewayEar = Arc<dyn Fn(&GatewayEvent) + Send + Sync>;

/// An event of a gateway. It holds nothing of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum GatewayEvent {
    /// The tokens cannot be read: no caller gets in.
    TokensUnreadable {
        /// Why.
        why: String,
    },
    /// The tokens can be read again.
    TokensReadable,
    /// A token is valid now.
    TokenAdded {
        /// Its name.
        name: String,
        /// What it allows.
        right: Right,
    },
    /// A token is not valid any more.
    TokenRevoked {
        /// Its name.
        name: String,
    },
    /// Callers need a token now.
    Closed {
        /// The gateway's state, as a sentence.
        standing: String,
    },
    /// Callers need a token, and no token is left.
    Shut {
        /// The gateway's state, as a sentence.
        standing: String,
    },
    /// Callers need no token any more.
    Opened {
        /// The gateway's state, as a sentence.
        standing: String,
    },
    /// There are as many connections as there may be; further ones are refused. Emitted once.
    Full {
        /// How many.
        connections: usize,
    },
    /// The system let it accept no connection. Told once.
    CannotAccept {
        /// Why.
        why: String,
    },
}

impl fmt::Display for GatewayEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TokensUnreadable { why } => {
                write!(f, "gateway: {why}: every request is refused until it can be read again")
            }
            Self::TokensReadable => f.write_str("gateway: the tokens can be read again"),
            Self::TokenAdded { name, right } => write!(f, "gateway: token {name} was added, with the right to {right}"),
            Self::TokenRevoked { name } => write!(f, "gateway: token {name} was revoked"),
            Self::Closed { standing } => {
                write!(f, "gateway: closed to callers without a token from now on: {standing}")
            }
            Self::Shut { standing } => write!(f, "gateway: {standing}"),
            Self::Opened { standing } => write!(f, "gateway: opened: {standing}"),
            Self::Full { connections } => {
                write!(f, "gateway: {connections} connections are open, further ones are refused")
            }
            Self::CannotAccept { why } => write!(f, "gateway: cannot accept connections: {why}"),
        }
    }
}
