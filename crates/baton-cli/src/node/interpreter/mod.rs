//! Programs among the commands that run messages which take one of their words as code: in such a word a body would be run.

mod known;

use std::path::Path;

use self::known::{FILES, Interpreter, KNOWN, LIKE_CODE, Operands, STARTERS};

/// A word with code that has the body in it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Code {
    /// The program that runs it.
    pub(super) program: String,
    pub(super) advice: &'static str,
}

/// The first program of the command that would run a body as part of its code. Code that is the body and nothing else is what
/// somebody wants.
pub(super) fn code_with_body(words: &[String]) -> Option<Code> {
    // Only a word that is started is a program: another may have the name of one.
    let starts_others = words.first().is_some_and(|first| STARTERS.contains(&name(first)));
    words.iter().enumerate().filter(|(at, _)| *at == 0 || starts_others).find_map(|(at, word)| {
        let interpreter = KNOWN.iter().find(|it| it.names.iter().any(|known| is_named(word, known)))?;
        let texts = interpreter.texts(words.get(at + 1..).unwrap_or_default());
        let is_inside = |text: &String| text.contains("{}") && text.trim() != "{}";
        texts.iter().any(is_inside).then(|| Code { program: name(word).to_owned(), advice: interpreter.advice })
    })
}

/// An option behind which a word stands that looks like code and has the body in it; in a command whose programs are not known.
pub(super) fn like_code(words: &[String]) -> Option<&str> {
    let looks_so = |word: &str| word.contains("{}") && word.contains([' ', '(', ')', ';', '\'', '"', '$', '|', '`']);
    let behind = words.iter().zip(words.iter().skip(1)).map(|(option, word)| (&**option, &**word));
    let mut pairs = words.iter().filter_map(|word| word.split_once('=')).chain(behind);
    pairs.find(|(option, word)| LIKE_CODE.contains(option) && looks_so(word)).map(|(option, _)| option)
}

