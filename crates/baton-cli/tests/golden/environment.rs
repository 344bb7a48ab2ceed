//! The variables that the programs read, those that their children get, and the codes of the gateway's problems.

use std::{collections::BTreeSet, fmt::Write as _};

use baton_testkit::golden;
use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens as _;
use syn::Item;

use crate::{
    fleet::SmallFleet,
    sandbox::{Sandbox, until},
    sources::{is_of_tests, with_words},
};

/// The packages of which the command consists.
const PACKAGES: [&str; 5] = ["baton", "baton-cli", "baton-gateway", "baton-bench", "baton-servers"];
/// Functions that read a variable, or take its name.
const READERS: [&str; 4] = ["var", "var_os", "folder", "variable"];
/// What a file has that reads variables.
const WITH_VARIABLES: [&str; 4] = ["BATON_", "var(", "var_os(", "folder("];
/// What makes a problem, with the place of its code among the arguments.
const PROBLEMS: [(&str, usize); 4] = [("new", 1), ("bad", 0), ("busy", 0), ("trouble", 0)];
/// What a shell sets by itself.
const OF_THE_SHELL: [&str; 4] = ["PWD", "OLDPWD", "SHLVL", "_"];

/// Hands the arguments of every call `name(…)` to `each`, however deep it stands.
fn calls(tokens: TokenStream, each: &mut impl FnMut(&str, &[TokenTree])) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for (at, token) in tokens.iter().enumerate() {
        if let TokenTree::Group(group) = token {
            if let Some(TokenTree::Ident(name)) = at.checked_sub(1).and_then(|before| tokens.get(before)) {
                each(&name.to_string(), &group.stream().into_iter().collect::<Vec<_>>());
            }
            calls(group.stream(), each);
        }
    }
}

/// The text of a literal, if the token is one.
fn text(token: &TokenTree) -> Option<String> {
    let shown = token.to_string();
    Some(shown.strip_prefix('"')?.strip_suffix('"')?.to_owned())
}

/// The items of a package's files with one of these words, without those for tests.
fn items(package: &str, words: &[&str]) -> Vec<Item> {
    let is_for_tests = |item: &Item| match item {
        Item::Mod(it) => is_of_tests(&it.attrs),
        Item::Fn(it) => is_of_tests(&it.attrs),
        _ => false,
    };
    let items = with_words(package, words).into_iter().flat_map(|file| file.items);
    items.filter(|item| !is_for_tests(item)).collect()
}

/// The name and the value of a constant that is a text.
fn constant(item: &Item) -> Option<(String, String)> {
    let Item::Const(constant) = item else { return None };
    let value = constant.expr.to_token_stream().into_iter().next().as_ref().and_then(text)?;
    Some((constant.ident.to_string(), value))
}

fn is_a_variable(name: &str) -> bool {
    name.len() > 1 && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}

fn read_by_programs() -> BTreeSet<String> {
    let items: Vec<Item> = PACKAGES.iter().flat_map(|package| items(package, &WITH_VARIABLES)).collect();
    let constants: Vec<(String, String)> = items.iter().filter_map(constant).collect();
    let mut found = BTreeSet::new();
    for item in &items {
        calls(item.to_token_stream(), &mut |name, arguments| {
            if let Some(first) = arguments.first().filter(|_| READERS.contains(&name)) {
                let path = arguments.iter().take_while(|it| !matches!(it, TokenTree::Punct(it) if it.as_char() == ','));
                let last = path.last().map(ToString::to_string).unwrap_or_default();
                let named = constants.iter().filter(|(constant, _)| *constant == last).map(|(_, value)| value.clone());
                found.extend(named.chain(text(first)).filter(|it| is_a_variable(it)));
            }
        });
    }
    // What is read by a function of another name is known by its prefix.
    found.extend(constants.into_iter().map(|(_, value)| value).filter(|it| it.starts_with("BATON_")));
    found
}

/// The names in what `env` printed, without those that were there before.
fn given(lines: &[String]) -> BTreeSet<String> {
    let names = lines.iter().filter_map(|line| Some(line.split_once('=')?.0.to_owned()));
    let before = ["HOME", "PATH", "BATON_STORE"];
    names.filter(|it| !before.contains(&it.as_str()) && !OF_THE_SHELL.contains(&it.as_str())).collect()
}

#[test]
fn golden_variables() {
    let fleet = SmallFleet::start();
    let sandbox = Sandbox::new();
    sandbox.run(&["push", "once", "1"]).expect(0);
    let mut command = sandbox.command(&["node", "--queue", "once", "--exec-once", "sh -c 'env > once.env'", "--quiet"]);
    let _node = sandbox.start_by(command.env("PATH", std::env::var_os("PATH").unwrap()));
    until("the message is done", || sandbox.count("once", "done") == 1);
    let once = std::fs::read_to_string(sandbox.dir.path().join("once.env")).unwrap();
    let once: Vec<String> = once.lines().map(str::to_owned).collect();
    let mut all = String::new();
    for (head, names) in [
        ("read by the programs", read_by_programs()),
        ("set for a child of --exec", given(&fleet.lines("exec.env"))),
        ("set for a child of --exec-once", given(&once)),
    ] {
        assert!(!names.is_empty(), "{head}");
        names.iter().for_each(|name| writeln!(all, "{head}: {name}").unwrap());
    }
    golden::assert_file("variables.txt", &all);
}

#[test]
fn golden_codes_of_problems() {
    let mut codes = BTreeSet::new();
    for item in items("baton-gateway", &["Problem::"]) {
        calls(item.to_token_stream(), &mut |name, arguments| {
            let Some((_, place)) = PROBLEMS.iter().find(|(maker, _)| *maker == name) else { return };
            let mut arguments = arguments.split(|it| matches!(it, TokenTree::Punct(it) if it.as_char() == ','));
            let code = arguments.nth(*place).and_then(|it| it.first()).and_then(text);
            codes.extend(code.filter(|it| it.chars().all(|c| c.is_ascii_lowercase() || c == '-')));
        });
    }
    assert!(codes.len() > 20, "{codes:?}");
    golden::assert_file("problem_codes.txt", &(codes.into_iter().collect::<Vec<_>>().join("\n") + "\n"));
}
