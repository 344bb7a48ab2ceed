//! What goes into a parcel comes out of it, whole, in part, and whatever was done to its bytes.

use proptest::{collection::vec, prelude::*};

use super::{
    super::{MAX_BODY_BYTES, headers::LAST_ERROR},
    *,
};

/// One, with headers on every third message if `headed`, and shared ones if there are at least two bodies.
fn parcel_of(bodies: &[Vec<u8>], headed: bool) -> Parcel {
    let mut builder = ParcelBuilder::default();
    if headed && bodies.len() > 1 {
        builder = builder.shared(Fields::default().with(200, Some(b"all")).unwrap());
    }
    for (index, body) in bodies.iter().enumerate() {
        builder.add_with(&own_of(index, headed), Body::new(body).unwrap()).unwrap();
    }
    builder.finish().unwrap()
}

fn own_of(index: usize, headed: bool) -> Fields {
    let error = (headed && index.is_multiple_of(3)).then(|| format!("error {index}").into_bytes());
    Fields::default().with(LAST_ERROR, error.as_deref()).unwrap()
}

proptest! {
    #[test]
    fn bodies_come_back_and_cuts_are_parcels(
        bodies in vec(vec(any::<u8>(), 0..40), 1..60), start in 0_usize..60, len in 1_usize..60, budget in 0_usize..400,
        headed in any::<bool>(),
    ) {
        let parcel = parcel_of(&bodies, headed);
        prop_assert_eq!(&Parcel::parse(parcel.bytes().clone()).unwrap(), &parcel);
        prop_assert_eq!(parcel.bodies().map(|b| b.to_vec()).collect::<Vec<_>>(), bodies.clone());
        let cut = parcel.cut(start as u32, len as u32);
        prop_assert_eq!(cut.is_some(), start + len <= bodies.len());
        if let Some(cut) = cut {
            prop_assert_eq!(&Parcel::parse(cut.bytes().clone()).unwrap(), &cut);
            prop_assert_eq!(cut.bodies().map(|b| b.to_vec()).collect::<Vec<_>>(), &bodies[start..start + len]);
            let again = cut.cut(len as u32 - 1, 1).unwrap();
            prop_assert_eq!(again.body(0).unwrap(), &bodies[start + len - 1][..]);
            prop_assert_eq!(again.headers(0), parcel.headers((start + len - 1) as u32));
            prop_assert_eq!(again.headers(0).own, own_of(start + len - 1, headed));
            let fit = parcel.fitting(start as u32, len as u32, budget);
            let weight = |len: u32| parcel.cut(start as u32, len).map_or(0, |cut| cut.weight());
            prop_assert!(weight(fit) <= budget);
            prop_assert!(fit as usize == len || weight(fit + 1) > budget);
            let mut stored = std::io::Cursor::new(parcel.bytes());
            let (size, count) = (parcel.bytes().len(), parcel.len());
            let read = Parcel::cut_stored(&mut stored, size, count, start as u32, len as u32, budget as u64).unwrap();
            prop_assert_eq!(read, parcel.cut(start as u32, fit), "read in part as cut whole");
            let one = Parcel::of_stored(&again.headers(0), &again.body(0).unwrap()).unwrap();
            prop_assert_eq!((one.headers(0), one.body(0)), (again.headers(0), again.body(0)));
        }
    }

    #[test]
    fn shares_add_up_and_stay_while_others_go(
        bodies in vec(vec(any::<u8>(), 0..40), 1..60), gone in vec(any::<bool>(), 60), start in 0_u32..60, len in 1_u32..60,
        headed in any::<bool>(),
    ) {
        let parcel = parcel_of(&bodies, headed);
        let count = parcel.len();
        let all: u64 = (0..count).map(|index| parcel.share(index, 1)).sum();
        prop_assert_eq!((all, parcel.share(0, count)), (parcel.bytes().len() as u64, all));
        let thinned = parcel.thinned(|index| gone[index as usize]);
        prop_assert_eq!(&Parcel::parse(thinned.bytes().clone()).unwrap(), &thinned);
        for index in (0..count).filter(|index| !gone[*index as usize]) {
            prop_assert_eq!(thinned.share(index, 1), parcel.share(index, 1));
            prop_assert_eq!(thinned.body(index), parcel.body(index));
            prop_assert_eq!(thinned.headers(index), parcel.headers(index));
        }
        if start + len <= count {
            let mut stored = std::io::Cursor::new(parcel.bytes());
            let read = Parcel::share_stored(&mut stored, count, start, len).unwrap();
            prop_assert_eq!(read, parcel.share(start, len));
        }
    }

    #[test]
    fn no_bytes_panic_the_parser(mut bytes in vec(any::<u8>(), 0..200), format in 0_u8..3) {
        if format > 0 && !bytes.is_empty() { bytes[0] = format; }
        if let Ok(parcel) = Parcel::parse(Bytes::from(bytes)) {
            prop_assert_eq!(parcel.bodies().count(), parcel.len() as usize);
        }
    }

    #[test]
    fn a_damaged_parcel_never_panics(
        bodies in vec(vec(any::<u8>(), 0..9), 1..9), at in 0_usize..90, value in any::<u8>(), headed in any::<bool>(),
    ) {
        let mut bytes = parcel_of(&bodies, headed).bytes().to_vec();
        let at = at % bytes.len();
        bytes[at] = value;
        if let Ok(parcel) = Parcel::parse(Bytes::from(bytes)) {
            prop_assert_eq!(parcel.bodies().count(), parcel.len() as usize);
        }
    }
}

