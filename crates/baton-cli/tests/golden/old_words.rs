//! No golden file has a word that another one has replaced.
//!
//! What still has one stands in `golden/old_words_still_there.txt`, a line for a word and a file. That list only shrinks: an
//! entry that no longer occurs fails too, and `make golden` removes it. A new occurrence is never added by itself.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{collections::BTreeSet, fs, path::Path};

use baton_testkit::golden;

/// The list of what is left to do.
const STILL_THERE: &str = "old_words_still_there.txt";

/// The most faults that are printed.
const MOST_FAULTS: usize = 200;

/// Lines that may have them all the same: how predecessors of the demonstration are called stays.
const STAYS: [&str; 7] =
    ["make kill", "make errors", "make performance", "--getErrors", "/subsetSum", "/totalSales", "/say"];

/// A word that is gone.
struct Old {
    /// Words in small letters match these parts of a name or these words of a text: `max backlog` is in `max_queue_bytes`,
    /// `--max-backlog` and `MaxBacklog`. Anything else is looked for as it is written.
    word: &'static str,
    say: &'static str,
    /// Beginnings of the names of the files that are looked at; all of them if there is none.
    only_in: &'static [&'static str],
    /// A line with one of these is right.
    unless: &'static [&'static str],
}

const fn old(word: &'static str, say: &'static str) -> Old {
    Old { word, say, only_in: &[], unless: &[] }
}

const fn within(only_in: &'static [&'static str], word: &'static str, say: &'static str) -> Old {
    Old { only_in, ..old(word, say) }
}

const fn unless(unless: &'static [&'static str], word: &'static str, say: &'static str) -> Old {
    Old { unless, ..old(word, say) }
}

const LIBRARY: &[&str] = &["library"];
const HELP: &[&str] = &["help/"];
const JSON: &[&str] = &["json/", "routes/"];
const PROSE: &[&str] = &["help/", "openapi"];
/// The help of commands that take one queue.
const OF_A_QUEUE: &[&str] = &[
    "help/baton-push",
    "help/baton-call",
    "help/baton-pause",
    "help/baton-resume",
    "help/baton-errors",
    "help/baton-performance",
    "help/baton-stats",
    "help/baton-audit",
    "help/baton-purge",
];

const WORDS: &[Old] = &[
    // What users see.
    old("job", "message; `builtin` for the module"),
    old("jobs", "message; `builtin` for the module"),
    old("dead", "failed; a node has died"),
    within(JSON, ".errors", "failed"),
    old("drain", "remove; `graceful` of a shutdown"),
    old("drained", "removed"),
    old("baton kill", "baton stop"),
    within(HELP, "  kill  ", "stop"),
    within(HELP, "performance", "stats"),
    Old { unless: &["QUEUE"], ..within(HELP, "Usage: baton purge", "baton purge QUEUE; a fleet is destroyed") },
    within(&["library", "openapi"], "waiting, delayed, running", "ready, delayed, in-flight"),
    within(LIBRARY, "CallState::Waiting", "Ready"),
    within(LIBRARY, "CallState::Running", "InFlight"),
    within(&["help/baton-push"], "--key", "--resume NAME of a long import, --once KEY of a message"),
    old("BATON_KEY", "BATON_MESSAGE_KEY"),
    old("deadline", "timeout"),
    old("--silence", "--output-timeout"),
    within(&["baton_toml"], "NAME.silence", "output_timeout"),
    within(LIBRARY, "silence", "output_timeout"),
    old("recycle", "max-messages-per-child"),
    old("max backlog", "max-queue-bytes"),
    within(HELP, "means concurrency", "refuse --workers there"),
    within(OF_A_QUEUE, "--queue", "the queue as a position"),
    unless(&["data loss", "loss of data", "after the loss", "before the loss"], "loss", "crash"),
    old("losses", "crashes"),
    old("recall", "cache"),
    old("recalls", "cache"),
    old("recalled", "cached"),
    within(LIBRARY, "operate", "admin"),
    within(LIBRARY, "operator", "admin"),
    within(LIBRARY, "baton::Cancel", "Shutdown"),
    // What maintainers see, where it is public.
    within(LIBRARY, "Piece", "Span"),
    within(LIBRARY, "Lot", "Submission"),
    within(LIBRARY, "Home", "BodyPlace"),
    within(LIBRARY, "message::Part", "CallRole"),
    within(LIBRARY, "Share", "Assigned"),
    within(LIBRARY, "Catch", "ClaimGuard"),
    within(LIBRARY, "session::Held", "ClaimGuard"),
    within(LIBRARY, "Wish", "ClaimSize, or another name"),
    within(LIBRARY, "Lookout", "WakeListener"),
    within(LIBRARY, "Ring", "WakeUp"),
    within(LIBRARY, "Bell", "WakeUp"),
    within(LIBRARY, "Estate", "UnreapedClaims"),
    within(LIBRARY, "Stay", "OpenGuard"),
    within(LIBRARY, "Door", "PresenceLock"),
    within(LIBRARY, "Flight", "Computation"),
    within(LIBRARY, "Recollect", "CacheGet"),
    within(LIBRARY, "Remember", "CachePut"),
    within(LIBRARY, "Forget", "Invalidate"),
    within(LIBRARY, "copy_back", "checkpoint"),
    within(LIBRARY, "tell", "report or notify"),
    within(LIBRARY, "told", "reported or notified"),
    // How prose reads.
    within(PROSE, "anew", "again"),
    within(PROSE, "so many", "the number, or N"),
    within(PROSE, "is told", "is reported"),
    within(PROSE, "are told", "are reported"),
    within(PROSE, "in vain", "without success"),
    within(PROSE, "nobody s", "of no node, or free"),
    within(PROSE, "whoever", "the one who, or a noun"),
    within(PROSE, "it comes that", "the verb alone"),
    within(PROSE, "beside", "next to, besides or than"),
];

