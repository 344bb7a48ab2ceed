//! What the scripts know from Rust, written before them: no number, limit, text or list of the store is told in both
//! languages.

use std::{collections::BTreeMap, fmt::Write as _, sync::LazyLock};

use super::{
    arguments::{CARRIED, INLINE},
    coding::{Coded, Number},
};
use crate::{
    message::{
        CANCELLED, END, ERROR, HEADED, IdSum, LAST_ERROR, MAX_CRASHES, MessageId, PARCEL_TABLE, PLAIN, RESTART,
        SPLIT_AFTER_CRASH, SUSPECT_CRASHES, THINNED_AT,
    },
    store::{
        Books, FORMAT, Place,
        agreed::{EXPIRED_AT_ONCE, IN_ITS_STEAD, LOST, MISSING_BODY, OF_A_CALL, SOON_MS},
        operation::{self, operations},
        wire,
    },
};

/// Numbers under the names they have in both languages.
macro_rules! numbers {
    ($($name:ident),*) => { &[$((stringify!($name), $name as u64)),*] };
}
pub(in crate::store) use numbers;

const MAX_ID: u64 = MessageId::MAX.0;
const MODULUS: u64 = IdSum::MODULUS;
/// What one call may spend on storing parcels without the bodies of messages that have gone, in bytes that pass through
/// Lua: about five milliseconds.
const THINNED_AT_ONCE: u64 = 2 << 20;
/// Those that several scripts need.
const SHARED: &[Number] = numbers![
    FORMAT,
    PLAIN,
    HEADED,
    PARCEL_TABLE,
    LAST_ERROR,
    INLINE,
    CARRIED,
    MAX_ID,
    MODULUS,
    MAX_CRASHES,
    SPLIT_AFTER_CRASH,
    SUSPECT_CRASHES,
    THINNED_AT,
    THINNED_AT_ONCE,
    EXPIRED_AT_ONCE,
    SOON_MS,
    IN_ITS_STEAD,
    OF_A_CALL
];

macro_rules! own {
    ($($module:ident: $name:ident($request:ident) -> $answer:ty;)*) => {
        /// Those of single operations.
        const OWN: &[&[Number]] = &[$(<operation::$request as Coded>::NUMBERS),*];
    };
}
operations!(own);

/// A script with numbers in the place of their names: Lua bounds how many locals there may be.
pub(super) fn with_numbers(lua: &str) -> String {
    static NUMBERS: LazyLock<BTreeMap<&str, u64>> =
        LazyLock::new(|| SHARED.iter().chain(OWN.iter().copied().flatten()).copied().collect());
    let (mut written, mut rest) = (String::with_capacity(lua.len()), lua);
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    while let Some(at) = rest.find(is_of_name) {
        let (before, from) = rest.split_at(at);
        let (word, behind) = from.split_at(from.find(|c| !is_of_name(c)).unwrap_or(from.len()));
        written += before;
        // Most words are none, which their first letter tells.
        let is_number = word.starts_with(|c: char| c.is_ascii_uppercase());
        match is_number.then(|| NUMBERS.get(word)).flatten() {
            Some(number) => written += &number.to_string(),
            None => written += word,
        }
        rest = behind;
    }
    written + rest
}

/// Texts and lists as Lua: a local each.
pub(super) fn lua() -> String {
    let mut lua = String::new();
    let start = wire::place(&Place::START);
    for (name, text) in [
        ("MISSING_BODY", MISSING_BODY),
        ("LOST", LOST),
        ("START", &start),
        ("RESTART", RESTART),
        ("END", END),
        ("ERROR", ERROR),
        ("CANCELLED", CANCELLED),
    ] {
        line(&mut lua, name, format_args!("\'{text}\'"));
    }
    let counters: Vec<String> = Books::COUNTERS.iter().map(|counter| format!("\'{}\'", counter.name)).collect();
    line(&mut lua, "COUNTERS", format_args!("{{ {} }}", counters.join(", ")));
    lua
}

fn line(lua: &mut String, name: &str, value: impl std::fmt::Display) {
    // Writing to text does not fail.
    writeln!(lua, "local {name} = {value}").ok();
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, path::Path};

    use super::*;

    /// The names that a text defines, written in capitals after `keyword`.
    fn defined(text: &str, keyword: &str) -> BTreeSet<String> {
        let names = text.lines().filter_map(|line| line.split(keyword).nth(1)).map(|rest| {
            rest.chars().take_while(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || *c == '_').collect::<String>()
        });
        names.filter(|name| name.len() > 1).collect()
    }

    /// All files below a folder whose names end like this.
    fn files(folder: &Path, ending: &str, into: &mut Vec<(String, String)>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                files(&path, ending, into);
            } else if path.to_str().unwrap().ends_with(ending) {
                into.push((path.display().to_string(), fs::read_to_string(&path).unwrap()));
            }
        }
    }

    #[test]
    fn no_constant_is_defined_in_both_languages() {
        let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let (mut rust, mut scripts) = (Vec::new(), Vec::new());
        files(&src.join("store"), ".rs", &mut rust);
        files(&src.join("message"), ".rs", &mut rust);
        files(&src.join("store"), ".lua", &mut scripts);
        let mut known: BTreeSet<String> = rust.iter().flat_map(|(_, text)| defined(text, "const ")).collect();
        known.extend(defined(&lua(), "local "));
        assert!(scripts.len() > 30 && known.contains("CLAIM_WINDOW"), "{} scripts", scripts.len());
        for (path, text) in &scripts {
            let twice: Vec<_> = defined(text, "local ").into_iter().filter(|name| known.contains(name)).collect();
            assert!(twice.is_empty(), "{path} defines {twice:?}, which Rust defines: let constants.rs write it");
        }
    }

    #[test]
    fn every_constant_written_is_used_and_written_once() {
        let mut scripts = Vec::new();
        files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/store"), ".lua", &mut scripts);
        let lua = lua();
        let names = defined(&lua, "local ");
        assert_eq!(names.len(), lua.lines().count());
        for name in names {
            let is_name = |word: &str| word == name;
            let uses = |text: &str| text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(is_name);
            assert!(scripts.iter().any(|(_, text)| uses(text)), "no script uses {name}");
        }
    }
}
