//! No bytes panic the parcel codec, and what it takes it gives back whole and in parts.
#![no_main]

use baton::message::Parcel;
use bytes::Bytes;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(parcel) = Parcel::parse(Bytes::copy_from_slice(bytes)) else { return };
    let bodies: Vec<Bytes> = parcel.bodies().collect();
    assert_eq!(bodies.len(), parcel.len() as usize);
    let start = bytes.len() as u32 % parcel.len();
    let cut = parcel.cut(start, parcel.len() - start).expect("within bounds");
    assert!(cut.bodies().eq(bodies[start as usize..].iter().cloned()));
    assert_eq!(Parcel::parse(cut.bytes().clone()).as_ref(), Ok(&cut));
    assert!(parcel.fitting(start, u32::MAX, bytes.len()) <= parcel.len());
});
