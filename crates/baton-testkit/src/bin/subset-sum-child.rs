//! A child that searches for subset sums, for nodes of tests.

fn main() {
    // A parent that is gone wants to hear nothing.
    baton::jobs::subset_sum::serve().ok();
}
