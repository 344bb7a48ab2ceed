//! Children of a pool: whatever one of them does, its caller hears of it and nobody else does.
#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use std::{
    future::ready,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use baton::builtin::Exec;
use baton::pool::{Event, Limits, Pool, PoolError, Program, Task};
use rustix::process::{Pid, test_kill_process};
use serde_json::value::RawValue;

type Answer = Result<Option<Box<RawValue>>, PoolError>;

/// Reads a task into `$line`, and its number into `$id`.
const READ: &str = r#"read -r line || exit 0; id=${line#*'"id":'}; id=${id%%,*}; "#;

/// Children that run this shell script.
fn script(script: &str, limits: Limits) -> Pool {
    Pool::new(Program::new("sh", ["-c", script]), limits)
}

/// Children that do this with one task after the other.
fn forever(what: &str, limits: Limits) -> Pool {
    script(&format!("while :; do {READ} {what}; done"), limits)
}

fn one() -> Limits {
    Limits { children: 1, ..Limits::default() }
}

/// Has the pool do task `id` with this body.
async fn ask_with(pool: &Pool, id: u64, body: &str) -> Answer {
    let task = Task { id, key: "q/1@1", queue: "q", attempt: 1, crashes: 0, call: None, body: body.as_bytes() };
    pool.run(&task, |_| ready(Ok(()))).await
}

async fn ask(pool: &Pool, id: u64) -> Answer {
    ask_with(pool, id, "1").await
}

async fn text(pool: &Pool, id: u64) -> String {
    ask(pool, id).await.unwrap().unwrap().get().to_owned()
}

async fn refusal(pool: &Pool) -> String {
    ask(pool, 1).await.unwrap_err().to_string()
}

fn is_alive(pid: u32) -> bool {
    test_kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap()).is_ok()
}

async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let is_so = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), is_so).await.unwrap_or_else(|_| panic!("not so: {what}"));
}

const ECHO: &str = r#"echo "{\"event\":\"end\",\"data\":$id}""#;
const PID: &str = r#"echo "{\"event\":\"end\",\"data\":$$}""#;

#[tokio::test(flavor = "multi_thread")]
async fn every_caller_gets_the_answer_to_its_own_task() {
    let pool = forever(ECHO, Limits { children: 3, ..Limits::default() });
    let asked = (1..=300).map(|id| {
        let pool = pool.clone();
        tokio::spawn(async move { (id.to_string(), text(&pool, id).await) })
    });
    for asked in asked.collect::<Vec<_>>() {
        let (given, answered) = asked.await.unwrap();
        assert_eq!(given, answered);
    }
}

