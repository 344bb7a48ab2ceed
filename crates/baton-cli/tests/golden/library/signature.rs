//! Syntax as text, spaced by rules of its own: those of the crates that parse it may change.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::ToTokens;

/// Admins of two signs.
const PAIRS: [&str; 4] = ["->", "::", "=>", ".."];

/// A span of syntax on one line.
pub(super) fn shown(syntax: &impl ToTokens) -> String {
    let mut words = Vec::new();
    flatten(syntax.to_token_stream(), &mut words);
    spaced(&words)
}

fn flatten(tokens: TokenStream, words: &mut Vec<String>) {
    let mut is_lifetime = false;
    for token in tokens {
        match token {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                words.push(open.to_owned());
                flatten(group.stream(), words);
                words.push(close.to_owned());
            }
            TokenTree::Punct(sign) if sign.as_char() == '\'' => is_lifetime = true,
            TokenTree::Punct(sign) => {
                let sign = sign.as_char();
                let pair = words.last().map(|last| format!("{last}{sign}")).filter(|it| PAIRS.contains(&it.as_str()));
                match pair {
                    Some(pair) => {
                        words.pop();
                        words.push(pair);
                    }
                    None => words.push(sign.to_string()),
                }
            }
            other if std::mem::take(&mut is_lifetime) => words.push(format!("'{other}")),
            other => words.push(other.to_string()),
        }
    }
}

fn spaced(words: &[String]) -> String {
    let is_word = |it: &str| it.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '\'' || c == '"');
    let mut text = String::new();
    let mut last = "";
    for word in words.iter().map(String::as_str).filter(|it| !it.is_empty()) {
        let space = match (last, word) {
            ("+" | ":" | ",", "?" | "::") => true,
            ("", _) | (_, "," | ";" | ":" | ")" | "]" | ">" | "." | "?" | "::" | "..") => false,
            ("," | ";" | ":" | "->" | "=" | "+" | "=>" | "{", _) | (_, "->" | "=" | "+" | "=>" | "{" | "}") => true,
            (")" | ">" | "]", next) => is_word(next) || next == "&",
            (one, next) => {
                is_word(one) && !one.starts_with('\'') && (is_word(next) || next == "&")
                    || one.starts_with('\'') && (is_word(next) || next == "[" || next == "(")
            }
        };
        if space {
            text.push(' ');
        }
        text += word;
        last = word;
    }
    // A comma before the end of a list is only how it was laid out.
    text.replace(",)", ")").replace(",>", ">").trim_end_matches(',').to_owned()
}

#[test]
fn a_signature_is_spaced_as_it_is_written() {
    for text in [
        "pub async fn push<T: Serialize + ?Sized>(&self, message: &'a mut T) -> Result<MessageId, PushError>",
        "fn with(it: impl FnOnce(&[u8]) -> bool + Send + 'static, two: (&'a [u8], Option<<T as Of>::Kind>)) where T: Copy",
    ] {
        let tokens: TokenStream = text.parse().unwrap_or_default();
        assert_eq!(shown(&tokens), text);
    }
}
