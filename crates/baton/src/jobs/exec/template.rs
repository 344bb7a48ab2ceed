//! The command of a message: `{}` in it stands for the body.

use std::{
    ffi::OsString,
    os::unix::ffi::{OsStrExt as _, OsStringExt as _},
};

use memchr::memmem;

use crate::{Failure, pool::Program};

const PLACE: &[u8] = b"{}";

/// The text of a body: that of a JSON string, or of a number as it is written.
pub(super) fn text(body: &[u8]) -> Option<String> {
    let body = body.trim_ascii();
    match body.first()? {
        b'"' => serde_json::from_slice(body).ok(),
        b'-' | b'0'..=b'9' => String::from_utf8(body.to_owned()).ok(),
        _ => None,
    }
}

/// The program with the body in each place that is left for it.
pub(super) fn fill(program: &Program, body: &[u8]) -> Result<Program, Failure> {
    if !has_place(program) {
        return Ok(program.clone());
    }
    let text = text(body).ok_or_else(|| {
        Failure::fatal("`{}` stands for a string or a number, and this body is neither; read it from standard input")
    })?;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(line: &str, body: &str) -> Option<String> {
        fill(&Program::parse(line).unwrap(), body.as_bytes()).ok().map(|program| program.to_string())
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
