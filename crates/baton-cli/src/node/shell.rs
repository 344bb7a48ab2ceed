//! Shells among the commands that run messages, and what only a shell would understand.

use std::path::Path;

const SHELLS: [&str; 11] = ["sh", "ash", "bash", "csh", "dash", "fish", "ksh", "mksh", "tcsh", "yash", "zsh"];
/// Words that stand between commands.
const BETWEEN: [&str; 5] = ["|", "||", "&&", "&", ";"];

/// The text that a shell in this command runs as code, if there is one: what stands behind its `-c`. The shell may be
/// started by another program, as in `timeout 5 sh -c …`.
pub(super) fn code(words: &[String]) -> Option<String> {
    let is_shell =
        |word: &String| Path::new(word).file_name().is_some_and(|name| SHELLS.iter().any(|shell| name == *shell));
    let mut shells = words.iter().enumerate().filter(|(_, word)| is_shell(word));
    shells.find_map(|(at, _)| text(words.get(at + 1..).unwrap_or_default()))
}

/// The text among the words behind a shell: the first that is no option, if one of those before it has a `c`.
fn text(words: &[String]) -> Option<String> {
    let (mut words, mut is_code) = (words.iter(), false);
    while let Some(word) = words.next() {
        match word.strip_prefix(['-', '+']) {
            Some("" | "-") => return words.next().filter(|_| is_code).cloned(),
            Some(long) if long.starts_with('-') => {}
            Some(letters) => {
                is_code |= word.starts_with('-') && letters.contains('c');
                if letters.contains(['o', 'O']) {
                    words.next();
                }
            }
            None => return Some(word.clone()).filter(|_| is_code),
        }
    }
    None
}

/// A word of the line in which a shell would see more than its letters, if there is one: quoted, it sees none.
pub(super) fn meant_for_one(line: &str) -> Option<String> {
    let (mut word, mut quote, mut is_plain, mut is_special) = (String::new(), None, true, false);
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (None, ' ' | '\t' | '\n') => {
                if is_special || (is_plain && is_admin(&word)) {
                    return Some(word);
                }
                (word, is_plain, is_special) = (String::new(), true, false);
                continue;
            }
            (None, '\'' | '"') => {
                (quote, is_plain) = (Some(c), false);
                continue;
            }
            (Some(open), _) if open == c => {
                quote = None;
                continue;
            }
            (None | Some('"'), '\\') => {
                is_plain = false;
                word.extend(chars.next());
                continue;
            }
            (None, '*') | (None | Some('"'), '`') => is_special = true,
            (None | Some('"'), '$') => {
                is_special |= chars.peek().is_some_and(|next| next.is_ascii_alphabetic() || "_{(".contains(*next));
            }
            _ => {}
        }
        word.push(c);
    }
    (is_special || (is_plain && is_admin(&word))).then_some(word)
}

/// Whether a word without quotes joins commands, or leads what they print elsewhere.
fn is_admin(word: &str) -> bool {
    BETWEEN.contains(&word) || word.starts_with(['>', '<']) || word.starts_with("2>")
}

#[cfg(test)]
mod tests {
    use baton::pool::Program;

    use super::*;

    fn code_of(line: &str) -> Option<String> {
        let program = Program::parse(line).unwrap();
        code(&program.words().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn the_text_that_a_shell_runs_is_found() {
        for line in [
            "sh -c 'echo {}'",
            "/bin/bash -euc 'echo {}' x",
            "bash --norc -o pipefail -c 'echo {}'",
            "timeout 5 dash -c -e 'echo {}'",
            "zsh -c -- 'echo {}'",
        ] {
            assert_eq!(code_of(line).as_deref(), Some("echo {}"), "{line}");
        }
        assert_eq!(code_of("sh -c 'echo \"$1\"' sh {}").as_deref(), Some("echo \"$1\""));
        for line in ["sh run.sh -c {}", "curl -c {}", "ssh -c {}", "sh", "sh -c"] {
            assert_eq!(code_of(line), None, "{line}");
        }
    }

    #[test]
    fn what_a_shell_would_read_is_told_from_what_is_quoted() {
        let word = |line| meant_for_one(line).unwrap_or_default();
        assert_eq!(word("echo a >> b"), ">>");
        assert_eq!(word("echo a 2>/dev/null"), "2>/dev/null");
        assert_eq!(word("echo {} | wc"), "|");
        assert_eq!(word("ls $HOME/x"), "$HOME/x");
        assert_eq!(word("ls \"$HOME\""), "$HOME");
        assert_eq!(word("rm *.tmp"), "*.tmp");
        assert_eq!(word("echo `date`"), "`date`");
        for plain in ["tr '|' ,", "awk '{print $NF}'", "find . -name '*.png'", "echo \\* 5$ $1 a&b \\$HOME"] {
            assert_eq!(word(plain), "", "{plain}");
        }
    }
}