/// The words of a line, and the parts of its names, in small letters.
fn parts(line: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let (mut part, mut before) = (String::new(), ' ');
    for c in line.chars().chain([' ']) {
        let begins = c.is_uppercase() && before.is_lowercase();
        if (begins || !c.is_alphanumeric()) && !part.is_empty() {
            parts.push(std::mem::take(&mut part));
        }
        if c.is_alphanumeric() {
            part.extend(c.to_lowercase());
        }
        before = c;
    }
    parts
}

impl Old {
    /// Whether it is in a line with these parts.
    fn is_in(&self, line: &str, parts: &[String]) -> bool {
        self.is_named(line, parts) && !STAYS.iter().chain(self.unless).any(|it| line.contains(it))
    }

    fn is_named(&self, line: &str, parts: &[String]) -> bool {
        if self.word.chars().all(|c| c.is_ascii_lowercase() || c == ' ') && !self.word.starts_with(' ') {
            let words: Vec<&str> = self.word.split(' ').collect();
            return parts.windows(words.len()).any(|window| window == words);
        }
        let is_of_a_name = |c: char| c.is_alphanumeric() || c == '_';
        line.match_indices(self.word).any(|(at, _)| {
            let (before, behind) = (line.split_at(at).0, line.split_at(at + self.word.len()).1);
            let goes_on = self.word.ends_with(is_of_a_name) && behind.starts_with(|c| is_of_a_name(c) || c == '-');
            let went_on = self.word.starts_with(is_of_a_name) && before.ends_with(is_of_a_name);
            !goes_on && !went_on
        })
    }

    fn is_about(&self, file: &str) -> bool {
        self.only_in.is_empty() || self.only_in.iter().any(|begin| file.starts_with(begin))
    }
}

/// All golden files with their texts; the name of a file is the first line of its text.
fn files(folder: &Path, below: &str, into: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = format!("{below}{}", path.file_name().unwrap().to_str().unwrap());
        if path.is_dir() {
            files(&path, &format!("{name}/"), into);
        } else if name != STILL_THERE {
            let text = fs::read_to_string(&path).unwrap();
            into.push((name.clone(), format!("{name}\n{text}")));
        }
    }
}

#[test]
fn old_words_are_gone() {
    let mut all = Vec::new();
    files(&golden::folder(), "", &mut all);
    let still = fs::read_to_string(golden::folder().join(STILL_THERE)).unwrap_or_default();
    let still: BTreeSet<&str> = still.lines().collect();
    let (mut found, mut faults) = (BTreeSet::new(), Vec::new());
    for (file, text) in &all {
        let words: Vec<&Old> = WORDS.iter().filter(|old| old.is_about(file)).collect();
        for (number, line) in text.lines().enumerate() {
            let parts = parts(line);
            for old in words.iter().filter(|old| old.is_in(line, &parts)) {
                let entry = format!("{file}: {}", old.word.trim());
                if !still.contains(entry.as_str()) {
                    faults.push(format!("golden/{file}:{number}: {:?}, say {}: {}", old.word, old.say, line.trim()));
                }
                found.insert(entry);
            }
        }
    }
    let left: Vec<&str> = still.into_iter().filter(|entry| found.contains(*entry)).collect();
    if golden::writes() {
        golden::write(STILL_THERE, &left.iter().map(|entry| format!("{entry}\n")).collect::<String>());
    } else {
        let listed = fs::read_to_string(golden::folder().join(STILL_THERE)).unwrap_or_default();
        let gone = listed.lines().filter(|entry| !left.contains(entry));
        faults.extend(gone.map(|entry| format!("golden/{STILL_THERE}: {entry:?} no longer occurs: remove the line")));
    }
    let shown: Vec<&str> = faults.iter().take(MOST_FAULTS).map(String::as_str).collect();
    assert!(faults.is_empty(), "{} old words, the first of them:\n{}", faults.len(), shown.join("\n"));
}

#[test]
fn words_are_found_in_names_and_texts() {
    let found = |word: &str, line: &str| {
        let old = Old { word: WORDS.iter().find(|old| old.word == word).unwrap().word, ..old("", "") };
        old.is_in(line, &parts(line))
    };
    for line in ["--max-backlog <BYTES>", "max_backlog: u64", "BATON_MAX_BACKLOG", "MaxBacklog", "the max backlog"] {
        assert!(found("max backlog", line), "{line}");
    }
    assert!(found("job", "field baton::Job.x") && found("jobs", "/jobs/{queue}") && !found("job", "jobless"));
    assert!(found("BATON_KEY", "BATON_KEY=x") && !found("BATON_KEY", "BATON_KEY_LIFETIME"));
    assert!(found("--key", "baton push --key june") && !found("--key", "--key-lifetime"));
    assert!(found("baton::Cancel", "struct baton::Cancel") && !found("baton::Cancel", "enum baton::Cancelling"));
    assert!(!found("performance", "make performance"));
}
