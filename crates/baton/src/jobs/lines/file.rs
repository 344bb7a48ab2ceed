//! A file opened behind the lines already read from it.

use std::{io::SeekFrom, path::Path};

use tokio::{
    fs::File,
    io::{AsyncReadExt as _, AsyncSeekExt as _},
};

use super::cutter::Place;
use crate::SourceError;

/// A file and what it is called.
#[derive(Debug)]
pub(super) struct NamedFile {
    pub(super) name: String,
    pub(super) file: File,
}

/// Opens the file behind `place`, if it can be the file that `place` is of.
pub(super) async fn open(path: &Path, place: Place) -> Result<NamedFile, SourceError> {
    let name = path.display().to_string();
    let unreadable = |error| SourceError::new(format_args!("cannot read {name}: {error}"));
    // Looked at before it is opened: opening a pipe waits for its writer.
    let about = tokio::fs::metadata(path).await.map_err(unreadable)?;
    if !about.is_file() {
        return Err(SourceError::new(format_args!(
            "{name} is not a regular file, so its lines cannot be read again after a failover"
        )));
    }
    let changed = |what: &str| {
        SourceError::new(format_args!(
            "{name} {what}: it is not the file of which {} lines were read; put that one back, or rewind the source",
            place.lines
        ))
    };
    if place.offset > about.len() {
        return Err(changed("has become shorter"));
    }
    let mut file = File::open(path).await.map_err(unreadable)?;
    if let Some(before) = place.offset.checked_sub(1) {
        file.seek(SeekFrom::Start(before)).await.map_err(unreadable)?;
        let end = file.read_u8().await.map_err(unreadable)?;
        // The last line may have no line end, but then nothing follows.
        if end != b'\n' && place.offset < about.len() {
            return Err(changed("has other lines"));
        }
    }
    Ok(NamedFile { name, file })
}
