//! Which commands each script may come to, found in its text: a user who lacks one of them is refused before the script's
//! first write (`lua/rights.lua`).
//!
//! A script comes to the commands that its own text names, and those of all functions that this text names, and so on. A
//! name that means something else there only adds to what is asked for.

use std::collections::{BTreeSet, HashMap, HashSet};

/// What is sent to the server outside of scripts, and is needed.
const PLAIN: &[&str] = &["BLPOP", "EXEC", "GETRANGE", "INFO", "MULTI", "SCAN", "SET"];
/// How a script runs a command.
const CALL: &str = "call('";

/// The commands that a text names, and the functions.
#[derive(Debug, Default)]
struct Named<'t> {
    commands: BTreeSet<&'t str>,
    functions: BTreeSet<&'t str>,
}

impl<'t> Named<'t> {
    fn add(&mut self, line: &'t str, functions: &HashSet<&str>) {
        if line.trim_start().starts_with("--") {
            return;
        }
        self.commands.extend(line.split(CALL).skip(1).filter_map(|rest| rest.split('\'').next()));
        let ends = |it: char| !it.is_ascii_alphanumeric() && !matches!(it, '_' | '.');
        self.functions.extend(line.split(ends).filter(|word| functions.contains(word)));
    }
}

/// The functions of the shared parts.
#[derive(Debug)]
pub(super) struct Functions<'t> {
    names: HashSet<&'t str>,
    by_name: HashMap<&'t str, Named<'t>>,
    /// What stands in none of them: all may come to it.
    outside: Named<'t>,
}

impl<'t> Functions<'t> {
    /// Reads the shared parts, whose functions begin and end at the beginning of a line.
    pub(super) fn of(parts: &'t str) -> Self {
        let names = parts.lines().filter_map(begins).collect();
        let mut functions = Self { names, by_name: HashMap::new(), outside: Named::default() };
        let mut within = None;
        for line in parts.lines() {
            within = within.or_else(|| begins(line));
            let named = match within {
                Some(name) => functions.by_name.entry(name).or_default(),
                None => &mut functions.outside,
            };
            named.add(line, &functions.names);
            if line == "end" || (line.ends_with(" end") && begins(line).is_some()) {
                within = None;
            }
        }
        functions
    }

    /// The commands that a script of this text may come to.
    pub(super) fn commands(&self, text: &'t str) -> BTreeSet<&'t str> {
        let mut own = Named::default();
        text.lines().for_each(|line| own.add(line, &self.names));
        let mut commands = &own.commands | &self.outside.commands;
        let (mut seen, mut next) = (BTreeSet::new(), Vec::from_iter(&own.functions | &self.outside.functions));
        while let Some(name) = next.pop() {
            let Some(function) = self.by_name.get(name).filter(|_| seen.insert(name)) else { continue };
            commands.extend(&function.commands);
            next.extend(&function.functions);
        }
        commands
    }
}

/// The name of the function that begins in a line.
fn begins(line: &str) -> Option<&str> {
    let line = line.strip_prefix("local ").unwrap_or(line);
    let name = match line.strip_prefix("function ") {
        Some(named) => named.split_once('(')?.0,
        None => line.split_once(" = function(")?.0,
    };
    (!name.starts_with(' ')).then_some(name)
}

/// All that a user needs: these commands of scripts, and those that are sent by themselves.
pub(super) fn all<'t>(of_scripts: impl Iterator<Item = &'t BTreeSet<&'t str>>) -> BTreeSet<&'t str> {
    of_scripts.flatten().chain(PLAIN).copied().collect()
}

/// As text in Lua, which takes no room among the few registers that the library has left.
pub(super) fn words(commands: &BTreeSet<&str>) -> String {
    format!("'{}'", Vec::from_iter(commands.iter().copied()).join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARTS: &str = "local x = call('GET', 'x')\nlocal function one(a) return call('SET', a) end\nfunction its.two()\n  one()\n  \
                         call('DEL', 1)\nend\nlater = function(a)\n  its.two()\nend\nlocal function other()\n  call('TIME')\nend";

    #[test]
    fn a_script_needs_what_it_may_come_to() {
        let functions = Functions::of(PARTS);
        let commands = |text| Vec::from_iter(functions.commands(text));
        assert_eq!(commands("-- other\nreturn 1"), ["GET"]);
        assert_eq!(commands("call('HGET', one(1))"), ["GET", "HGET", "SET"]);
        assert_eq!(commands("if later(1) then other() end"), ["DEL", "GET", "SET", "TIME"]);
    }
}
