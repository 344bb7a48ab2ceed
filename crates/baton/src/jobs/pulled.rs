//! What a stream gave, for the tests of sources.

use crate::{Batch, Flow, Source, SourceError, Stream};

/// One pull.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Pulled {
    pub(super) flow: Flow,
    pub(super) bodies: Vec<String>,
    pub(super) cursor: Option<String>,
}

impl Pulled {
    pub(super) fn more(bodies: &[&str], cursor: &str) -> Self {
        let bodies = bodies.iter().map(ToString::to_string).collect();
        Self { flow: Flow::More, bodies, cursor: Some(cursor.to_owned()) }
    }

    pub(super) fn end() -> Self {
        Self { flow: Flow::End, bodies: Vec::new(), cursor: None }
    }
}

/// Pulls once, and checks what every source promises of a pull.
pub(super) async fn pull(stream: &mut dyn Stream) -> Result<Pulled, SourceError> {
    let mut batch = Batch::default();
    let flow = stream.pull(&mut batch).await?;
    let (bodies, cursor) = contents(&batch);
    assert!(flow == Flow::End || !bodies.is_empty(), "a pull that goes on gives at least one message");
    assert_eq!(bodies.is_empty(), cursor.is_none(), "messages come with the cursor behind them");
    for body in &bodies {
        serde_json::from_str::<serde::de::IgnoredAny>(body).unwrap();
    }
    Ok(Pulled { flow, bodies, cursor })
}

/// All bodies behind `cursor`.
pub(super) async fn rest(source: &dyn Source, cursor: &str) -> Result<Vec<String>, SourceError> {
    let mut stream = source.open(cursor).await?;
    let mut bodies = Vec::new();
    loop {
        let pulled = pull(&mut *stream).await?;
        bodies.extend(pulled.bodies);
        if pulled.flow == Flow::End {
            return Ok(bodies);
        }
    }
}

/// The bodies and the cursor of a batch, read from its debug text: only the fleet may take a batch apart.
fn contents(batch: &Batch) -> (Vec<String>, Option<String>) {
    let text = format!("{batch:?}");
    let ends: Vec<usize> =
        numbers(&text, "ends: [").chunks(4).map(|end| u32::from_le_bytes(end.try_into().unwrap()) as usize).collect();
    let data = numbers(&text, "data: [");
    let starts = std::iter::once(0).chain(ends.iter().copied());
    let bodies = starts.zip(&ends).map(|(from, to)| String::from_utf8(data[from..*to].to_vec()).unwrap()).collect();
    let cursor = text.split("cursor: Some(\"").nth(1).map(|rest| rest.split('"').next().unwrap().to_owned());
    (bodies, cursor)
}

fn numbers(text: &str, after: &str) -> Vec<u8> {
    let list = text.split(after).nth(1).unwrap().split(']').next().unwrap();
    list.split(", ").filter(|number| !number.is_empty()).map(|number| number.parse().unwrap()).collect()
}