#[test]
fn refusals_name_the_cause() {
    for (bytes, why) in [
        (&b""[..], "unknown format byte"),
        (&[9, 1, 0, 0, 0, 0, 0, 0, 0], "unknown format byte"),
        (&[1, 1, 0], "shorter than its header"),
        (&[1, 0, 0, 0, 0, 0, 0, 0, 0], "count outside 1 to 65536"),
        (&[1, 1, 0, 0, 0, 0, 0, 0, 0, 1], "shorter than its table of ends"),
        (&[1, 1, 0, 0, 0, 5, 0, 0, 0, 1, 0, 0, 0], "ends go backwards"),
        (&[1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0], "length differs from its table of ends"),
        (&[2, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0], "shorter than its headers"),
        (&[2, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 7, 0, 0], "headers end within a field"),
        (&[2, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0], "shorter than its headers"),
    ] {
        assert_eq!(Parcel::parse(Bytes::from_static(bytes)), Err(InvalidMessage::Parcel(why)));
    }
}

#[test]
fn no_body_over_the_limit_gets_into_a_parcel() {
    let (largest, over) = (vec![b'1'; MAX_BODY_BYTES], vec![b'1'; MAX_BODY_BYTES + 1]);
    let refused = InvalidMessage::BodyTooLarge { len: over.len(), limit: MAX_BODY_BYTES };
    assert_eq!(Parcel::single(Body::new(&largest).unwrap()).weight(), MAX_BODY_BYTES);
    assert_eq!(Body::new(&over).unwrap_err(), refused);
    assert_eq!(
        Parcel::of_stored(&Headers::default(), &over).unwrap().weight(),
        over.len(),
        "what is stored stays readable"
    );
}

#[test]
fn a_full_builder_says_so() {
    let one = Body::new(b"1").unwrap();
    let mut builder = ParcelBuilder::default();
    for _ in 0..MAX_PARCEL_MESSAGES {
        builder.add(one).unwrap();
    }
    assert!(!builder.has_room(0));
    assert!(builder.add(one).is_err());
    assert_eq!(builder.finish().unwrap().len() as usize, MAX_PARCEL_MESSAGES);
    assert!(builder.finish().is_none());
}

#[test]
fn parcels_without_headers_are_written_in_the_plain_format() {
    let parcel = parcel_of(&[b"ab".to_vec(), b"c".to_vec()], false);
    assert_eq!(parcel.bytes()[..], *b"\x01\x02\0\0\0\0\0\0\0\x02\0\0\0\x03\0\0\0abc");
    assert_eq!(Parcel::of_stored(&Headers::default(), b"7").unwrap(), Parcel::single(Body::new(b"7").unwrap()));
}

#[test]
fn cuts_are_equal_if_they_hold_the_same_messages() {
    let parcel = |bodies: &[&[u8]]| {
        let mut builder = ParcelBuilder::default();
        bodies.iter().for_each(|body| builder.add(Body::new(body).unwrap()).unwrap());
        builder.finish().unwrap()
    };
    let (long, short) = (parcel(&[b"1", b"22", b"333"]), parcel(&[b"444", b"22", b"333"]));
    assert_eq!(long.cut(1, 2), short.cut(1, 2));
    assert_ne!(long, short);
    assert_ne!(parcel(&[b"1", b"22"]), parcel(&[b"12", b"2"]));
    assert_ne!(long.cut(0, 2), long.cut(0, 1));
}
