//! The command of a message: `{}` in it stands for the body.

use std::{
    ffi::OsString,
    os::unix::ffi::{OsStrExt as _, OsStringExt as _},
};

use memchr::memmem;

use crate::{Failure, pool::Program};

const PLACE: &[u8] = b"{}";

/// The text of a body that is a JSON string.
pub(super) fn string(body: &[u8]) -> Option<String> {
    serde_json::from_slice(body).ok()
}

/// The text of a body that is a string, or a number as it is written. The error says why it cannot be an argument.
fn text(body: &[u8]) -> Result<String, &'static str> {
    let body = body.trim_ascii();
    let text = match body.first() {
        // It is JSON, so no other fault is possible.
        Some(b'"') => serde_json::from_slice(body)
            .map_err(|_| "this string has half of a surrogate pair (\\ud800 to \\udfff), which is no character")?,
        Some(b'-' | b'0'..=b'9') => String::from_utf8_lossy(body).into_owned(),
        _ => return Err("this body is neither a string nor a number"),
    };
    if text.contains('\0') { Err("this string has a NUL in it, which no argument can have") } else { Ok(text) }
}

/// The program with the body in each place that is left for it. A body that could be taken for an option is refused unless
/// that is allowed.
pub(super) fn fill(program: &Program, body: &[u8], allow_dash: bool) -> Result<Program, Failure> {
    if !has_place(program) {
        return Ok(program.clone());
    }
    let text = text(body).map_err(|why| {
        Failure::fatal(format_args!(
            "`{{}}` stands for the text of a string or a number, and {why}; read it from standard input"
        ))
    })?;
    if text.starts_with('-') && !allow_dash && has_place_for_an_option(program) {
        return Err(Failure::fatal(
            "this body begins with `-`, and the command would take it for an option; put `--` before `{}` if the command \
             knows that, or allow it with --allow-dash",
        ));
    }
    let mut filled = program.clone();
    for word in &mut filled.arguments {
        let (mut whole, mut rest) = (Vec::new(), word.as_bytes());
        while let Some(at) = memmem::find(rest, PLACE) {
            let (before, behind) = rest.split_at(at);
            whole.extend_from_slice(before);
            whole.extend_from_slice(text.as_bytes());
            rest = behind.strip_prefix(PLACE).unwrap_or_default();
        }
        whole.extend_from_slice(rest);
        *word = OsString::from_vec(whole);
    }
    Ok(filled)
}

/// Whether a place is left for the body.
pub(super) fn has_place(program: &Program) -> bool {
    program.arguments.iter().any(|word| memmem::find(word.as_bytes(), PLACE).is_some())
}

/// Whether a word begins with the body and no word `--` before it ends the options.
fn has_place_for_an_option(program: &Program) -> bool {
    let options = program.arguments.iter().take_while(|word| word.as_bytes() != b"--");
    options.into_iter().any(|word| word.as_bytes().starts_with(PLACE))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(line: &str, body: &str) -> Option<String> {
        fill(&Program::parse(line).unwrap(), body.as_bytes(), true).ok().map(|program| program.to_string())
    }

    fn refusal(line: &str, body: &str) -> String {
        let filled = fill(&Program::parse(line).unwrap(), body.as_bytes(), false);
        filled.map_or_else(|failure| format!("{failure:?}"), |program| program.to_string())
    }

    #[test]
    fn a_body_is_no_option_unless_that_is_allowed() {
        for line in ["curl -fsS {}", "convert {} {}.png", "x {}.txt -- {}"] {
            for body in [r#""-K/etc/passwd""#, "-5", r#""-""#] {
                assert!(refusal(line, body).contains("begins with `-`"), "{line} {body}");
            }
            assert!(!refusal(line, "\"a-b\"").contains("begins with"), "{line}");
        }
        assert_eq!(refusal("curl -fsS -- {}", r#""-K""#), "curl -fsS -- -K");
        assert_eq!(refusal("curl --url={}", r#""-K""#), "curl --url=-K");
        assert_eq!(filled("curl {}", r#""-K""#).unwrap(), "curl -K");
    }

    #[test]
    fn a_body_that_no_argument_can_be_is_refused_with_the_reason() {
        for (body, told) in [
            (r#""\ud800""#, "this string has half of a surrogate pair"),
            (r#""a\u0000b""#, "this string has a NUL in it"),
            ("[1]", "this body is neither a string nor a number"),
        ] {
            assert!(refusal("echo {}", body).contains(told), "{body}: {}", refusal("echo {}", body));
        }
    }

    #[test]
    fn strings_and_numbers_take_their_places() {
        assert_eq!(filled("echo {} --x={}{} {", r#""a b\n{}""#).unwrap(), "echo a b\n{} --x=a b\n{}a b\n{} {");
        assert_eq!(filled("echo {}", " -1.50 ").unwrap(), "echo -1.50");
        assert_eq!(filled("echo {}", r#"{"a":1}"#), None);
        assert_eq!(filled("echo {}", "null"), None);
        assert_eq!(filled("echo x", r#"{"a":1}"#).unwrap(), "echo x");
    }
}
