//! No text panics the readers of pieces, names, keys, ids, digests and store URLs.
#![no_main]

use baton::{
    Key, Name, SessionId,
    store::{
        StoreUrl,
        message::{Digest, Piece},
    },
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(piece) = text.parse::<Piece>() {
        assert_eq!(piece.to_string().parse::<Piece>().as_ref(), Ok(&piece));
        let [front, behind] = piece.without(piece.range);
        assert!(front.is_none() && behind.is_none());
    }
    let _read = (text.parse::<Name>(), text.parse::<Key>(), text.parse::<SessionId>(), text.parse::<Digest>());
    if let Ok(url) = text.parse::<StoreUrl>() {
        assert!(!url.to_string().is_empty());
    }
});