#[tokio::test]
async fn events_come_in_order_before_the_end() {
    let what =
        r#"echo '{"event":"match","data":[1]}'; echo "{\"event\":\"progress\",\"id\":$id}"; echo '{"event":"end"}'"#;
    let pool = forever(what, one());
    let mut heard = Vec::new();
    let task = Task { id: 7, key: "k", queue: "q", attempt: 1, crashes: 0, call: None, body: b"1" };
    let hear = |event: Event<'_>| {
        heard.push((event.name.into_owned(), event.data.map(str::to_owned)));
        ready(Ok(()))
    };
    let answer = pool.run(&task, hear).await;
    assert!(answer.unwrap().is_none());
    assert_eq!(heard, [("match".to_owned(), Some("[1]".to_owned())), ("progress".to_owned(), None)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_may_come_in_parts_and_soon_or_late() {
    // Every tenth takes longer than anybody waits for it in its thread.
    let what = r#"printf '{"event":"end",'; case $id in *0) sleep 0.01;; esac; printf '"data":%d}' $id; echo"#;
    let pool = forever(what, Limits { children: 2, ..Limits::default() });
    let asked = (0..2u64).map(|nth| {
        let pool = pool.clone();
        tokio::spawn(async move {
            for id in (0..200).map(|turn| 2 * turn + nth) {
                assert_eq!(text(&pool, id).await, id.to_string());
            }
        })
    });
    for asked in asked.collect::<Vec<_>>() {
        asked.await.unwrap();
    }
}

#[tokio::test]
async fn a_child_is_used_again_and_replaced_after_so_many_tasks() {
    let pool = forever(PID, Limits { max_messages_per_child: Some(2), ..one() });
    let pids = [text(&pool, 1).await, text(&pool, 2).await, text(&pool, 3).await];
    assert!(pids[0] == pids[1] && pids[1] != pids[2], "{pids:?}");
    let first: u32 = pids[0].parse().unwrap();
    until("the first one has ended", || !is_alive(first)).await;
}

#[tokio::test]
async fn what_a_child_does_instead_of_answering_is_an_error_for_its_task_alone() {
    // Task 1 goes wrong, any other is answered.
    let wrong = |what: &str| forever(&format!("if [ $id = 1 ]; then {what}; fi; {ECHO}"), one());
    for (what, told) in [
        ("echo hello", "printed a line that is no answer: `hello`; print what is for people on standard error"),
        ("echo '{\"event\":1}'", "that is no answer: `{\"event\":1}` (invalid type"),
        ("printf '{\"event\":'; exit 0", "ended in the middle of a line: \"{\\\"event\\\":\""),
        ("exit 3", "failed with exit code 3 before it answered"),
        ("echo one >&2; echo two >&2; exit 4", "failed with exit code 4 before it answered: two\none\ntwo"),
        ("exit 0", "the child ended before it answered"),
        ("kill -9 $$", "was killed by signal 9 before it answered"),
        ("exec >&-; exec sleep 60", "closed its output before it answered"),
        ("echo '{\"event\":\"end\",\"id\":8}'", "answered task 8, but was given 1"),
        ("echo '{\"event\":\"error\",\"message\":\"no such picture\"}'; continue", "no such picture"),
    ] {
        let pool = wrong(what);
        let error = refusal(&pool).await;
        assert!(error.contains(told), "{what}: {error}");
        assert_eq!(text(&pool, 2).await, "2", "{what}");
    }
}

#[tokio::test]
async fn a_line_over_the_limit_is_an_error_and_one_of_its_length_is_not() {
    let what = r#"printf '{"event":"end","data":"%0*d"}\n' $id 0"#;
    let pool = forever(what, Limits { line: 1_000, ..one() });
    let most = 1_000 - r#"{"event":"end","data":""}"#.len() as u64;
    assert_eq!(text(&pool, most).await.len() as u64, most + 2);
    assert!(ask(&pool, most + 1).await.unwrap_err().to_string().contains("a line of over 1000 bytes"));
    assert!(ask(&pool, 1_000_000).await.unwrap_err().to_string().contains("a line of over 1000 bytes"));
    assert_eq!(text(&pool, 5).await, "\"00000\"");
}

#[tokio::test]
async fn one_that_closes_its_input_fails_the_next_task_alone() {
    let pool = script(&format!("{READ} {ECHO}; exec <&-; exec sleep 60"), one());
    assert_eq!(text(&pool, 1).await, "1");
    // It may take a moment to close it; what is written before that is not read.
    let pool = script("exec <&-; exec sleep 60", Limits { timeout: Some(Duration::from_secs(60)), ..one() });
    let long = format!("\"{}\"", "x".repeat(1 << 20));
    let error = ask_with(&pool, 2, &long).await.unwrap_err().to_string();
    assert!(error.contains("closed its input before it had read its task"), "{error}");
}

#[tokio::test]
async fn one_that_answers_before_it_has_read_a_long_task_is_replaced() {
    let pool = script(r#"echo "{\"event\":\"end\",\"data\":$$}"; exec sleep 60"#, one());
    let long = format!("\"{}\"", "x".repeat(1 << 20));
    let first = ask_with(&pool, 1, &long).await.unwrap().unwrap();
    let second = ask_with(&pool, 2, &long).await.unwrap().unwrap();
    assert_ne!(first.get(), second.get());
}

#[tokio::test]
async fn long_tasks_and_long_answers_pass_each_other() {
    let pool = script("exec cat", Limits { line: 4 << 20, ..one() });
    let event = format!("\"{}\"", "x".repeat(2 << 20));
    // What it prints is the task itself, which is no event: all of it must have been read.
    let error = ask_with(&pool, 1, &event).await.unwrap_err().to_string();
    assert!(error.contains("missing field `event`"), "{error}");
}

#[tokio::test]
async fn what_is_said_between_two_tasks_replaces_the_child() {
    // At once, and after a while.
    let pool = forever(r#"printf '{"event":"end","data":%d}\n{"event":"end","data":0}\n' $$"#, one());
    let (first, second) = (text(&pool, 1).await, text(&pool, 2).await);
    assert!(first != "0" && second != "0" && first != second, "{first} {second}");
    let folder = tempfile::tempdir().unwrap();
    let said = folder.path().join("said");
    let pool = forever(&format!("{PID}; sleep 0.1; {PID}; echo > {}", said.display()), one());
    let first = text(&pool, 1).await;
    until("it has said more", || said.exists()).await;
    assert_ne!(text(&pool, 2).await, first);
}

#[tokio::test]
async fn after_the_timeout_a_child_is_asked_to_end_and_then_killed_with_all_it_started() {
    let (timeout, grace) = (Some(Duration::from_millis(300)), Duration::from_millis(200));
    // It ignores what it is asked, and so does what it started.
    let what = r#"trap '' TERM; sleep 60 & echo "{\"event\":\"pid\",\"data\":[$$,$!]}"; while :; do sleep 1; done"#;
    let pool = forever(what, Limits { timeout, grace, ..one() });
    let mut pids: Vec<u32> = Vec::new();
    let task = Task { id: 1, key: "k", queue: "q", attempt: 1, crashes: 0, call: None, body: b"1" };
    let hear = |event: Event<'_>| {
        pids = serde_json::from_str(event.data.unwrap()).unwrap();
        ready(Ok(()))
    };
    let error = pool.run(&task, hear).await.unwrap_err().to_string();
    assert_eq!(error, "not finished after 300ms (timeout): killed");
    assert_eq!(pids.len(), 2);
    assert!(!is_alive(pids[0]), "it is gone before its caller hears of it");
    until("what it started is gone", || !is_alive(pids[1])).await;
    // One that listens may tidy up.
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("tidied");
    let what = format!("trap 'echo > {}; exit' TERM; while :; do sleep 0.01; done", mark.display());
    let pool = forever(&what, Limits { timeout, grace: Duration::from_secs(60), ..one() });
    assert_eq!(refusal(&pool).await, "not finished after 300ms (timeout): killed");
    assert!(mark.exists());
}

#[tokio::test]
async fn time_without_output_and_memory_have_bounds() {
    let pool = forever("sleep 60", Limits { output_timeout: Some(Duration::from_millis(200)), ..one() });
    assert_eq!(refusal(&pool).await, "printed nothing for 200ms (output timeout): killed");
    let hoard = "a=$(head -c 50000000 /dev/zero | tr '\\0' x); sleep 60";
    let pool = forever(hoard, Limits { max_memory_per_child: Some(20 << 20), ..one() });
    assert!(refusal(&pool).await.contains("over its limit of 20971520: killed"));
}

#[tokio::test]
async fn a_flood_on_standard_error_holds_nobody_up() {
    let pool = forever(&format!("head -c 3000000 /dev/zero | tr '\\0' x >&2; {ECHO}"), one());
    assert_eq!(text(&pool, 1).await, "1");
    assert_eq!(text(&pool, 2).await, "2");
}

#[tokio::test]
async fn a_caller_that_goes_away_takes_its_child_along() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let what = format!("if [ $id = 1 ]; then echo $$ > {}; sleep 60; fi; {ECHO}", file.display());
    let pool = forever(&what, one());
    let caller = tokio::spawn({
        let pool = pool.clone();
        async move { ask(&pool, 1).await }
    });
    let read = || std::fs::read_to_string(&file).ok()?.trim().parse::<u32>().ok();
    until("it is at work", || read().is_some()).await;
    let pid = read().unwrap();
    caller.abort();
    until("it is killed", || !is_alive(pid)).await;
    assert_eq!(text(&pool, 2).await, "2");
}

#[tokio::test]
async fn callers_wait_in_their_order_and_only_so_many() {
    let folder = tempfile::tempdir().unwrap();
    let gate = folder.path().join("gate");
    let what = format!("while [ ! -e {} ]; do sleep 0.01; done; {ECHO}", gate.display());
    let pool = forever(&what, Limits { waiting: 5, ..one() });
    let (turn, begun) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicUsize::new(0)));
    let mut callers = Vec::new();
    for id in 1..=6 {
        let (pool, turn, started) = (pool.clone(), turn.clone(), begun.clone());
        callers.push(tokio::spawn(async move {
            started.fetch_add(1, Ordering::SeqCst);
            let answer = text(&pool, id).await;
            (answer, turn.fetch_add(1, Ordering::SeqCst) + 1)
        }));
        // On one thread it has gone to the end of the line when the next one begins.
        until("it waits", || begun.load(Ordering::SeqCst) as u64 == id).await;
    }
    assert!(refusal(&pool).await.contains("all children are busy, and 5 callers wait"));
    std::fs::write(&gate, "").unwrap();
    for (id, caller) in (1..=6_u64).zip(callers) {
        assert_eq!(caller.await.unwrap(), (id.to_string(), id));
    }
}

