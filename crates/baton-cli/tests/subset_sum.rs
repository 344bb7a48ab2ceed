//! Subset sums on the command line: every mode prints the same, and ends when it should.

mod sandbox;

use std::{
    fs,
    io::Read as _,
    process::{Command, Stdio},
};

use baton::{
    builtin::subset_sum::{InProcess, Problem, SearchOptions},
    pool::Program,
};
use sandbox::{Sandbox, is_gone, until};

const MODES: [&str; 3] = ["inline", "interleaved", "process"];
/// Five hundred million matches.
const ENDLESS: [&str; 3] = ["--sum", "0", "[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]"];
const ZEROS: &str = "[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]";

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<_> = text.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn every_mode_prints_matches_in_the_order_of_the_input_and_a_summary() {
    let sandbox = Sandbox::new();
    for mode in MODES {
        let ran = sandbox.run(&["subset-sum", "--sum", "0", "--mode", mode, "[1,2,-4,5,-3]"]).expect(0);
        assert_eq!(sorted(&ran.out), ["Match: [1,2,-3]", "Match: [2,-4,5,-3]"], "{mode}");
        assert!(ran.err.contains("2 matches in"), "{}", ran.err);
        let limited =
            sandbox.run(&["subset-sum", "--sum", "-4", "--mode", mode, "--limit", "1", "[-4,-4,-4]"]).expect(0);
        assert_eq!(limited.out, "Match: [-4]\n", "{mode}");
        assert!(limited.err.contains("perhaps more"), "{}", limited.err);
        let json = sandbox.run(&["subset-sum", "--sum", "3", "--mode", mode, "--json", "[1,2]"]).expect(0);
        let lines =
            "{\"event\":\"match\",\"data\":[1,2]}\n{\"event\":\"end\",\"data\":{\"count\":1,\"complete\":true}}\n";
        assert_eq!(json.out, lines, "{mode}");
        let counted = ["subset-sum", "--sum", "0", "--mode", mode, "--count-only", "--json", ZEROS];
        let counted = sandbox.run(&counted).expect(0);
        let count = (1_u64 << 40) - 1;
        let line = format!("{{\"event\":\"end\",\"data\":{{\"count\":{count},\"complete\":true}}}}\n");
        assert_eq!(counted.out, line, "{mode}");
    }
}

#[test]
fn what_is_too_large_or_no_list_of_integers_is_refused_in_one_line() {
    let sandbox = Sandbox::new();
    for mode in MODES {
        let many = format!("[{}]", vec!["7"; 65].join(","));
        let ran = sandbox.run(&["subset-sum", "--sum", "0", "--mode", mode, &many]).expect(1);
        assert!(ran.one_line().contains("65 integers are more than the 64"), "{}", ran.err);
        let ran = sandbox.run(&["subset-sum", "--sum", "0", "--mode", mode, ZEROS]).expect(1);
        assert!(ran.one_line().contains("matches would take about"), "{}", ran.err);
        for bad in ["[1,2", "[1.5]", "{}", "[9223372036854775808]"] {
            let ran = sandbox.run(&["subset-sum", "--sum", "0", "--mode", mode, bad]).expect(1);
            assert!(ran.one_line().contains("not a JSON array of integers"), "{bad}: {}", ran.err);
        }
    }
    sandbox.run(&["subset-sum", "[1]"]).expect(2);
}