fn name(word: &str) -> &str {
    Path::new(word).file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

/// Whether it is this program, perhaps with a version: `python3.12`.
fn is_named(word: &str, known: &str) -> bool {
    let version = name(word).strip_prefix(known);
    version.is_some_and(|version| version.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-')))
}

impl Interpreter {
    /// The texts among its words that it runs as code.
    fn texts(&self, words: &[String]) -> Vec<String> {
        let (mut texts, mut operands, mut has_code, mut only_operands) = (Vec::new(), Vec::new(), false, false);
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if only_operands || word.len() < 2 || !word.starts_with('-') {
                operands.push(word.clone());
                only_operands |= self.operands != Operands::Mixed;
                continue;
            }
            let (option, value) = word.split_once('=').map_or((&**word, None), |(option, value)| (option, Some(value)));
            let given = self.long_value.iter().find(|(known, _)| *known == option);
            if word == "--" {
                only_operands = true;
            } else if self.long_code.contains(&option) {
                texts.extend(value.map(str::to_owned).or_else(|| words.next().cloned()));
                has_code = true;
            } else if let Some((known, values)) = given {
                has_code |= FILES.contains(known);
                words.by_ref().take(if value.is_some() { 0 } else { *values }).for_each(drop);
            } else if let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.starts_with('-')) {
                has_code |= self.cluster(letters, &mut words, &mut texts);
            }
            only_operands |= has_code && self.is_last;
        }
        match self.operands {
            Operands::Code(_) if !has_code => texts.extend(operands.into_iter().next()),
            Operands::CodeBehind(others) => texts.push(operands.get(others..).unwrap_or_default().join(" ")),
            _ => {}
        }
        texts
    }

    /// Reads a word of letters; whether one of them says where the code is.
    fn cluster<'a>(
        &self, letters: &str, words: &mut impl Iterator<Item = &'a String>, texts: &mut Vec<String>,
    ) -> bool {
        let gives_code = |letter: char| matches!(self.operands, Operands::Code(giving) if giving.contains(letter));
        for (at, letter) in letters.char_indices() {
            let rest = letters.get(at + letter.len_utf8()..).unwrap_or_default();
            if self.code.contains(letter) {
                // As in -pe, where both are such letters.
                match rest.chars().all(|letter| self.code.contains(letter)) {
                    true => texts.extend(words.next().cloned()),
                    false => texts.push(rest.to_owned()),
                }
                return true;
            }
            if self.value.contains(letter) {
                if rest.is_empty() {
                    words.next();
                }
                return gives_code(letter);
            }
            if self.rest.contains(letter) {
                break;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        let program = baton::pool::Program::parse(line).unwrap();
        program.words().map(|word| word.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn a_body_in_code_is_found() {
        for (line, program) in [
            ("python3 -c 'print(\"{}\")'", "python3"),
            ("/usr/bin/python3.12 -uc 'print(\"{}\")' x", "python3.12"),
            ("python3 -W ignore -c 'f({})'", "python3"),
            ("timeout 5 python3 -c 'f({})'", "python3"),
            ("perl -e 'print \"{}\"'", "perl"),
            ("perl -lane 'print {}'", "perl"),
            ("perl -e 1 -e 'print {}'", "perl"),
            ("perl '-eprint {}'", "perl"),
            ("perl '-Mconstant(X=>{})' -e 1", "perl"),
            ("ruby -r json -e 'puts {}'", "ruby"),
            ("node -pe '1 + {}'", "node"),
            ("node --eval='f({})'", "node"),
            ("node --require x --eval 'f({})'", "node"),
            ("php -r 'echo {};'", "php"),
            ("awk 'BEGIN { print \"{}\" }'", "awk"),
            ("gawk -F : -v x=1 '/{}/' file", "gawk"),
            ("sed 's/x/{}/' file", "sed"),
            ("sed -n -e p -e 's/x/{}/' file", "sed"),
            ("jq '.a == {}' file", "jq"),
            ("env -S 'echo {}'", "env"),
            ("env '-Secho {}'", "env"),
            ("env A=1 awk '/{}/'", "awk"),
            ("ssh -p 22 host gzip {}", "ssh"),
            ("ssh host 'gzip {}'", "ssh"),
            ("ssh -o 'ProxyCommand=cat {}' host true", "ssh"),
            ("ssh '-oProxyCommand=cat {}' host true", "ssh"),
            ("sftp -o 'ProxyCommand=cat {}' host", "sftp"),
            ("rsync -a -e 'ssh -p {}' a b", "rsync"),
            ("watch 'echo {}'", "watch"),
            ("watch -n 5 echo {}", "watch"),
            ("tar -xf x.tar --to-command='echo {}'", "tar"),
            ("tar -cf x.tar --checkpoint-action=exec='echo {}' x", "tar"),
            ("gdb -ex 'shell echo {}'", "gdb"),
            ("npm exec -c 'echo {}'", "npm"),
            ("vim -c '!echo {}' x", "vim"),
            ("su user -c 'echo {}'", "su"),
            ("psql -h x -c 'select {}'", "psql"),
            ("sqlite3 x.db 'select {}'", "sqlite3"),
        ] {
            let found = code_with_body(&words(line)).map(|it| it.program);
            assert_eq!(found.as_deref(), Some(program), "{line}");
        }
    }

    #[test]
    fn a_body_beside_code_is_none() {
        for line in [
            "python3 fetch.py -c {}.cfg",
            "python3 -m fetch -c {}.cfg",
            "python3 -c 'import sys; print(sys.argv[1])' {} {}.png",
            "python3 -c {}",
            "perl -ne 'print' {}.txt",
            "perl -MList::Util=sum -ne 'print' {}.txt",
            "perl -i.bake -pe 's/a/b/' {}.txt",
            "ruby -e 'puts ARGV[0]' -- --name={}",
            "node -e 'f(process.argv[1])' -- {}.json",
            "node run.js -e {}.json",
            "awk '{print $1}' {}.txt",
            "awk -f run.awk {}.txt",
            "awk --file=run.awk {}.txt",
            "awk -v body={} 'BEGIN { print body }'",
            "sed -i 's/a/b/' {}.txt",
            "sed -f x.sed {}.txt",
            "jq --arg body {} '$body' {}.json",
            "env NAME={} run {}.txt",
            "ssh {}.example.org uptime",
            "ssh host {}",
            "ssh -i {}.key host uptime",
            "rsync -a {}.txt host:{}.txt",
            "tar -czf {}.tgz {}/",
            "tar -C {}/ -xf x.tar",
            "watch {}",
            "sqlite3 {}.db 'select 1'",
            "psql -c 'select 1' {}_db",
            "convert {} {}.png",
            "curl --url={} -e {}",
            "cp awk {}.bak",
        ] {
            assert_eq!(code_with_body(&words(line)), None, "{line}");
        }
    }

    #[test]
    fn what_looks_like_code_of_other_programs_is_doubted() {
        assert_eq!(like_code(&words("tclsh9 -c 'puts {}; exit'")), Some("-c"));
        assert_eq!(like_code(&words("emacs --batch --eval '(f \"{}\")'")), Some("--eval"));
        assert_eq!(like_code(&words("emacs --batch '--eval=(f \"{}\")'")), Some("--eval"));
        for line in ["curl '--url=a {}'", "gcc -c {}.c", "curl -e {} {}.html", "convert {} -c {}", "x --out 'a {}'"] {
            assert_eq!(like_code(&words(line)), None, "{line}");
        }
    }
}