#[tokio::test]
async fn an_idle_child_ends_and_one_that_ended_by_itself_is_replaced() {
    let pool = forever(PID, Limits { idle_timeout: Some(Duration::ZERO), ..one() });
    let pid: u32 = text(&pool, 1).await.parse().unwrap();
    until("it has ended", || !is_alive(pid)).await;
    let pool = script(&format!("{READ} {PID}"), one());
    let first = text(&pool, 1).await;
    let gone: u32 = first.parse().unwrap();
    until("it is waited for", || !is_alive(gone)).await;
    assert_ne!(text(&pool, 2).await, first);
}

#[tokio::test(flavor = "multi_thread")]
async fn warm_children_are_there_before_the_first_task_and_stay_and_are_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let begun = || -> Vec<u32> {
        let names = std::fs::read_dir(folder.path()).unwrap();
        names.map(|it| it.unwrap().file_name().to_str().unwrap().parse().unwrap()).collect()
    };
    let alive = || begun().into_iter().filter(|pid| is_alive(*pid)).count();
    let what = format!("> {}/$$; while :; do {READ} sleep 0.3; {PID}; done", folder.path().display());
    let pool = script(&what, Limits { children: 3, warm: 2, idle_timeout: Some(Duration::ZERO), ..one() });
    pool.warm_up();
    until("two are there", || alive() == 2).await;
    let warm = begun();
    let first: u32 = text(&pool, 1).await.parse().unwrap();
    assert!(warm.contains(&first), "{first} {warm:?}");
    let _all = tokio::join!(text(&pool, 2), text(&pool, 3), text(&pool, 4));
    assert_eq!(begun().len(), 3, "as many as there may be");
    until("the third one has ended", || alive() == 2).await;
    // Two more looks at them end none of the two.
    let left: Vec<u32> = begun().into_iter().filter(|pid| is_alive(*pid)).collect();
    tokio::time::sleep(Duration::from_millis(2_200)).await;
    assert!(left.iter().all(|pid| is_alive(*pid)));
    let killed = Pid::from_raw(i32::try_from(left[0]).unwrap()).unwrap();
    rustix::process::kill_process(killed, rustix::process::Signal::KILL).unwrap();
    until("it is replaced", || begun().len() == 4 && alive() == 2).await;
    pool.close().await;
    until("all have ended", || alive() == 0).await;
}

