//! The source of the programs, as syntax: what it names is found there and listed nowhere by hand.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{
    fs,
    path::{Path, PathBuf},
};

use syn::{Attribute, File};

/// The folder with all packages.
pub(crate) fn packages() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The files of a package's programs and library in which one of these words stands.
pub(crate) fn with_words(package: &str, words: &[&str]) -> Vec<File> {
    let (mut files, mut folders) = (Vec::new(), vec![packages().join(package).join("src")]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                // To parse them all would take seconds.
                if words.iter().any(|word| text.contains(word)) {
                    files.push(parse(&path));
                }
            }
        }
    }
    files
}

pub(crate) fn parse(path: &Path) -> File {
    let text = fs::read_to_string(path).unwrap();
    syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Whether something is there for tests alone.
pub(crate) fn is_of_tests(attributes: &[Attribute]) -> bool {
    attributes
        .iter()
        .any(|it| it.path().is_ident("cfg") && it.parse_args::<syn::Path>().is_ok_and(|it| it.is_ident("test")))
}
