//! Real files and real commands.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use proptest::{collection::vec, prelude::*};
use tempfile::TempDir;
use tokio::time::timeout;

use super::*;
use crate::{
    Flow,
    builtin::pulled::{Pulled, pull, rest},
    message::MAX_BODY_BYTES,
};

fn file(content: impl AsRef<[u8]>) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lines");
    std::fs::write(&path, content).unwrap();
    (folder, path)
}

/// What ends it, which no further attempt would change.
async fn failure(source: &Lines, cursor: &str) -> String {
    let error = rest(source, cursor).await.unwrap_err();
    assert!(error.is_for_good(), "{error}");
    error.to_string()
}

/// What the next pull gives; a minute is for ever here.
async fn next(stream: &mut dyn Stream) -> Pulled {
    timeout(Duration::from_secs(60), pull(stream)).await.unwrap().unwrap()
}

/// Whether this process has the file at this path open.
fn is_open_here(path: &Path) -> bool {
    std::fs::read_dir("/proc/self/fd")
        .unwrap()
        .flatten()
        .any(|fd| std::fs::read_link(fd.path()).is_ok_and(|to| to == path))
}

fn fifo() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    (folder, path)
}

#[tokio::test]
async fn lines_become_strings_and_json_lines_stay_as_they_are() {
    let (_folder, path) = file("one\r\n\n\"zwei\" ü\\\n\tlast");
    let want = [r#""one""#, r#""\"zwei\" ü\\""#, r#""\tlast""#];
    assert_eq!(rest(&Lines::file(&path), "").await.unwrap(), want);

    let (_folder, path) = file("{\"a\": 1}\r\n\n  \n [1,2] \nnull");
    let json = Lines::file(&path).json(true);
    let mut stream = json.open("").await.unwrap();
    let Pulled { cursor: Some(cursor), bodies, .. } = next(&mut *stream).await else { panic!("no cursor") };
    assert_eq!(bodies, ["{\"a\": 1}", "[1,2]"]);
    assert!(cursor.starts_with("4:22:"), "{cursor}");
    assert_eq!(rest(&json, &cursor).await.unwrap(), ["null"]);
    // Cursors of former releases have no digest.
    assert_eq!(rest(&json, "4:22").await.unwrap(), ["null"]);
    assert_eq!(rest(&json, "1:10").await.unwrap(), ["[1,2]", "null"]);
}

#[tokio::test]
async fn an_empty_file_and_a_file_of_blank_lines_end() {
    for json in [false, true] {
        let (_folder, path) = file("");
        let lines = Lines::file(path).json(json);
        assert_eq!(pull(&mut *lines.open("").await.unwrap()).await.unwrap(), Pulled::end());
        let (_folder, path) = file("\n\n \n");
        let lines = Lines::file(path).json(json);
        let Pulled { flow: Flow::End, bodies, cursor: Some(cursor) } = next(&mut *lines.open("").await.unwrap()).await
        else {
            panic!("no end")
        };
        assert!(bodies.is_empty() && cursor.starts_with("3:4:"), "{cursor}");
    }
}

#[tokio::test]
async fn blank_lines_are_skipped_and_count_as_lines() {
    let text = "\n \t\r\none\n\n  two \n\r\n";
    let (_folder, path) = file(text);
    let printf = Lines::command("printf '\\n \\t\\r\\none\\n\\n  two \\n\\r\\n'");
    for lines in [Lines::file(&path), printf] {
        assert_eq!(rest(&lines, "").await.unwrap(), ["\"one\"", "\"  two \""]);
        assert_eq!(rest(&lines.clone().count(4), "").await.unwrap(), ["\"one\""]);
    }
}

/// Reads all of a file; the cursor behind it.
async fn read_all(lines: &Lines) -> String {
    let mut stream = lines.open("").await.unwrap();
    let mut cursor = String::new();
    loop {
        let pulled = next(&mut *stream).await;
        cursor = pulled.cursor.unwrap_or(cursor);
        if pulled.flow == Flow::End {
            return cursor;
        }
    }
}

#[tokio::test]
async fn a_file_that_has_grown_goes_on_behind_what_was_read() {
    // Shorter and longer than what the file is recognised by; its last line with and without a line end.
    for (lines, last, added) in
        [(0, "", "x\ny"), (3, "\n", "x\ny"), (900, "\n", "x\ny\n"), (3, "", "\nx\ny"), (700, "", "\r\nx\n\ny")]
    {
        let content = (0..lines).map(|n| format!("line {n}")).collect::<Vec<_>>().join("\n") + last;
        let (_folder, path) = file(&content);
        let source = Lines::file(&path);
        let cursor = read_all(&source).await;
        let read = |has_more| Ok(Some(ReadSoFar { lines, has_more }));
        assert_eq!(source.read_so_far(&cursor).await, read(false), "{lines} {last:?}");
        assert_eq!(rest(&source, &cursor).await.unwrap().len(), 0);
        std::fs::write(&path, format!("{content}{added}")).unwrap();
        assert_eq!(source.read_so_far(&cursor).await, read(true), "{lines} {last:?}");
        assert_eq!(source.clone().count(lines).read_so_far(&cursor).await, read(false));
        assert_eq!(rest(&source, &cursor).await.unwrap(), ["\"x\"", "\"y\""], "{lines} {last:?}");
    }
    // A line end that came late is no new line, and needs no second look.
    let (_folder, path) = file("one");
    let source = Lines::file(&path);
    let cursor = read_all(&source).await;
    std::fs::write(&path, "one\n").unwrap();
    assert_eq!(source.read_so_far(&cursor).await, Ok(Some(ReadSoFar { lines: 1, has_more: false })));
}

#[tokio::test]
async fn a_file_that_was_replaced_shortened_or_continued_in_its_last_line_is_refused() {
    let long: String = (0..1_000).map(|n| format!("line {n}\n")).collect();
    for (before, now, why) in [
        ("one\ntwo\n", "one\n", "has become shorter: it is not the file of which 2 lines were read; put that one back"),
        ("one\ntwo\n", "uno\ndos\ntres\n", "has other lines: it is not the file of which 2 lines were read"),
        ("one\n", "two\n", "has other lines: it is not the file of which 1 line was read"),
        ("one\ntw", "one\ntwo\nthree\n", "was read when it had no line end, and has been continued since; undo that"),
        (&long, &format!("other {long}"), "has other lines"),
        (&long, &format!("{}x\n{long}", &long[..2_000]), "has other lines"),
    ] {
        let (_folder, path) = file(before);
        let source = Lines::file(&path);
        let cursor = read_all(&source).await;
        std::fs::write(&path, now).unwrap();
        let error = source.open(&cursor).await.err().unwrap();
        assert!(error.is_until_rewound() && error.to_string().contains(why), "{now:?}: {error}");
        assert!(error.to_string().ends_with("or rewind the source"), "{error}");
        assert_eq!(source.read_so_far(&cursor).await.unwrap_err(), error);
        assert!(!rest(&source, "").await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn the_count_is_a_line_number() {
    let (_folder, path) = file("1\n\n2\n3\n");
    let lines = Lines::file(&path).json(true).count(3);
    assert_eq!(rest(&lines, "").await.unwrap(), ["1", "2"]);
    assert_eq!(rest(&lines, "3:5").await.unwrap().len(), 0);
    let endless = Lines::command("yes").count(3_000);
    assert_eq!(rest(&endless, "2990").await.unwrap().len(), 10);
    assert_eq!(rest(&endless, "3000").await.unwrap().len(), 0);
}

#[tokio::test]
async fn what_comes_before_a_bad_line_is_handed_over_first() {
    let (_folder, path) = file(b"1\n2\nx\n");
    let mut stream = Lines::file(&path).json(true).open("").await.unwrap();
    assert_eq!(pull(&mut *stream).await.unwrap(), Pulled::more(&["1", "2"], "2:4:8177d5b5"));
    let name = path.display();
    for _ in 0..2 {
        let error = pull(&mut *stream).await.unwrap_err().to_string();
        assert_eq!(error, format!("{name}: line 3 is not JSON: expected value (column 1)"));
    }
    let (_folder, path) = file(b"ok\na\xff\n");
    assert!(failure(&Lines::file(path), "").await.ends_with("line 2 is not UTF-8 text (byte 2)"));
}

#[tokio::test]
async fn lines_up_to_the_limit_are_taken_and_longer_ones_refused() {
    let number = "1".repeat(MAX_BODY_BYTES);
    let (_folder, path) = file(format!("{number}\r\n{number}"));
    assert_eq!(rest(&Lines::file(path).json(true), "").await.unwrap(), [&*number, &*number]);
    for end in ["", "\n", "\nnext\n"] {
        let (_folder, path) = file(format!("0\n{number}1{end}"));
        let error = failure(&Lines::file(path).json(true), "").await;
        assert!(error.ends_with("line 2 is over the limit of 1048576 bytes"), "{error}");
    }
    let (_folder, path) = file(&number);
    let error = failure(&Lines::file(path), "").await;
    assert!(error.ends_with("line 1 makes a body of 1048578 bytes, over the limit of 1048576 bytes"), "{error}");
    let error = failure(&Lines::command("head -c 9000000 /dev/zero"), "").await;
    assert_eq!(error, "the command's output: line 1 is over the limit of 1048576 bytes");
}

#[tokio::test]
async fn files_that_are_not_there_or_not_the_same_are_refused() {
    let error = failure(&Lines::file("no/such/file"), "").await;
    assert!(error.starts_with("cannot read no/such/file: "), "{error}");
    let (folder, path) = file("one\ntwo\n");
    assert!(failure(&Lines::file(folder.path()), "").await.contains("is neither a regular file nor a named pipe"));
    let lines = Lines::file(&path);
    assert!(failure(&lines, "2:9").await.contains("has become shorter"));
    assert!(failure(&lines, "1:2").await.contains("has other lines"));
    for bad in ["x", "1:", ":", "-1:0", "1:2:x"] {
        assert!(failure(&lines, bad).await.contains("rewind"), "{bad:?}");
    }
}

#[tokio::test]
async fn a_command_is_run_again_and_passed_over_to_the_cursor() {
    let seq = Lines::command("seq 5; printf 6").json(true);
    assert_eq!(rest(&seq, "").await.unwrap(), ["1", "2", "3", "4", "5", "6"]);
    assert_eq!(rest(&seq, "4").await.unwrap(), ["5", "6"]);
    assert_eq!(rest(&seq, "6").await.unwrap().len(), 0);
    assert!(failure(&seq, "7").await.starts_with("the command printed 6 lines, but 7 were read before"));
}

#[tokio::test]
async fn a_command_that_prints_other_lines_than_before_is_not_gone_on_with() {
    let folder = tempfile::tempdir().unwrap();
    let names = folder.path().join("names");
    let lister = Lines::command(format!("cat {}", names.display())).count(3);
    std::fs::write(&names, "a\nb\nc\nd\n").unwrap();
    let mut stream = lister.open("").await.unwrap();
    let Pulled { cursor: Some(cursor), .. } = next(&mut *stream).await else { panic!("no cursor") };
    for (now, is_refused) in [("b\nc\nd\ne\n", true), ("a\nc\nb\n", true), ("a\nb\nc\nd\n", false), ("a\nb\nc", false)]
    {
        std::fs::write(&names, now).unwrap();
        let mut stream = lister.clone().count(4).open(&cursor).await.unwrap();
        for _ in 0..2 {
            match pull(&mut *stream).await {
                Err(error) => {
                    assert!(is_refused && error.is_until_rewound(), "{now:?}: {error}");
                    assert!(error.to_string().starts_with("the command printed other lines than before up to line 3;"));
                }
                Ok(_) => assert!(!is_refused, "{now:?}"),
            }
        }
    }
    std::fs::write(&names, "a\n").unwrap();
    assert!(failure(&lister.clone().count(4), &cursor).await.starts_with("the command printed 1 line, but 3 were"));
    // Cursors of former releases say nothing of the lines.
    std::fs::write(&names, "x\ny\nz\nd\n").unwrap();
    assert_eq!(rest(&lister.count(4), "3").await.unwrap(), ["\"d\""]);
}

#[tokio::test]
async fn the_lines_of_a_command_are_known_again_however_they_were_cut() {
    // Over several reads, and batches that end within them.
    let seq = Lines::command("seq 400000");
    let mut stream = seq.open("").await.unwrap();
    for _ in 0..5 {
        let Pulled { cursor: Some(cursor), bodies, .. } = next(&mut *stream).await else { panic!("no cursor") };
        let last: u64 = bodies.last().unwrap().trim_matches('"').parse().unwrap();
        let mut successor = seq.open(&cursor).await.unwrap();
        assert_eq!(next(&mut *successor).await.bodies.first().unwrap(), &format!("\"{}\"", last + 1));
    }
}

#[tokio::test]
async fn a_command_that_fails_gives_its_lines_but_not_a_broken_one() {
    let lines = Lines::command("echo one; printf tw; echo oh >&2; echo no >&2; echo >&2; exit 3");
    let mut stream = lines.open("").await.unwrap();
    assert_eq!(pull(&mut *stream).await.unwrap(), Pulled::more(&["\"one\""], "1:4:2c8b08da"));
    let error = pull(&mut *stream).await.unwrap_err().to_string();
    assert_eq!(error, "the command failed with exit code 3: no");
    assert_eq!(failure(&Lines::command("kill -9 $$"), "").await, "the command was killed by signal 9");
    // What it left behind holds its error output open.
    let error = failure(&Lines::command("echo bad >&2; sleep 5 >/dev/null & exit 1"), "").await;
    assert_eq!(error, "the command failed with exit code 1: bad");
    // More than a pipe holds, and one long line.
    let loud = Lines::command("head -c 300000 /dev/zero | tr '\\0' x >&2; exit 1");
    let error = failure(&loud, "").await;
    assert_eq!(error, format!("the command failed with exit code 1: {}", "x".repeat(400)));
}

#[tokio::test]
async fn lines_of_a_slow_command_do_not_wait_for_more() {
    let mut stream = Lines::command("echo one; sleep 600").open("").await.unwrap();
    let pulled = timeout(Duration::from_secs(60), pull(&mut *stream)).await.unwrap();
    assert_eq!(pulled.unwrap(), Pulled::more(&["\"one\""], "1:4:2c8b08da"));
}

#[tokio::test]
async fn dropping_the_stream_kills_all_that_the_command_started() {
    let (_folder, pipe) = fifo();
    let command = format!("(sleep 600 & sleep 600) >'{}' & echo up; wait", pipe.display());
    let mut stream = Lines::command(command).open("").await.unwrap();
    assert_eq!(pull(&mut *stream).await.unwrap().bodies, ["\"up\""]);
    // The pipe ends when the last process that writes to it is gone.
    let mut reader = tokio::fs::File::open(&pipe).await.unwrap();
    drop(stream);
    let mut written = Vec::new();
    let read = tokio::io::AsyncReadExt::read_to_end(&mut reader, &mut written);
    assert_eq!(timeout(Duration::from_secs(60), read).await.unwrap().unwrap(), 0);
}

#[tokio::test]
async fn a_pipe_is_read_until_its_writers_close_it_and_never_resumed() {
    let (_folder, path) = fifo();
    let lines = Lines::file(&path);
    // Opened, and its place stored, before anybody writes.
    let mut stream = timeout(Duration::from_secs(60), lines.open("")).await.unwrap().unwrap();
    assert_eq!(next(&mut *stream).await, Pulled::more(&[], "0"));
    let write = |text: &'static str| {
        let path = path.clone();
        tokio::task::spawn_blocking(move || std::fs::write(path, text).unwrap())
    };
    let (pulled, written) = tokio::join!(next(&mut *stream), write("one\ntwo\nthr"));
    written.unwrap();
    assert_eq!(pulled, Pulled::more(&["\"one\"", "\"two\""], "2"));
    let last = next(&mut *stream).await;
    assert_eq!((last.flow, last.bodies, last.cursor.as_deref()), (Flow::End, vec!["\"thr\"".to_owned()], Some("3")));
    for cursor in ["0", "2"] {
        let error = failure(&lines, cursor).await;
        assert!(error.contains(&format!("{cursor} were pushed")) && error.contains("rewind"), "{error}");
    }
    assert!(failure(&lines.follow(true), "").await.contains("cannot be followed"));
}

#[tokio::test]
async fn a_followed_file_gives_finished_lines_as_they_come_also_of_the_file_that_replaces_it() {
    use std::io::Write as _;
    let (folder, path) = file("one\ntw");
    let lines = Lines::file(&path).follow(true);
    let mut stream = lines.open("").await.unwrap();
    let first = next(&mut *stream).await;
    assert_eq!((first.flow, first.bodies.as_slice()), (Flow::More, &["\"one\"".to_owned()][..]));
    let mut log = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
    log.write_all(b"o\nthr").unwrap();
    assert_eq!(next(&mut *stream).await.bodies, ["\"two\""]);

    // Moved away and written on for a moment; then the new file.
    std::fs::rename(&path, folder.path().join("moved")).unwrap();
    std::fs::write(&path, "four\nfive\n").unwrap();
    log.write_all(b"ee\n").unwrap();
    assert_eq!(next(&mut *stream).await.bodies, ["\"three\""]);
    let new = next(&mut *stream).await;
    assert_eq!(new.bodies, ["\"four\"", "\"five\""]);

    // Cut short and written anew.
    std::fs::write(&path, "six\n").unwrap();
    assert_eq!(next(&mut *stream).await.bodies, ["\"six\""]);
}

#[tokio::test]
async fn files_that_have_the_name_for_a_moment_are_all_read_in_order_also_while_nobody_pulls() {
    const ROTATIONS: u32 = 5;
    let (folder, path) = file("0\n");
    let mut stream = Lines::file(&path).follow(true).open("").await.unwrap();
    let mut got = next(&mut *stream).await.bodies;
    // Each has the name for far less than a moved file is read on, and is written to after it lost the name. Nothing
    // is pulled meanwhile, as when the queue is full.
    for nth in 1..=ROTATIONS {
        let moved = folder.path().join(format!("moved-{nth}"));
        std::fs::rename(&path, &moved).unwrap();
        std::fs::write(&path, format!("{nth}\n")).unwrap();
        let mut late = std::fs::OpenOptions::new().append(true).open(&moved).unwrap();
        std::io::Write::write_all(&mut late, format!("late {nth}\n").as_bytes()).unwrap();
        timeout(Duration::from_secs(60), async {
            while !is_open_here(&path) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await
        .expect("the file that has the name now is opened");
    }
    let want: Vec<String> = std::iter::once("\"0\"".to_owned())
        .chain((1..=ROTATIONS).flat_map(|nth| [format!("\"late {nth}\""), format!("\"{nth}\"")]))
        .collect();
    while got.len() < want.len() {
        got.extend(next(&mut *stream).await.bodies);
    }
    assert_eq!(got, want);
}

#[tokio::test]
async fn a_successor_goes_on_in_the_followed_file_it_knows_and_begins_another_at_its_start() {
    let (_folder, path) = file("one\ntwo\n");
    let lines = Lines::file(&path).follow(true);
    let cursor = next(&mut *lines.open("").await.unwrap()).await.cursor.unwrap();
    assert!(cursor.starts_with("2:8:"), "{cursor}");
    for (content, want) in [("one\ntwo\nthree\n", "three"), ("uno\ndos\ntres\n", "uno"), ("1\n", "1")] {
        std::fs::write(&path, content).unwrap();
        let got = next(&mut *lines.open(&cursor).await.unwrap()).await;
        assert_eq!(got.bodies.first().unwrap(), &format!("\"{want}\""), "{content:?}");
        assert!(got.cursor.unwrap().starts_with(if want == "three" { "3:14:" } else { "" }));
    }
    assert!(lines.open("2:8").await.err().unwrap().to_string().contains("rewind"));
    // A name that nothing has for a while is no reason to give up.
    std::fs::remove_file(&path).unwrap();
    assert!(!lines.open(&cursor).await.err().unwrap().is_for_good());
}

#[test]
fn definitions_tell_sources_apart() {
    let sources = [
        Lines::file("a"),
        Lines::file("b"),
        Lines::command("a"),
        Lines::file("a").json(true),
        Lines::file("a").follow(true),
    ];
    for (n, one) in sources.iter().enumerate() {
        assert!(sources.iter().skip(n + 1).all(|other| other.definition() != one.definition()));
        assert_eq!(one.definition(), one.clone().count(7).definition());
    }
}

/// All bodies, with the stream dropped and opened anew behind each pull for which `again` says so.
async fn piecewise(path: &Path, json: bool, mut again: impl FnMut() -> bool) -> Vec<String> {
    let source = Lines::file(path).json(json);
    let mut stream = source.open("").await.unwrap();
    let mut bodies = Vec::new();
    loop {
        let pulled = pull(&mut *stream).await.unwrap();
        bodies.extend(pulled.bodies);
        if pulled.flow == Flow::End {
            return bodies;
        }
        if let Some(cursor) = pulled.cursor.filter(|_| again()) {
            stream = source.open(&cursor).await.unwrap();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn reopening_anywhere_gives_exactly_the_rest(
        lines in vec(prop_oneof![4 => "[a-zé\" ]{0,12}", 1 => "[x]{0,3000}"], 0..2_500), newline in any::<bool>(),
        flips in vec(any::<bool>(), 1..9),
    ) {
        let mut content = lines.join("\n");
        if newline { content.push('\n'); }
        let body = |line: &str| (!line.trim_ascii().is_empty()).then(|| serde_json::to_string(line).unwrap());
        let want: Vec<String> = content.lines().filter_map(body).collect();
        let (_folder, path) = file(&content);
        let mut flips = flips.into_iter().cycle();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let got = runtime.block_on(piecewise(&path, false, || flips.next().unwrap()));
        prop_assert_eq!(&got, &want);
        // And at every line, whatever the batches were.
        runtime.block_on(async {
            let count = content.lines().count();
            for n in (0..count).step_by(count / 3 + 1) {
                let offset: usize = content.lines().take(n).map(|line| line.len() + 1).sum();
                let rest = rest(&Lines::file(&path), &format!("{n}:{offset}")).await.unwrap();
                assert_eq!(rest, content.lines().skip(n).filter_map(body).collect::<Vec<_>>());
            }
        });
    }
}
