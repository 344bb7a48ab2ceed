//! How long a worker takes for a message beside the work itself: handlers that do nothing, tried without a store.
#![expect(clippy::expect_used, reason = "a benchmark ends where its inputs are broken")]

mod bodies;
mod handlers;

use baton::builtin::Noop;
use bodies::MESSAGES;
use criterion::{Criterion, Throughput};
use handlers::{Function, PARCELS, Trials, Yielding};

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("dispatch");
    let trials = Trials::new();
    group.throughput(Throughput::Elements(u64::from(PARCELS * MESSAGES)));
    group.bench_function("noop", |bencher| bencher.iter(|| trials.run(Noop)));
    group.bench_function("function", |bencher| bencher.iter(|| trials.run(Function)));
    group.bench_function("yielding", |bencher| bencher.iter(|| trials.run(Yielding)));
    group.finish();
    criterion.final_summary();
}
