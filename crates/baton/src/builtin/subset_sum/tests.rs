//! Every way to search finds what trying all subsets finds.

use std::{collections::BTreeMap, ops::ControlFlow};

use proptest::{collection::vec, prelude::*, test_runner::TestCaseResult};

use super::*;

/// Subsets with the sum, by trying all, in order.
fn tried(data: &[i64], sum: i128) -> Vec<Vec<i64>> {
    let subset = |bits: u32| (0..data.len()).filter(|place| bits >> place & 1 == 1).map(|place| data[place]).collect();
    let subsets = (1..1_u32 << data.len()).map(subset);
    let mut found: Vec<Vec<i64>> =
        subsets.filter(|subset: &Vec<i64>| subset.iter().copied().map(i128::from).sum::<i128>() == sum).collect();
    found.sort();
    found
}

/// All matches, in order.
fn found(problem: &Problem, options: &SearchOptions) -> (Vec<Vec<i64>>, Summary) {
    let mut found = Vec::new();
    let summary = solve(problem, options, &|| false, |matches| {
        found.extend(matches);
        ControlFlow::Continue(())
    });
    found.sort();
    (found, summary.unwrap())
}

const fn counting() -> SearchOptions {
    SearchOptions { limit: None, count_only: true, max_seconds: 600, max_bytes: 512 << 20 }
}

/// All matches of mode interleaved, in order.
fn interleaved(problem: &Problem, options: &SearchOptions) -> (Vec<Vec<i64>>, Summary) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let mut search = Interleaved::start(problem.clone(), *options).await.unwrap();
        let mut found = Vec::new();
        while let Some(matches) = search.next().await {
            found.extend(matches);
        }
        found.sort();
        (found, search.summary())
    })
}

/// Numbers of one kind each: few different ones, any, near the limits, near zero, powers.
fn numbers() -> impl Strategy<Value = Vec<i64>> {
    prop_oneof![
        vec(-3..4_i64, 0..=18),
        vec(any::<i64>(), 0..=18),
        vec(prop_oneof![i64::MIN..i64::MIN + 3, i64::MAX - 3..=i64::MAX, -2..3_i64], 0..=18),
        vec(-40..40_i64, 0..=18),
        vec((0..63_u32).prop_map(|power| 1 << power), 0..=18),
    ]
}

/// Numbers and a sum that some subset may have.
fn problems() -> impl Strategy<Value = Problem> {
    (numbers(), any::<u32>(), any::<bool>()).prop_map(|(data, bits, nothing)| {
        let chosen = data.iter().enumerate().filter(|(place, _)| bits >> place & 1 == 1);
        let sum = chosen.map(|(_, number)| i128::from(*number)).sum();
        Problem::new(data, if nothing { 0 } else { sum })
    })
}

fn agrees(problem: &Problem) -> TestCaseResult {
    let expected = tried(problem.data(), problem.sum());
    let count = expected.len() as u64;
    prop_assert_eq!(found(problem, &counting()), (Vec::new(), Summary { count, complete: true }));
    prop_assert_eq!(found(problem, &SearchOptions::default()), (expected.clone(), Summary { count, complete: true }));
    prop_assert_eq!(interleaved(problem, &counting()), (Vec::new(), Summary { count, complete: true }));
    prop_assert_eq!(
        interleaved(problem, &SearchOptions::default()),
        (expected.clone(), Summary { count, complete: true })
    );
    let mut parts = Vec::new();
    for part in problem.split(5).unwrap() {
        let carried: Problem = serde_json::from_str(&serde_json::to_string(&part).unwrap()).unwrap();
        prop_assert_eq!(&carried, &part);
        parts.extend(found(&carried, &SearchOptions::default()).0);
    }
    parts.sort();
    prop_assert_eq!(parts, expected);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn what_is_found_is_what_trying_all_finds(problem in problems()) {
        agrees(&problem)?;
    }
}

#[test]
fn every_number_of_integers_up_to_18_is_right() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    for n in 0..=18 {
        for reach in [1, 9, 1000] {
            let data = (0..n).map(|_| random.i64(-reach..=reach)).collect();
            agrees(&Problem::new(data, random.i64(-reach..=reach).into())).unwrap();
        }
    }
}

/// Random numbers from a seed that is told.
fn random(n: usize, reach: i64) -> Vec<i64> {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    (0..n).map(|_| random.i64(-reach..=reach)).collect()
}

