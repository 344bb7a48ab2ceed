//! The default name of a source of lines.

use std::path::Path;

use super::Lines;
use crate::message::{Digest, Name};

/// Characters of the file's name that are part of the source's name.
const FILE_NAME: usize = 49;

impl Lines {
    /// A name for the source of a file, from its canonical path and the queue it feeds. Files of one name in two folders are
    /// two sources, and one file is one wherever it is named from; two queues get all lines each. It is a good [`Name`]
    /// whatever the path.
    #[must_use]
    pub fn name_for(path: &Path, queue: &Name) -> String {
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | ':' | '-');
        let file: String = file.chars().take(FILE_NAME).map(|c| if fits(c) { c } else { '_' }).collect();
        let hash = Digest::of(path.as_os_str().as_encoded_bytes()).then(queue.as_str().as_bytes()).to_string();
        format!("lines:{file}:{}", hash.get(..8).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_path_makes_a_name_of_its_own() {
        let queue = |name: &str| Name::new(name).unwrap();
        let name_in = |path: &str, fed: &str| Lines::name_for(Path::new(path), &queue(fed));
        let name = |path: &str| queue(&name_in(path, "messages")).to_string();
        assert!(name("/a/urls.txt").starts_with("lines:urls.txt:"));
        assert_eq!(name("/a/urls.txt").len(), "lines:urls.txt:".len() + 8);
        assert_ne!(name("/a/urls.txt"), name("/b/urls.txt"));
        assert_ne!(name("/a/urls.txt"), name_in("/a/urls.txt", "other"));
        assert!(name("/a/größe \n{}").starts_with("lines:gr__e____:"), "{}", name("/a/größe \n{}"));
        assert_eq!(name(&format!("/{}", "x".repeat(200))).len(), 64);
        assert_eq!(name("/").len(), "lines::".len() + 8);
    }
}
