//! Panics of what users wrote: caught, told as text, and over with that, also where what was thrown panics as it is dropped.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
};

/// What a panic says.
pub(crate) fn text(thrown: Box<dyn Any + Send>) -> String {
    let text = thrown.downcast_ref::<&str>().map(ToString::to_string);
    let text = text.or_else(|| thrown.downcast_ref::<String>().cloned());
    quietly(|| drop(thrown));
    text.unwrap_or_else(|| "without a message".to_owned())
}

/// Does what may panic; what it throws is never dropped, lest that panic too.
pub(crate) fn quietly(act: impl FnOnce()) {
    if let Err(thrown) = catch_unwind(AssertUnwindSafe(act)) {
        Box::leak(thrown);
    }
}
