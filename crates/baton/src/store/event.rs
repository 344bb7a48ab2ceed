//! What a store has to tell a person, beside its answers.

use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

use crate::Level;
#[cfg(any(feature = "sqlite", feature = "redis"))]
use crate::level::trace_at;

/// Something that happened to a store and that no call's answer tells: who holds it up, what was done about a file. Its
/// text is one line for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreEvent {
    /// A writer has waited for over a second for another process, which holds the lock.
    Stalled {
        /// The store's file.
        path: PathBuf,
        /// Which process that is, as far as the system tells.
        holder: Option<String>,
    },
    /// The end of [`StoreEvent::Stalled`].
    Unstalled {
        /// The store's file.
        path: PathBuf,
        /// How long the writer had to wait.
        after: Duration,
    },
    /// Another file has taken the place of the store's; calls go on with that one.
    Replaced {
        /// The store's file.
        path: PathBuf,
    },
    /// A log that belongs to another file was found beside the store's, and set aside.
    LogSetAside {
        /// The store's file.
        path: PathBuf,
        /// Where that log is now.
        aside: PathBuf,
    },
    /// The file was not closed in order, and the log that should be beside it is not there: what was stored last may be
    /// missing.
    LogMissing {
        /// The store's file.
        path: PathBuf,
        /// What may be that log.
        aside: Option<PathBuf>,
    },
    /// The log has grown long and cannot be emptied: a reader, maybe of another program, looks at an old state.
    LogHeld {
        /// The store's file.
        path: PathBuf,
        /// Which process that is, as far as the system tells.
        reader: Option<String>,
    },
    /// The log has grown as long as it may: nothing new is stored until that reader is gone.
    LogFull {
        /// The store's file.
        path: PathBuf,
        /// Which process that is, as far as the system tells.
        reader: Option<String>,
    },
    /// The end of [`StoreEvent::LogHeld`].
    LogEmptied {
        /// The store's file.
        path: PathBuf,
    },
    /// The server has neither an append-only file nor save points.
    KeepsNothing {
        /// Its address, without user and password.
        server: String,
    },
    /// The server's `maxmemory-policy` lets it drop stored messages: nothing new is stored until it is `noeviction`.
    MayEvict {
        /// Its address, without user and password.
        server: String,
        /// The policy.
        policy: String,
    },
    /// The end of [`StoreEvent::MayEvict`].
    EvictsNoMore {
        /// Its address, without user and password.
        server: String,
        /// How many keys the server dropped meanwhile, of whatever fleet or program.
        dropped: u64,
    },
    /// The disk is full, and the room kept for stopping and settling is used now.
    ReserveUsed {
        /// The store's file.
        path: PathBuf,
    },
}

impl StoreEvent {
    /// How much it matters.
    #[must_use]
    pub const fn level(&self) -> Level {
        match self {
            Self::Unstalled { .. } | Self::LogEmptied { .. } | Self::EvictsNoMore { .. } => Level::Info,
            Self::Stalled { .. }
            | Self::Replaced { .. }
            | Self::LogSetAside { .. }
            | Self::LogMissing { .. }
            | Self::LogHeld { .. }
            | Self::KeepsNothing { .. }
            | Self::ReserveUsed { .. } => Level::Warn,
            Self::LogFull { .. } | Self::MayEvict { .. } => Level::Error,
        }
    }

    /// The name of its kind, for programs that read logs.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Stalled { .. } => "store-stalled",
            Self::Unstalled { .. } => "store-unstalled",
            Self::Replaced { .. } => "store-replaced",
            Self::LogSetAside { .. } => "store-log-set-aside",
            Self::LogMissing { .. } => "store-log-missing",
            Self::LogHeld { .. } => "store-log-held",
            Self::LogFull { .. } => "store-log-full",
            Self::LogEmptied { .. } => "store-log-emptied",
            Self::KeepsNothing { .. } => "store-keeps-nothing",
            Self::MayEvict { .. } => "store-may-evict",
            Self::EvictsNoMore { .. } => "store-evicts-no-more",
            Self::ReserveUsed { .. } => "store-reserve-used",
        }
    }
}

