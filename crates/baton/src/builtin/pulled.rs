//! The results of a stream, for the tests of sources.

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
    let (parcel, cursor) = batch.take();
    let bodies = parcel.iter().flat_map(|parcel| parcel.bodies().collect::<Vec<_>>());
    let bodies: Vec<String> = bodies.map(|body| String::from_utf8(body.to_vec()).unwrap()).collect();
    assert!(flow == Flow::End || cursor.is_some(), "a pull that goes on gives messages, or moves the cursor");
    assert!(bodies.is_empty() || cursor.is_some(), "messages come with the cursor behind them");
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
