//! Which paths running processes know about.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// What every process that can be seen was given and holds open: arguments, environment, working folder, files.
pub struct Mentions(Vec<Vec<u8>>);

impl Mentions {
    /// As it is now.
    pub fn now() -> Self {
        let mut texts = Vec::new();
        for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
            if !process.file_name().as_bytes().first().is_some_and(u8::is_ascii_digit) {
                continue;
            }
            let process = process.path();
            texts.extend(["cmdline", "environ"].iter().filter_map(|file| fs::read(process.join(file)).ok()));
            let files = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
            let links = files.map(|file| file.path()).chain([process.join("cwd"), process.join("exe")]);
            texts.extend(
                links
                    .filter_map(|link| fs::read_link(link).ok())
                    .map(|it| it.as_os_str().as_bytes().to_vec()),
            );
        }
        Self(texts)
    }

    /// Whether any of them mentions this path or something below it.
    pub fn contain(&self, path: &Path) -> bool {
        let path = path.as_os_str().as_bytes();
        self.0.iter().any(|text| text.windows(path.len()).any(|part| part == path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_file_is_mentioned_and_a_closed_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let file = fs::File::create(&path).unwrap();
        assert!(Mentions::now().contain(&path));
        assert!(Mentions::now().contain(folder.path()));
        drop(file);
        assert!(!Mentions::now().contain(&path));
    }
}
