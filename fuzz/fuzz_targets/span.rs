//! No text panics the readers of spans, names, keys, ids, digests and store URLs.
#![no_main]

use baton::{
    Key, Name, SessionId,
    store::{
        StoreUrl,
        message::{Digest, Span},
    },
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(span) = text.parse::<Span>() {
        assert_eq!(span.to_string().parse::<Span>().as_ref(), Ok(&span));
        let [front, behind] = span.without(span.range);
        assert!(front.is_none() && behind.is_none());
    }
    let _read = (text.parse::<Name>(), text.parse::<Key>(), text.parse::<SessionId>(), text.parse::<Digest>());
    if let Ok(url) = text.parse::<StoreUrl>() {
        assert!(!url.to_string().is_empty());
    }
});