impl fmt::Display for StoreEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stalled { path, holder } => {
                let (who, path) = (holder.as_deref().unwrap_or("another process"), path.display());
                write!(f, "{who} holds the lock of {path}; this process waits for it")
            }
            Self::Unstalled { path, after } => {
                let (path, took) = (path.display(), after.as_millis());
                write!(f, "the lock of {path} is free again after {}.{} s", took / 1000, took % 1000 / 100)
            }
            Self::Replaced { path } => write!(f, "{} is another file now; this process uses that one", path.display()),
            Self::LogSetAside { path, aside } => {
                let (path, aside) = (path.display(), aside.display());
                write!(f, "the log next to {path} belongs to another file; it is kept as {aside} and not used")
            }
            Self::LogMissing { path, aside } => {
                let path = path.display();
                write!(
                    f,
                    "{path} was not closed in order and its log is not beside it: if it was copied or moved without \
                     {path}-wal, what was stored last is missing; if another program was the last to close it, nothing is"
                )?;
                match aside.as_ref().map(|aside| aside.display()) {
                    Some(aside) => write!(
                        f,
                        "; {aside} may be that log: stop all, and before anything is stored rename it to {path}-wal"
                    ),
                    None => Ok(()),
                }
            }
            Self::LogHeld { path, reader } => {
                let (who, path) = (reader.as_deref().unwrap_or("some process"), path.display());
                write!(
                    f,
                    "the log of {path} grows and cannot be emptied, since {who} reads an old state; end that reader"
                )
            }
            Self::LogFull { path, reader } => {
                let (who, path) = (reader.as_deref().unwrap_or("some process"), path.display());
                write!(
                    f,
                    "the log of {path} has its full length and cannot be emptied, since {who} reads an old state; \
                     nothing new is stored until that reader ends: end it"
                )
            }
            Self::LogEmptied { path } => write!(f, "the log of {} is emptied again", path.display()),
            Self::KeepsNothing { server } => write!(
                f,
                "Redis at {server} keeps nothing on disk (no append-only file, no save points): its messages are gone \
                 when it restarts; set `appendonly yes` there to keep them"
            ),
            Self::MayEvict { server, policy } => write!(
                f,
                "Redis at {server} may drop stored messages (maxmemory-policy {policy}): nothing new is stored until \
                 that is mended; run `CONFIG SET maxmemory-policy noeviction` there, and set it in its configuration file"
            ),
            Self::EvictsNoMore { server, dropped } => {
                write!(
                    f,
                    "Redis at {server} drops nothing any more (maxmemory-policy noeviction): new messages are stored again"
                )?;
                match dropped {
                    0 => Ok(()),
                    _ => write!(
                        f,
                        "; it dropped {dropped} keys meanwhile: run `baton audit --deep` to see what is missing"
                    ),
                }
            }
            Self::ReserveUsed { path } => {
                let path = path.display();
                write!(
                    f,
                    "the disk of {path} is full: this process uses the room that it kept for finishing and stopping"
                )
            }
        }
    }
}

/// Hears what a store has to tell.
pub type Ear = Arc<dyn Fn(&StoreEvent) + Send + Sync>;

/// Tells whoever listens, and writes an event of `tracing`: the only place where either is done.
#[cfg(any(feature = "sqlite", feature = "redis"))]
pub(super) fn tell(ear: Option<&Ear>, event: &StoreEvent) {
    let level = event.level();
    match event {
        StoreEvent::Stalled { path, holder } => {
            trace_at!(level, path = %path.display(), holder = holder.as_deref(), "{event}");
        }
        StoreEvent::Unstalled { path, after } => {
            trace_at!(level, path = %path.display(), after = after.as_secs_f64(), "{event}");
        }
        StoreEvent::LogHeld { path, reader } | StoreEvent::LogFull { path, reader } => {
            trace_at!(level, path = %path.display(), reader = reader.as_deref(), "{event}");
        }
        StoreEvent::LogEmptied { path } => {
            trace_at!(level, path = %path.display(), "{event}");
        }
        StoreEvent::LogSetAside { path, aside } => {
            trace_at!(level, path = %path.display(), aside = %aside.display(), "{event}");
        }
        StoreEvent::KeepsNothing { server } => trace_at!(level, server, "{event}"),
        StoreEvent::MayEvict { server, policy } => trace_at!(level, server, policy, "{event}"),
        StoreEvent::EvictsNoMore { server, dropped } => trace_at!(level, server, dropped, "{event}"),
        StoreEvent::Replaced { path } | StoreEvent::LogMissing { path, .. } | StoreEvent::ReserveUsed { path } => {
            trace_at!(level, path = %path.display(), "{event}");
        }
    }
    if let Some(ear) = ear {
        ear(event);
    }
}
