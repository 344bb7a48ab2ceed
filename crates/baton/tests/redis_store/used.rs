//! The commands that the sources name, scripts and plain calls.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// Commands without which everything runs all the same: what they are for is left out, or done otherwise.
const OPTIONAL: &[&str] = &["BGREWRITEAOF", "CONFIG", "EVAL", "EVALSHA", "FCALL", "FUNCTION"];

/// All commands that a user needs.
pub(crate) fn commands() -> BTreeSet<String> {
    let store = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/store");
    let mut found = BTreeSet::new();
    for path in files(&store) {
        let begins: &[&str] = match path.extension().and_then(|it| it.to_str()) {
            Some("lua") => &["call('"],
            Some("rs") => &["cmd(\""],
            _ => continue,
        };
        let text = fs::read_to_string(&path).unwrap();
        for begin in begins {
            let words = text.split(begin).skip(1).map(|rest| rest.split(['\'', '"']).next().unwrap().to_owned());
            found.extend(words.filter(|word| !OPTIONAL.contains(&word.as_str())));
        }
    }
    assert!(found.len() > 50, "the sources are read in vain: {found:?}");
    found
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}
