//! Golden files: all that users can see of the programs, as text under `golden/` at the root of the tree.
//!
//! A test derives the text from the programs and compares it. A change of a name is then seen in review. With
//! `BATON_GOLDEN=write` the test writes the file instead; `make golden` does that for all of them.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

/// The variable that has golden files written.
const VARIABLE: &str = "BATON_GOLDEN";
/// The most lines of a difference that are printed.
const MOST_LINES: usize = 60;

/// The folder of all golden files.
#[must_use]
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden")
}

/// Whether the files are to be written.
#[must_use]
pub fn writes() -> bool {
    std::env::var_os(VARIABLE).is_some_and(|it| it == "write")
}

/// Asserts that the file `name` holds this text, or writes it.
#[track_caller]
pub fn assert_file(name: &str, text: &str) {
    if let Some(difference) = difference(name, text) {
        panic!("{difference}{}", advice());
    }
}

/// The same for a folder: by the names of its files, it holds these texts and no other.
#[track_caller]
pub fn assert_folder(name: &str, texts: &BTreeMap<String, String>) {
    let folder = folder().join(name);
    let there = fs::read_dir(&folder).into_iter().flatten().map(|it| it.unwrap().file_name().into_string().unwrap());
    let mut all = String::new();
    for old in there.filter(|it| !texts.contains_key(it)) {
        match writes() {
            true => fs::remove_file(folder.join(&old)).unwrap(),
            false => writeln!(all, "golden/{name}/{old} is about something that is gone").unwrap(),
        }
    }
    for (file, text) in texts {
        all += &difference(&format!("{name}/{file}"), text).unwrap_or_default();
    }
    assert!(all.is_empty(), "{all}{}", advice());
}

/// Writes a text in the place of the file, whole or not at all.
pub fn write(name: &str, text: &str) {
    let path = folder().join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let new = path.with_extension("new");
    fs::write(&new, text).unwrap();
    fs::rename(new, path).unwrap();
}

fn advice() -> String {
    format!("\nIf this is meant: `make golden` writes all files; {VARIABLE}=write with this test writes its own.")
}

/// How the file differs from the text, unless it was written.
fn difference(name: &str, text: &str) -> Option<String> {
    let old = fs::read_to_string(folder().join(name)).unwrap_or_default();
    if old == text {
        return None;
    }
    if writes() {
        write(name, text);
        return None;
    }
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), text.lines().collect());
    let changed = changed(&old, &new);
    let mut shown = format!("golden/{name} differs:\n");
    for line in changed.iter().take(MOST_LINES) {
        writeln!(shown, "  {line}").unwrap();
    }
    if changed.len() > MOST_LINES {
        writeln!(shown, "  and {} more lines", changed.len() - MOST_LINES).unwrap();
    }
    Some(shown)
}

/// The lines that are gone (`-`) and new (`+`), each group under its line number in the old text.
fn changed(old: &[&str], new: &[&str]) -> Vec<String> {
    let begin = old.iter().zip(new).take_while(|(one, two)| one == two).count();
    let (old_rest, new_rest) = (&old[begin..], &new[begin..]);
    let end = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(one, two)| one == two).count();
    let (old, new) = (&old_rest[..old_rest.len() - end], &new_rest[..new_rest.len() - end]);
    // How many lines the rests from here on have in common.
    let mut common = vec![vec![0_u32; new.len() + 1]; old.len() + 1];
    for (at, one) in old.iter().enumerate().rev() {
        for (beside, two) in new.iter().enumerate().rev() {
            common[at][beside] = match one == two {
                true => common[at + 1][beside + 1] + 1,
                false => common[at + 1][beside].max(common[at][beside + 1]),
            };
        }
    }
    let (mut lines, mut at, mut beside, mut is_within) = (Vec::new(), 0, 0, false);
    while at < old.len() || beside < new.len() {
        if at < old.len() && beside < new.len() && old[at] == new[beside] {
            (at, beside, is_within) = (at + 1, beside + 1, false);
            continue;
        }
        if !std::mem::replace(&mut is_within, true) {
            lines.push(format!("line {}:", begin + at + 1));
        }
        if beside == new.len() || (at < old.len() && common[at + 1][beside] >= common[at][beside + 1]) {
            lines.push(format!("- {}", old[at]));
            at += 1;
        } else {
            lines.push(format!("+ {}", new[beside]));
            beside += 1;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::changed;

    #[test]
    fn a_difference_names_what_is_gone_and_what_is_new() {
        assert!(changed(&["a", "b"], &["a", "b"]).is_empty());
        let lines = changed(&["a", "b", "c", "d", "e"], &["a", "x", "c", "e", "f"]);
        assert_eq!(lines, ["line 2:", "- b", "+ x", "line 4:", "- d", "line 6:", "+ f"]);
        assert_eq!(changed(&[], &["a"]), ["line 1:", "+ a"]);
    }
}
