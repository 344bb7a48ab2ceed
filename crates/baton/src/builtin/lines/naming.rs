//! What a source of lines is called where nobody names it.

use std::path::Path;

use super::Lines;
use crate::message::Digest;

/// Characters of a file's name that the name of its source takes over.
const FILE_NAME: usize = 49;

impl Lines {
    /// A name for the source of a file, from its canonical path: files of one name in two folders are two sources, and
    /// one file is one wherever it is named from. It is a good [`Name`](crate::message::Name) whatever the path.
    #[must_use]
    pub fn name_for(path: &Path) -> String {
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | ':' | '-');
        let file: String = file.chars().take(FILE_NAME).map(|c| if fits(c) { c } else { '_' }).collect();
        let hash = Digest::of(path.as_os_str().as_encoded_bytes()).to_string();
        format!("lines:{file}:{}", hash.get(..8).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Name;

    #[test]
    fn any_path_makes_a_name_of_its_own() {
        let name = |path: &str| Name::new(&Lines::name_for(Path::new(path))).unwrap().to_string();
        assert!(name("/a/urls.txt").starts_with("lines:urls.txt:"));
        assert_eq!(name("/a/urls.txt").len(), "lines:urls.txt:".len() + 8);
        assert_ne!(name("/a/urls.txt"), name("/b/urls.txt"));
        assert!(name("/a/größe \n{}").starts_with("lines:gr__e____:"), "{}", name("/a/größe \n{}"));
        assert_eq!(name(&format!("/{}", "x".repeat(200))).len(), 64);
        assert_eq!(name("/").len(), "lines::".len() + 8);
    }
}
