//! Programs among the commands that run messages which take one of their words as code: in such a word a body would be run.

use std::path::Path;

/// How a program is given code, and what else its options look like.
struct Interpreter {
    names: &'static [&'static str],
    /// Letters of options with code.
    code: &'static str,
    /// Letters of options with another value, which may be the next word.
    value: &'static str,
    /// Letters that end a word of options: the rest of the word is their value.
    rest: &'static str,
    /// Longer options with code, and with other values: so many words follow.
    long_code: &'static [&'static str],
    long_value: &'static [(&'static str, usize)],
    operands: Operands,
    /// Whether all words behind the code are its arguments.
    is_last: bool,
    advice: &'static str,
}

/// What stands behind the options.
#[derive(PartialEq, Eq)]
enum Operands {
    /// A file with code, or arguments; what looks like an option there is none.
    Others,
    /// More options may stand between them.
    Mixed,
    /// The first is code unless one of these options gave that.
    Code(&'static str),
    /// All behind the first are code together.
    CodeBehindOne,
}

const INPUT: &str = "let the code read the body from its standard input";

const DEFAULT: Interpreter = Interpreter {
    names: &[],
    code: "",
    value: "",
    rest: "",
    long_code: &[],
    long_value: &[],
    operands: Operands::Others,
    is_last: false,
    advice: INPUT,
};

/// Options with a file of code.
const FILES: [&str; 2] = ["--file", "--from-file"];

/// Shells are known elsewhere.
const KNOWN: [Interpreter; 15] = [
    Interpreter {
        names: &["python", "pypy"],
        code: "c",
        value: "WXQ",
        rest: "m",
        is_last: true,
        advice: "write python3 -c 'import sys; … sys.argv[1] …' {}",
        ..DEFAULT
    },
    Interpreter {
        names: &["perl"],
        code: "eE",
        value: "I",
        rest: "CDFVimMx",
        advice: "write perl -e '… $ARGV[0] …' -- {}",
        ..DEFAULT
    },
    Interpreter {
        names: &["ruby"],
        code: "e",
        value: "CIr",
        rest: "EFKTWix",
        advice: "write ruby -e '… ARGV[0] …' -- {}",
        ..DEFAULT
    },
    Interpreter {
        names: &["node", "nodejs", "bun"],
        code: "ep",
        value: "rC",
        long_code: &["--eval", "--print"],
        long_value: &[("--require", 1), ("--import", 1), ("--loader", 1), ("--conditions", 1)],
        advice: "write node -e '… process.argv[1] …' -- {}",
        ..DEFAULT
    },
    Interpreter {
        names: &["php"],
        code: "rBRE",
        value: "cdz",
        long_code: &["--run"],
        advice: "write php -r '… $argv[1] …' -- {}",
        ..DEFAULT
    },
    Interpreter { names: &["lua", "luajit", "julia", "Rscript", "elixir"], code: "eE", value: "lL", ..DEFAULT },
    Interpreter {
        names: &["awk", "gawk", "mawk", "nawk"],
        code: "e",
        value: "FvfiE",
        long_code: &["--source"],
        long_value: &[("--assign", 1), ("--field-separator", 1), ("--file", 1)],
        operands: Operands::Code("efE"),
        advice: "write awk -v body={} '… body …'",
        ..DEFAULT
    },
    Interpreter {
        names: &["sed", "gsed"],
        code: "e",
        value: "fl",
        rest: "i",
        long_code: &["--expression"],
        long_value: &[("--file", 1), ("--line-length", 1)],
        operands: Operands::Code("ef"),
        ..DEFAULT
    },
    Interpreter {
        names: &["jq"],
        value: "fL",
        long_value: &[
            ("--arg", 2),
            ("--argjson", 2),
            ("--slurpfile", 2),
            ("--rawfile", 2),
            ("--indent", 1),
            ("--from-file", 1),
        ],
        operands: Operands::Code("f"),
        advice: "write jq --arg body {} '… $body …'",
        ..DEFAULT
    },
    Interpreter {
        names: &["env"],
        code: "S",
        value: "uC",
        long_code: &["--split-string"],
        long_value: &[("--unset", 1), ("--chdir", 1)],
        advice: "write the command without -S",
        ..DEFAULT
    },
    Interpreter {
        names: &["ssh"],
        value: "bcDEeFIiJLlmoOpQRSWwBP",
        operands: Operands::CodeBehindOne,
        advice: "let the command there read the body from its standard input",
        ..DEFAULT
    },
    Interpreter {
        names: &["su", "runuser", "sg", "script"],
        code: "c",
        value: "sgGwWI",
        long_code: &["--command"],
        operands: Operands::Mixed,
        ..DEFAULT
    },
    Interpreter {
        names: &["psql"],
        code: "c",
        value: "hpUdfoFPRTLv",
        long_code: &["--command"],
        operands: Operands::Mixed,
        ..DEFAULT
    },
    Interpreter {
        names: &["mysql", "mariadb"],
        code: "e",
        value: "huDPS",
        rest: "p",
        long_code: &["--execute"],
        operands: Operands::Mixed,
        ..DEFAULT
    },
    Interpreter {
        names: &["sqlite3"],
        long_code: &["-cmd"],
        long_value: &[("-separator", 1), ("-newline", 1), ("-nullvalue", 1), ("-init", 1), ("-vfs", 1)],
        operands: Operands::CodeBehindOne,
        ..DEFAULT
    },
];

/// Programs that start another one, which stands among their words.
const STARTERS: [&str; 22] = [
    "chroot", "chrt", "doas", "env", "flock", "ionice", "nice", "nohup", "numactl", "parallel", "setarch", "setpriv",
    "setsid", "stdbuf", "strace", "sudo", "taskset", "time", "timeout", "unbuffer", "unshare", "xargs",
];
/// Options of other programs behind which code may stand.
const LIKE_CODE: [&str; 9] = ["-c", "-e", "-E", "-x", "--eval", "--exec", "--execute", "--command", "--expression"];

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
    let mut pairs = words.iter().zip(words.iter().skip(1));
    pairs.find(|(option, word)| LIKE_CODE.contains(&option.as_str()) && looks_so(word)).map(|(option, _)| &**option)
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
            Operands::CodeBehindOne => texts.push(operands.get(1..).unwrap_or_default().join(" ")),
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
        for line in ["gcc -c {}.c", "curl -e {} {}.html", "convert {} -c {}", "x --out 'a {}'"] {
            assert_eq!(like_code(&words(line)), None, "{line}");
        }
    }
}