#[test]
fn a_reader_that_goes_away_ends_it_quietly() {
    let sandbox = Sandbox::new();
    for mode in MODES {
        let mut command = Command::new(env!("CARGO_BIN_EXE_baton"));
        command.current_dir(sandbox.dir.path()).arg("subset-sum").args(ENDLESS).args(["--mode", mode]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut some = [0; 1000];
        child.stdout.take().unwrap().read_exact(&mut some).unwrap();
        let ended = child.wait_with_output().unwrap();
        assert_eq!((ended.status.code(), String::from_utf8_lossy(&ended.stderr).as_ref()), (Some(0), ""), "{mode}");
    }
}

/// The processes whose parent is this one.
fn children(of: u32) -> Vec<u32> {
    let text = fs::read_to_string(format!("/proc/{of}/task/{of}/children")).unwrap_or_default();
    text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

#[test]
fn ctrl_c_ends_it_though_nobody_reads() {
    let sandbox = Sandbox::new();
    for mode in MODES {
        let mut command = Command::new(env!("CARGO_BIN_EXE_baton"));
        command.current_dir(sandbox.dir.path()).arg("subset-sum").args(ENDLESS).args(["--mode", mode]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        // It has begun to print, then the pipe is full.
        child.stdout.as_mut().unwrap().read_exact(&mut [0; 1000]).unwrap();
        let of_its_own = children(child.id());
        assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
        let code = child.wait().unwrap().code();
        assert!(matches!(code, Some(1 | 130)), "{mode}: {code:?}");
        until("its child is gone", || of_its_own.iter().all(|pid| is_gone(*pid)));
    }
}

#[test]
fn the_child_dies_with_a_parent_that_is_killed() {
    let sandbox = Sandbox::new();
    let mut command = Command::new(env!("CARGO_BIN_EXE_baton"));
    command.current_dir(sandbox.dir.path()).arg("subset-sum").args(ENDLESS).args(["--mode", "process"]);
    let mut parent = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut output = parent.stdout.take().unwrap();
    output.read_exact(&mut [0; 1000]).unwrap();
    let child = children(parent.id());
    assert!(!child.is_empty());
    parent.kill().unwrap();
    parent.wait().unwrap();
    until("its child is gone", || child.iter().all(|pid| is_gone(*pid)));
}

#[tokio::test]
async fn a_child_process_finds_what_trying_all_finds() {
    let seed = u64::from(std::process::id());
    println!("seed {seed}");
    let program = Program::new(env!("CARGO_BIN_EXE_baton"), ["subset-sum", "--child"]);
    let mut state = seed;
    let mut draw = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as i64
    };
    for n in 0..=18 {
        for kind in 0..3 {
            let number = |drawn: i64| match kind {
                0 => drawn % 7 - 3,
                1 => drawn % 2000 - 1000,
                _ => {
                    if drawn % 2 == 0 {
                        i64::MAX - drawn % 3
                    } else {
                        i64::MIN + drawn % 3
                    }
                }
            };
            let data: Vec<i64> = (0..n).map(|_| number(draw())).collect();
            let sum: i128 = data.iter().step_by(2).map(|it| i128::from(*it)).sum();
            let subset =
                |bits: u32| data.iter().enumerate().filter(move |(place, _)| bits >> place & 1 == 1).map(|it| *it.1);
            let subsets = (1..1_u32 << n).filter(|bits| subset(*bits).map(i128::from).sum::<i128>() == sum);
            let mut expected: Vec<Vec<i64>> = subsets.map(|bits| subset(bits).collect()).collect();
            let mut search =
                InProcess::start(&program, &Problem::new(data.clone(), sum), &SearchOptions::default()).unwrap();
            let mut found = Vec::new();
            while let Some(matches) = search.next().await.unwrap() {
                found.extend(matches);
            }
            found.sort();
            expected.sort();
            assert_eq!(found, expected, "{data:?}");
            assert_eq!(search.summary().map(|it| (it.count, it.complete)), Some((found.len() as u64, true)));
        }
    }
}

#[test]
fn a_node_has_children_find_subsets_and_keeps_them_as_results() {
    let sandbox = Sandbox::new();
    let bad =
        ["{\"data\":[1,2],\"sum\":\"3\"}".to_owned(), format!("{{\"data\":[{}],\"sum\":7}}", ["7"; 65].join(","))];
    let push = ["push", "sums", "{\"data\":[1,2,-4,5,-3],\"sum\":0}", "{\"data\":[1,2],\"sum\":3,\"limit\":5}"];
    sandbox.run(&[&push[..], &[&bad[0], &bad[1]]].concat()).expect(0);
    let ran = sandbox.run(&["node", "--handler", "subset-sum", "--queue", "sums", "--until-done"]).expect(3);
    let mut lines: Vec<_> = ran.out.lines().filter(|line| line.contains("matches")).collect();
    lines.sort_unstable_by_key(|line| line.len());
    assert!(lines[0].contains("\"count\":1,\"complete\":true,\"matches\":[[1,2]]"), "{}", ran.out);
    assert!(lines[1].contains("\"count\":2,\"complete\":true"), "{}", ran.out);
    assert_eq!((sandbox.count("sums", "done"), sandbox.count("sums", "failed")), (2, 2));
    let errors = sandbox.run(&["errors"]).expect(0).out;
    assert!(errors.contains("no task of this handler") && errors.contains("65 integers"), "{errors}");
}

/// Sixty numbers without a pattern: a search of half a minute and more, with hardly a match.
fn long() -> String {
    let mut state = 1_u64;
    let numbers = (0..60).map(|nth| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        format!("{}{}", if nth % 2 == 0 { "" } else { "-" }, state >> 4)
    });
    format!("[{}]", numbers.collect::<Vec<_>>().join(","))
}

#[test]
fn a_search_that_takes_too_long_is_ended_in_every_mode() {
    let sandbox = Sandbox::new();
    for mode in MODES {
        let search =
            ["subset-sum", "--sum", "7", "--mode", mode, "--max-estimated-time", "1h", "--timeout", "500ms", &long()];
        let ran = sandbox.run(&search).expect(1);
        assert!(ran.one_line().contains("not finished after 500 ms (--timeout)"), "{mode}: {}", ran.err);
    }
}

#[test]
fn a_child_that_stands_still_is_told_from_one_that_finds_nothing() {
    let sandbox = Sandbox::new();
    let times = ["--max-estimated-time", "1h", "--output-timeout", "3s", "--timeout", "6s"];
    let numbers = long();
    let search = [&["subset-sum", "--sum", "7", &numbers][..], &times].concat();
    // It has searched for longer than it may be silent.
    let ran = sandbox.run(&search).expect(1);
    assert!(ran.one_line().contains("(--timeout)"), "{}", ran.err);
    let mut frozen = sandbox.start(&[&search[..6], &["--output-timeout", "1s"]].concat());
    until("its child runs", || !children(frozen.pid()).is_empty());
    let child = children(frozen.pid())[0].to_string();
    assert!(Command::new("kill").args(["-STOP", &child]).status().unwrap().success());
    assert_eq!(frozen.wait(), Some(1));
    assert!(sandbox.log().contains("printed nothing for 1s and was killed"), "{}", sandbox.log());
}
