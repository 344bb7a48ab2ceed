//! How long it takes to build a parcel, to check it, and to go through its bodies.
#![expect(clippy::expect_used, reason = "a benchmark ends where its inputs are broken")]

mod bodies;

use std::hint::black_box;

use baton::store::message::Parcel;
use bodies::{MESSAGES, bodies, parcel};
use criterion::{Criterion, Throughput};

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("parcel");
    group.throughput(Throughput::Elements(u64::from(MESSAGES)));
    let bodies = bodies();
    group.bench_function("build", |bencher| bencher.iter(|| parcel(black_box(&bodies))));
    let parcel = parcel(&bodies);
    group.bench_function("parse", |bencher| bencher.iter(|| Parcel::parse(black_box(parcel.bytes()).clone())));
    group.bench_function("bodies", |bencher| {
        bencher.iter(|| black_box(&parcel).bodies().for_each(|body| drop(black_box(body))))
    });
    group.finish();
    criterion.final_summary();
}