/// Nobody waits for the answer of such a child, so its error would be said nowhere.
#[tokio::test]
async fn warm_children_that_end_at_their_start_are_said_once_with_their_last_line() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let program = Program::new("sh", ["-c", "echo no such module >&2; exit 3"]);
    let exec = Exec::new(program, Limits { children: 2, warm: 2, ..one() });
    let hears = heard.clone();
    let exec = exec.on_errors(move |spoken| {
        if spoken.is_hint {
            hears.lock().unwrap().push(spoken.text.to_owned());
        }
    });
    exec.warm_up();
    until("it is said", || !heard.lock().unwrap().is_empty()).await;
    // Others have ended meanwhile.
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let heard = heard.lock().unwrap().clone();
    assert_eq!(heard.len(), 1, "{heard:?}");
    assert!(
        heard[0].starts_with("a child ended before it was needed: ") && heard[0].contains("no such module"),
        "{heard:?}"
    );
    exec.close().await;
}

#[tokio::test]
async fn children_stay_where_no_idle_timeout_is_set() {
    assert_eq!((Limits::default().idle_timeout, Limits::default().warm), (None, 0));
    let pool = forever(PID, one());
    // Nothing is started that nobody asks for.
    pool.warm_up();
    let first = text(&pool, 1).await;
    tokio::time::sleep(Duration::from_millis(1_200)).await;
    assert_eq!(text(&pool, 2).await, first);
}