#[test]
fn threads_and_windows_count_what_a_table_of_all_sums_counts() {
    for (n, reach) in [(40, 2_000), (64, 100)] {
        let data = random(n, reach);
        let mut table = BTreeMap::from([(0_i128, 1_u128)]);
        for number in &data {
            for (sum, count) in table.clone() {
                *table.entry(sum + i128::from(*number)).or_default() += count;
            }
        }
        for sum in [0, 1, -77] {
            let expected = table.get(&sum).map_or(0, |count| count - u128::from(sum == 0));
            let counted = found(&Problem::new(data.clone(), sum), &counting()).1;
            assert_eq!((u128::from(counted.count), counted.complete), (expected, true), "{n} numbers, sum {sum}");
        }
    }
}

#[test]
fn parts_of_a_long_search_have_all_of_its_matches() {
    let data: Vec<i64> =
        (0..40).map(|place: i64| place * place * 7_919_993 % 1_000_003 * 4_001 - 2_000_000_000).collect();
    let problem = Problem::new(data, 5);
    let (whole, summary) = found(&problem, &SearchOptions::default());
    let parts = problem.split(7).unwrap();
    assert!(parts.len() > 4, "{}", parts.len());
    let mut together: Vec<_> = parts.iter().flat_map(|part| found(part, &SearchOptions::default()).0).collect();
    together.sort();
    assert_eq!((together.len() as u64, together), (summary.count, whole));
}

#[test]
fn sixty_four_zeros_are_counted_and_given_as_far_as_wanted() {
    let zeros = Problem::new(vec![0; 64], 0);
    assert_eq!(found(&zeros, &counting()).1, Summary { count: u64::MAX, complete: true });
    let (some, summary) = found(&zeros, &SearchOptions { limit: Some(10_000), ..SearchOptions::default() });
    assert_eq!((some.len(), summary), (10_000, Summary { count: 10_000, complete: false }));
    let refused = solve(&zeros, &SearchOptions::default(), &|| false, |_| ControlFlow::Continue(())).unwrap_err();
    assert!(matches!(refused, Refusal::TooLong { matches, .. } if matches > 1 << 63), "{refused}");
    assert!(refused.to_string().contains("only count them"), "{refused}");
}

#[test]
fn what_is_too_large_is_refused_with_the_reason() {
    let refused =
        |problem: &Problem, options: &SearchOptions| solve(problem, options, &|| false, |_| ControlFlow::Continue(()));
    assert_eq!(refused(&Problem::new(vec![1; 65], 3), &SearchOptions::default()), Err(Refusal::TooMany(65)));
    let small = SearchOptions { max_bytes: 1 << 20, ..SearchOptions::default() };
    let large = refused(&Problem::new((1..=64).map(|it| it * it * it).collect(), 3), &small).unwrap_err();
    assert!(matches!(large, Refusal::TooLarge { most: 1_048_576, .. }), "{large}");
}

#[test]
fn a_limit_and_a_break_end_the_search() {
    let problem = Problem::new((1..=18).collect(), 60);
    let all = tried(problem.data(), 60).len() as u64;
    let (given, summary) = found(&problem, &SearchOptions { limit: Some(7), ..SearchOptions::default() });
    assert_eq!((given.len(), summary), (7, Summary { count: 7, complete: false }));
    let (none, summary) = found(&problem, &SearchOptions { limit: Some(0), ..SearchOptions::default() });
    assert_eq!((none.len(), summary), (0, Summary { count: 0, complete: false }));
    let (given, summary) = interleaved(&problem, &SearchOptions { limit: Some(7), ..SearchOptions::default() });
    assert_eq!((given.len(), summary), (7, Summary { count: 7, complete: false }));
    let more = found(&problem, &SearchOptions { limit: Some(1 << 40), ..SearchOptions::default() }).1;
    assert_eq!(more, Summary { count: all, complete: true });
    let broken_off = solve(&problem, &SearchOptions::default(), &|| false, |_| ControlFlow::Break(()));
    assert_eq!(broken_off.map(|it| it.complete), Ok(false));
}

#[test]
fn a_search_that_is_cancelled_ends() {
    // It would take minutes in a build for tests.
    let calls = std::sync::atomic::AtomicU64::new(0);
    let cancelled = || calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed) > 10;
    let ended =
        solve(&Problem::new(random(64, 1 << 31), 5), &counting(), &cancelled, |_| ControlFlow::Continue(())).unwrap();
    assert!(!ended.complete);
}
