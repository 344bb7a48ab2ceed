//! What is heard of children beside their answers.

use std::sync::Arc;

use crate::message::MessageId;

/// A line that a child printed on its standard error, or a hint about how it answers.
#[derive(Debug, Clone, Copy)]
pub struct Spoken<'a> {
    /// At most 400 bytes of the line, without its end.
    pub text: &'a str,
    /// The message that the child had when it printed the line.
    pub message: Option<MessageId>,
    /// The number of the child in its pool, from 1; none if it was started for this message alone.
    pub child: Option<u64>,
    /// Whether it is a hint of Baton, and no line of the child.
    pub is_hint: bool,
}

/// Hears what is said.
pub(crate) type Ear = Arc<dyn Fn(&Spoken<'_>) + Send + Sync>;
