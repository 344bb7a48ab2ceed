//! Sales as rows of a text: `transaction_id,item,amount`, fields quoted as RFC 4180 has it.
//!
//! Rows are read one at a time, so a text of any length takes the memory of one row. A row that is none is told with the
//! line it begins in, from 1.

use std::{fmt, io::BufRead};

use super::{SalesError, sale::Sale};

const HEADER: [&[u8]; 3] = [b"transaction_id", b"item", b"amount"];
/// How much of a row is shown, in characters.
const SHOWN: usize = 60;
/// The longest row.
const ROW_BYTES: usize = 16 << 10;

/// The rows of a text behind its header.
pub struct Table<R> {
    from: R,
    /// The line that is read next.
    line: u64,
    row: Row,
    has_header: bool,
    over: bool,
}

#[derive(Default)]
struct Row {
    fields: Vec<Vec<u8>>,
    bytes: usize,
}

impl<R: BufRead> Table<R> {
    /// The rows of this text.
    pub fn new(from: R) -> Self {
        Self { from, line: 1, row: Row::default(), has_header: false, over: false }
    }

    fn next_sale(&mut self) -> Result<Option<(u64, Sale)>, SalesError> {
        if !std::mem::replace(&mut self.has_header, true) {
            let found = self.read()?.is_some();
            if let Some(first) = self.row.fields.first_mut()
                && first.starts_with(b"\xef\xbb\xbf")
            {
                first.drain(..3);
            }
            if !found || self.row.fields != HEADER {
                return Err(bad(1, format!("the first line must be transaction_id,item,amount, it is {}", self.row)));
            }
        }
        loop {
            let Some(line) = self.read()? else { return Ok(None) };
            if matches!(self.row.fields.as_slice(), [only] if only.is_empty()) {
                continue;
            }
            let texts: Result<Vec<&str>, _> = self.row.fields.iter().map(|field| std::str::from_utf8(field)).collect();
            let Ok(texts) = texts else { return Err(bad(line, "it is not UTF-8 text".to_owned())) };
            return match texts.as_slice() {
                [transaction_id, item, amount] => {
                    let sale = Sale::new(transaction_id, item, amount.trim());
                    sale.map(|sale| Some((line, sale))).map_err(|error| bad(line, error.to_string()))
                }
                fields => {
                    let (count, plural) = (fields.len(), if fields.len() == 1 { "" } else { "s" });
                    Err(bad(line, format!("it has {count} field{plural}, not transaction_id,item,amount")))
                }
            };
        }
    }

    /// Reads the fields of the next row; the line it begins in, or nothing at the end.
    fn read(&mut self) -> Result<Option<u64>, SalesError> {
        let begun = self.line;
        let mut line = Vec::new();
        self.row = Row { fields: vec![Vec::new()], bytes: 0 };
        let mut in_quotes = false;
        loop {
            line.clear();
            // A line without an end is read no further than a row may be long.
            let room = (ROW_BYTES + 2).saturating_sub(self.row.bytes) as u64;
            let count = std::io::Read::take(&mut self.from, room).read_until(b'\n', &mut line);
            let count = count.map_err(|error| SalesError::Input(error.to_string()))?;
            if count == 0 {
                return match (in_quotes, self.row.bytes) {
                    (true, _) => Err(bad(begun, "a quote in it has no end".to_owned())),
                    (false, 0) => Ok(None),
                    (false, _) => Ok(Some(begun)),
                };
            }
            self.row.bytes += count;
            self.line += 1;
            if self.row.bytes > ROW_BYTES {
                return Err(bad(begun, format!("it has over {ROW_BYTES} bytes")));
            }
            in_quotes = self.row.add(&line, in_quotes).map_err(|why| bad(begun, why.to_owned()))?;
            if !in_quotes {
                return Ok(Some(begun));
            }
        }
    }
}

impl Row {
    /// Adds a line with its end; whether the row goes on behind it, in quotes.
    fn add(&mut self, line: &[u8], mut in_quotes: bool) -> Result<bool, &'static str> {
        let mut rest = line.iter().copied().peekable();
        // Behind a closing quote only a comma or the end may come.
        let mut is_closed = false;
        while let Some(byte) = rest.next() {
            let Some(field) = self.fields.last_mut() else { break };
            match byte {
                b'"' if in_quotes && rest.peek() == Some(&b'"') => {
                    rest.next();
                    field.push(b'"');
                }
                b'"' if in_quotes => (in_quotes, is_closed) = (false, true),
                _ if in_quotes => field.push(byte),
                b'\n' => break,
                b'\r' if matches!(rest.peek(), None | Some(b'\n')) => {}
                b',' => {
                    self.fields.push(Vec::new());
                    is_closed = false;
                }
                _ if is_closed => return Err("something stands behind a quoted field"),
                b'"' if field.is_empty() => in_quotes = true,
                b'"' => return Err("a quote stands within a field that does not begin with one"),
                _ => field.push(byte),
            }
        }
        Ok(in_quotes)
    }
}

/// The row for people: what stands in it, on one line, or the first of that.
impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.fields.join(&b',');
        let text = String::from_utf8_lossy(&text);
        match text.char_indices().nth(SHOWN) {
            _ if text.is_empty() => f.write_str("empty"),
            Some((end, _)) => write!(f, "{:?} …", text.get(..end).unwrap_or_default()),
            None => write!(f, "{text:?}"),
        }
    }
}

fn bad(line: u64, why: String) -> SalesError {
    SalesError::Row { line, why }
}

impl<R: BufRead> Iterator for Table<R> {
    type Item = Result<(u64, Sale), SalesError>;

    /// The next sale and its line; after an error there is nothing more.
    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let next = self.next_sale().transpose();
        self.over = !matches!(next, Some(Ok(_)));
        next
    }
}
