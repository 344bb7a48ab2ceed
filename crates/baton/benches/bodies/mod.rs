//! What the benchmarks carry: 512 JSON bodies of 100 bytes, random and the same in every run.

use baton::store::message::{Body, Parcel, ParcelBuilder};

/// Messages in a parcel.
pub(crate) const MESSAGES: u32 = 512;
const BODY_BYTES: usize = 100;
const SEED: u64 = 0x0BA7_0000;

/// The bodies of one parcel.
pub(crate) fn bodies() -> Vec<Vec<u8>> {
    let mut random = fastrand::Rng::with_seed(SEED);
    (0..MESSAGES).map(|number| body(number, &mut random)).collect()
}

fn body(number: u32, random: &mut fastrand::Rng) -> Vec<u8> {
    let (head, tail) = (format!(r#"{{"number":{number},"text":""#), r#""}"#);
    let text: String = (head.len() + tail.len()..BODY_BYTES).map(|_| random.alphanumeric()).collect();
    [head, text, tail.to_owned()].concat().into_bytes()
}

/// All bodies in one parcel.
pub(crate) fn parcel(bodies: &[Vec<u8>]) -> Parcel {
    let mut builder = ParcelBuilder::default();
    for body in bodies {
        builder.add(Body::new(body).expect("small")).expect("512 bodies fit into a parcel");
    }
    builder.finish().expect("a parcel with bodies")
}
