//! What is wrong with a list of files before any byte of them is looked at. Both sides ask.

use std::collections::HashMap;
use unicode_normalization::UnicodeNormalization as _;

use super::{FileInfo, MOST_BLOB, MOST_BYTES, MOST_FILES};

/// File systems hold no longer names.
const LONGEST_NAME: usize = 255;
const LONGEST_PATH: usize = 1024;
/// The signature is made over the others, so it cannot be one of them.
const SIGNATURE: &str = "kiwi.sig";
/// Problems that are told; the rest is more of the same.
const MOST_TOLD: usize = 5;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// Too many.
    #[error("it has {0} files; a version may have {MOST_FILES}")]
    TooMany(usize),
    /// None.
    #[error("it has no files")]
    None,
    /// Together too large.
    #[error("its files have {0} bytes together; a version may have {MOST_BYTES}")]
    TooLarge(u64),
    /// One is too large.
    #[error("`{0}` has more than {MOST_BLOB} bytes")]
    LargeFile(String),
    /// A path that no package can have.
    #[error("`{0}` is no path inside a package")]
    Path(String),
    /// Two that some file systems cannot tell apart.
    #[error("`{0}` and `{1}` are one name where case or accents do not count")]
    Collision(String, String),
    /// A file where another one needs a folder.
    #[error("`{0}` is a file and a folder")]
    FileAndFolder(String),
}

/// Everything that is wrong with these files, as far as it is worth telling.
pub fn problems(files: &[FileInfo]) -> Vec<Problem> {
    if files.len() > MOST_FILES {
        return vec![Problem::TooMany(files.len())];
    }
    if files.is_empty() {
        return vec![Problem::None];
    }
    let mut found = Vec::new();
    let total = files.iter().fold(0_u64, |sum, file| sum.saturating_add(file.size));
    if total > MOST_BYTES {
        found.push(Problem::TooLarge(total));
    }
    // By how a careless file system would know them.
    let mut names: HashMap<String, &str> = HashMap::with_capacity(files.len());
    for file in files {
        let path = file.path.as_str();
        if !is_inside(path) {
            found.push(Problem::Path(path.chars().take(80).flat_map(char::escape_debug).collect()));
        } else if let Some(other) = names.insert(folded(path), path) {
            found.push(Problem::Collision(other.to_owned(), path.to_owned()));
        }
        if file.size > MOST_BLOB {
            found.push(Problem::LargeFile(path.chars().take(80).collect()));
        }
        if found.len() >= MOST_TOLD {
            return found;
        }
    }
    let mut folders: HashMap<String, &str> = HashMap::new();
    for file in files {
        let mut around = file.path.as_str();
        while let Some((folder, _)) = around.rsplit_once('/') {
            around = folder;
            let known = folded(folder);
            match folders.get(&known) {
                Some(other) if *other == folder => break,
                Some(other) => found.push(Problem::Collision((*other).to_owned(), folder.to_owned())),
                None => {
                    if names.contains_key(&known) {
                        found.push(Problem::FileAndFolder(folder.to_owned()));
                    }
                    folders.insert(known, folder);
                }
            }
            if found.len() >= MOST_TOLD {
                return found;
            }
        }
    }
    found
}

/// Whether a path stays where it is put, on every system, and shows what it is.
fn is_inside(path: &str) -> bool {
    let is_name = |name: &str| {
        !name.is_empty()
            && name != "."
            && name != ".."
            && name.len() <= LONGEST_NAME
            && !name.chars().any(|c| c.is_control() || c == '\\' || c == ':')
            && !name.ends_with(['.', ' '])
    };
    path.len() <= LONGEST_PATH && path != SIGNATURE && path.split('/').all(is_name)
}

fn folded(path: &str) -> String {
    path.nfkd()
        .filter(|c| !unicode_normalization::char::is_combining_mark(*c))
        .flat_map(char::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kiwi_model::Digest;

    fn check(paths: &[&str], expected: &[Problem]) {
        let file = |path: &&str| FileInfo {
            path: (*path).to_owned(),
            sha256: Digest::of(b""),
            is_executable: false,
            size: 1,
        };
        assert_eq!(problems(&paths.iter().map(file).collect::<Vec<_>>()), expected, "{paths:?}");
    }

    #[test]
    fn paths_that_leave_a_package_or_hide_are_refused() {
        check(&["tool.yaml", "lib/a.py", "lib/.hidden", "ä/ö.txt", "a b"], &[]);
        for bad in [
            "",
            "/etc/passwd",
            "../x",
            "a/../x",
            "a//b",
            "a/",
            "./a",
            "a/.",
            "a\\b",
            "c:x",
            "a\0b",
            "a\nb",
            "a.",
            "a ",
            "kiwi.sig",
            &"x/".repeat(600),
            &"n".repeat(256),
        ] {
            let shown = bad.chars().take(80).flat_map(char::escape_debug).collect();
            check(&[bad], &[Problem::Path(shown)]);
        }
    }

    #[test]
    fn names_that_are_one_elsewhere_are_refused() {
        let collision = |a: &str, b: &str| vec![Problem::Collision(a.into(), b.into())];
        check(&["a", "A"], &collision("a", "A"));
        check(&["a", "a"], &collision("a", "a"));
        check(&["caf\u{e9}", "cafe\u{301}"], &collision("caf\u{e9}", "cafe\u{301}"));
        check(&["Lib/a", "lib/b"], &collision("Lib", "lib"));
        check(&["a", "a/b"], &[Problem::FileAndFolder("a".into())]);
        check(&["x/y/z", "x/Y"], &[Problem::FileAndFolder("x/y".into())]);
        check(&["a/b", "a/c", "a/d/e"], &[]);
    }

    #[test]
    fn too_much_is_refused() {
        check(&[], &[Problem::None]);
        let file = |number: usize, size: u64| FileInfo {
            path: format!("f{number}"),
            sha256: Digest::of(b""),
            is_executable: false,
            size,
        };
        let many: Vec<FileInfo> = (0..=MOST_FILES).map(|number| file(number, 0)).collect();
        assert_eq!(problems(&many), [Problem::TooMany(MOST_FILES + 1)]);
        assert_eq!(problems(&many[1..]), []);
        assert_eq!(problems(&[file(1, u64::MAX), file(2, 5)])[0], Problem::TooLarge(u64::MAX));
        assert_eq!(problems(&[file(1, MOST_BLOB + 1)]), [Problem::LargeFile("f1".into())]);
    }
}