#[tokio::test]
async fn a_pool_closes_when_its_children_have_finished() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("tidied");
    // At the end of its input it tidies up.
    let script_ =
        format!("while read -r line; do sleep 0.2; echo '{{\"event\":\"end\"}}'; done; echo > {}", mark.display());
    let pool = script(&script_, one());
    let (answer, ()) = tokio::join!(ask(&pool, 1), async {
        tokio::task::yield_now().await;
        pool.close().await;
    });
    assert!(answer.is_ok());
    assert!(mark.exists());
    assert!(matches!(ask(&pool, 2).await, Err(PoolError::Closed)));
}

#[tokio::test]
async fn a_program_that_cannot_be_started_fails_the_task() {
    let pool = Pool::new(Program::new("/no/such/program", [""; 0]), one());
    assert!(refusal(&pool).await.starts_with("cannot start /no/such/program: "));
}

#[tokio::test]
async fn children_are_niced_and_leave_no_pipes_behind() {
    let open = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let pool =
        forever(r#"echo "{\"event\":\"end\",\"data\":$(cut -d" " -f19 /proc/$$/stat)}""#, Limits { nice: 7, ..one() });
    assert_eq!(text(&pool, 1).await.trim(), "7");
    let before = open();
    for id in 0..50 {
        let pool = forever("exit 1", Limits::default());
        ask(&pool, id).await.unwrap_err();
    }
    assert_eq!(open(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_ends_after_its_answer_costs_nobody_a_task() {
    let pool = script(&format!("{READ} {ECHO}"), one());
    for id in 1..=200 {
        assert_eq!(text(&pool, id).await, id.to_string());
    }
    let pool = script(&format!("{READ} exec <&-; {ECHO}; exec sleep 60"), one());
    for id in 1..=20 {
        assert_eq!(text(&pool, id).await, id.to_string());
    }
}

#[tokio::test]
async fn the_end_of_a_child_is_noticed_though_what_it_left_holds_its_output() {
    let pool = forever(&format!("if [ $id = 1 ]; then setsid sleep 100 & exit 0; fi; {ECHO}"), one());
    let error = tokio::time::timeout(Duration::from_secs(50), refusal(&pool)).await.unwrap();
    assert_eq!(error, "the child ended before it answered");
    assert_eq!(text(&pool, 2).await, "2");
}
