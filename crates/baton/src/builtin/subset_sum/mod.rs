//! All non-empty subsets of up to 64 integers that have a given sum.
//!
//! ```
//! use std::ops::ControlFlow;
//! use baton::builtin::subset_sum::{Problem, SearchOptions, solve};
//!
//! let mut matches = Vec::new();
//! let summary = solve(&Problem::new(vec![1, 2, -4, 5, -3], 0), &SearchOptions::default(), &|| false, |found| {
//!     matches.extend(found);
//!     ControlFlow::Continue(())
//! })?;
//! matches.sort();
//! assert_eq!(matches, [vec![1, 2, -3], vec![2, -4, 5, -3]]);
//! assert!(summary.complete);
//! # Ok::<(), baton::builtin::subset_sum::Refusal>(())
//! ```
//!
//! The numbers are halved, and each half is two short lists of sums (Schroeppel and Shamir's four), which are gone through
//! side by side, from the least sum to the greatest, a window of sums at a time. It takes time as 2^(n/2) and then as long
//! as the matches take, and less than 64 MiB whatever the numbers are. What would take too long is refused before it is
//! begun. Sums never overflow.
//!
//! | mode | where it computes | who waits |
//! |---|---|---|
//! | inline: [`solve`] | on all cores of this process | the thread that asks |
//! | interleaved: [`Interleaved`] | in the task that asks, in slices of time | nobody for longer than a slice |
//! | process: [`InProcess`] | on all cores, in a child process of lower priority that runs [`serve`] | nobody |
//! | fleet: [`InFleet`] | in such children of all nodes that work for its queue, in parts that join one call | whoever follows the call |
//!
//! Each gives matches as they are found and no faster than they are taken. [`Problem::split`] makes parts that are solved by
//! themselves, here or elsewhere.

mod fleet;
mod half;
mod inline;
mod interleaved;
mod number;
mod plan;
mod problem;
mod process;
mod product;
mod sieve;
mod sums;
#[cfg(test)]
mod tests;
mod walk;

pub use self::{
    fleet::{InFleet, Order},
    inline::solve,
    interleaved::Interleaved,
    problem::{MOST_NUMBERS, Problem, Refusal, SearchOptions, Summary},
    process::{Event, InProcess, OUTPUT_TIMEOUT, ProcessError, serve},
};
