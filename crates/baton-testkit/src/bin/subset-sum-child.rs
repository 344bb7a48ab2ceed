//! A child that searches for subset sums, for nodes of tests.

fn main() {
    // A parent that is gone wants to hear nothing.
    baton::builtin::subset_sum::serve().ok();
}
