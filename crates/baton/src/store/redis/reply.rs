//! A reply of a script, read value by value; what does not follow the form is reported, never guessed.

use std::str::FromStr;

use bytes::Bytes;
use redis::Value;

use crate::store::{Refusal, StoreError, wire};

/// The rest of a reply.
#[derive(Debug)]
pub(in crate::store) struct Reply(std::vec::IntoIter<Value>);

impl Reply {
    /// A reply is a list, or the text that would be its only value.
    pub(in crate::store) fn new(value: Value) -> Result<Self, StoreError> {
        match value {
            Value::Array(values) => Ok(Self(values.into_iter())),
            text @ Value::BulkString(_) => Ok(Self(vec![text].into_iter())),
            other => Err(StoreError::Damaged(format!("a script answered {other:?} where a list belongs"))),
        }
    }

    /// Whether everything has been read.
    pub(in crate::store) fn is_done(&self) -> bool {
        self.0.len() == 0
    }

    pub(in crate::store) fn bytes(&mut self) -> Result<Bytes, StoreError> {
        match self.0.next() {
            Some(Value::BulkString(bytes)) => Ok(Bytes::from(bytes)),
            Some(Value::SimpleString(text)) => Ok(Bytes::from(text)),
            other => Err(StoreError::Damaged(format!("a script answered {other:?} where text belongs"))),
        }
    }

    pub(in crate::store) fn text(&mut self) -> Result<String, StoreError> {
        String::from_utf8(self.bytes()?.into())
            .map_err(|_| StoreError::Damaged("a script answered bytes where text belongs".to_owned()))
    }

    /// The next value as a number, a name, an id: whatever is written as text.
    pub(in crate::store) fn parsed<T: FromStr>(&mut self) -> Result<T, StoreError> {
        parsed(&self.text()?)
    }

    pub(in crate::store) fn list(&mut self) -> Result<Self, StoreError> {
        Self::new(self.0.next().unwrap_or(Value::Nil))
    }

    /// Everything that is left, each value read by `read`.
    pub(in crate::store) fn rest<T>(
        mut self, mut read: impl FnMut(&mut Self) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let mut values = Vec::new();
        while !self.is_done() {
            values.push(read(&mut self)?);
        }
        Ok(values)
    }

    /// What an operation gives that gives nothing but that it was carried out.
    pub(in crate::store) fn done(mut self, code: &str) -> Result<(), StoreError> {
        if code == "OK" { Ok(()) } else { Err(self.refusal(code)) }
    }

    /// The refusal this code stands for, its details read from the reply.
    pub(in crate::store) fn refusal(&mut self, code: &str) -> StoreError {
        self.read_refusal(code).map_or_else(|error| error, StoreError::Refused)
    }

    fn read_refusal(&mut self, code: &str) -> Result<Refusal, StoreError> {
        Ok(match code {
            "STALE" => Refusal::Stale,
            "STALEBATON" => Refusal::StaleBaton { source_name: self.parsed()? },
            "GAP" => Refusal::Gap { cursor: self.text()?, batch_no: self.parsed()? },
            "FULL" => Refusal::Full { queue: self.parsed()?, bytes: self.parsed()? },
            "IDS" => Refusal::IdsUsedUp { queue: self.parsed()? },
            "ENDED" => Refusal::Ended { source_name: self.parsed()? },
            "BATON" => Refusal::BatonHeld { source_name: self.parsed()?, holder: self.parsed()? },
            "NOTOFFERED" => Refusal::NotOffered { source_name: self.parsed()? },
            "DEFINITION" => Refusal::Definition { source_name: self.parsed()? },
            "REDEFINED" => Refusal::DefinitionInUse { source_name: self.parsed()?, session: self.parsed()? },
            "OFFERED" => Refusal::Offered { source_name: self.parsed()?, session: self.parsed()? },
            "NEWER" => Refusal::NewerFormat { found: self.parsed()?, known: self.parsed()? },
            "OLDER" => Refusal::OlderFormat { found: self.parsed()?, known: self.parsed()? },
            "SPENT" => Refusal::Spent { claim_no: self.parsed()? },
            "TURN" => Refusal::OutOfTurn { last: self.parsed()? },
            "BOOKMARK" => {
                let place = wire::parse_place(&self.text()?)?;
                Refusal::Bookmark { lines: place.lines, digest: place.digest }
            }
            "DRAINBUSY" => Refusal::RemovalBusy { holder: self.parsed()? },
            "NOTDRAINER" => Refusal::NotRemover,
            "QUEUEINUSE" => Refusal::QueueInUse { queue: self.parsed()?, session: self.parsed()? },
            "QUEUENOTEMPTY" => Refusal::QueueNotEmpty { queue: self.parsed()?, messages: self.parsed()? },
            "NODES" => Refusal::NodesAlive { nodes: self.parsed()? },
            "DESTROYING" => Refusal::Destroying,
            "NOCALL" => Refusal::NoCall,
            "OTHERCALL" => Refusal::OtherCall,
            "NOTHELD" => Refusal::NotHeld,
            "KEYSFULL" => Refusal::EmitKeysFull,
            "GONE" => Refusal::EventsGone { first: self.parsed()? },
            "HELD" => Refusal::Held { ms: self.parsed()? },
            _ => return Err(StoreError::Damaged(format!("a script answered {code:?}"))),
        })
    }
}

/// Reads a value written as text.
pub(in crate::store) fn parsed<T: FromStr>(text: &str) -> Result<T, StoreError> {
    let show = || StoreError::Damaged(format!("unreadable value {:?}", text.chars().take(80).collect::<String>()));
    text.parse().map_err(|_| show())
}
