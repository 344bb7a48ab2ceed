//! No bytes panic the parcel codec, and what it takes it gives back whole and in parts.
#![no_main]

use std::io::Cursor;

use baton::store::message::{Headers, Parcel};
use bytes::Bytes;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(parcel) = Parcel::parse(Bytes::copy_from_slice(bytes)) else { return };
    let bodies: Vec<Bytes> = parcel.bodies().collect();
    assert_eq!(bodies.len(), parcel.len() as usize);
    let headers: Vec<Headers> = (0..parcel.len()).map(|index| parcel.headers(index)).collect();
    let start = bytes.len() as u32 % parcel.len();
    let cut = parcel.cut(start, parcel.len() - start).expect("within bounds");
    assert!(cut.bodies().eq(bodies[start as usize..].iter().cloned()));
    assert_eq!(Parcel::parse(cut.bytes().clone()).as_ref(), Ok(&cut));
    assert!((0..cut.len()).map(|index| cut.headers(index)).eq(headers[start as usize..].iter().cloned()));
    let (size, count) = (bytes.len(), parcel.len());
    let stored = Parcel::cut_stored(&mut Cursor::new(bytes), size, count, start, u32::MAX, u64::MAX);
    assert_eq!(stored.expect("a parcel"), Some(cut));
    for headers in headers {
        assert_eq!(Headers::parse(&headers.bytes()).as_ref(), Ok(&headers));
    }
    Headers::parse(&Bytes::copy_from_slice(bytes)).ok();
    assert!(parcel.fitting(start, u32::MAX, bytes.len()) <= parcel.len());
});
