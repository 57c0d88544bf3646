//! What of a folder a context allows to be touched, as files and folders that are there.

use std::path::{Path, PathBuf};

use super::context::PermissionContext;
use super::kind::Kind;
use super::need::Need;

/// More separate places than this are no view to work in.
const MOST_PLACES: usize = 1000;
/// And more entries than this are not looked at to find them.
const MOST_LOOKED_AT: usize = 20_000;
/// Seen whole or not at all: what is in them belongs together, and there is much of it.
const WHOLE: [&str; 2] = [".ai", ".git"];

/// The largest folders, and the files beside them, that are allowed without exception. Links are left out: what they
/// lead to is either there by its own name or not allowed.
pub(crate) fn reach(context: &PermissionContext, kind: Kind, root: &Path) -> Result<Vec<PathBuf>, String> {
    let mut walk = Walk { context, kind, root, found: Vec::new(), looked_at: 0 };
    walk.at(root)?;
    Ok(walk.found)
}

struct Walk<'a> {
    context: &'a PermissionContext,
    kind: Kind,
    root: &'a Path,
    found: Vec<PathBuf>,
    looked_at: usize,
}

impl Walk<'_> {
    fn at(&mut self, path: &Path) -> Result<(), String> {
        self.looked_at += 1;
        // What is not Unicode cannot be judged, and is left out.
        let Some(text) = path.to_str() else { return Ok(()) };
        let need = Need::path(self.kind, text, Path::new("/"));
        if self.context.judge(std::slice::from_ref(&need)).is_empty() {
            self.found.push(path.to_owned());
        } else if path.is_dir() && !self.is_whole(path) && self.context.may_reach_into(self.kind, path) {
            // A folder that cannot be read shows nothing.
            let mut entries: Vec<_> = std::fs::read_dir(path).into_iter().flatten().flatten().collect();
            entries.sort_by_key(std::fs::DirEntry::file_name);
            for entry in entries {
                let is_plain = entry.file_type().is_ok_and(|kind| kind.is_dir() || kind.is_file());
                if is_plain {
                    self.at(&entry.path())?;
                }
                if self.found.len() > MOST_PLACES || self.looked_at > MOST_LOOKED_AT {
                    let kind = self.kind.as_str();
                    return Err(format!("what `{kind}` allows of the project are too many separate files"));
                }
            }
        }
        Ok(())
    }

    fn is_whole(&self, path: &Path) -> bool {
        WHOLE.iter().any(|name| *path == self.root.join(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::permission::{Layer, Protected};
    use kiwi_model::Permissions;

    #[test]
    fn what_is_allowed_is_found_in_the_largest_parts() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for path in
            ["src/a.rs", "src/deep/b.rs", "src/deep/c.txt", "secret/x", "top", ".ai/rules/r", ".git/config"]
        {
            std::fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            std::fs::write(root.join(path), "").unwrap();
        }
        std::os::unix::fs::symlink("secret", root.join("src/link")).unwrap();
        let check = |read: &[&str], deny: &[&str], expected: &[&str]| {
            let texts = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
            let permissions =
                Permissions { filesystem_read: texts(read), deny: texts(deny), ..Default::default() };
            let context = PermissionContext::everything().and(Layer::new("x", &permissions, &root).unwrap());
            let found = reach(&context, Kind::FilesystemRead, &root).unwrap();
            let expected: Vec<PathBuf> = expected.iter().map(|path| root.join(path)).collect();
            assert_eq!(found, expected, "{read:?} without {deny:?}");
        };
        let all = root.to_str().unwrap().to_owned();
        check(&["**"], &[], &[&all]);
        check(&["/**"], &[], &[&all]);
        check(&[], &[], &[]);
        check(&["src/**"], &[], &["src"]);
        check(&["src/*"], &[], &["src/a.rs"]);
        check(&["**/*.rs"], &[], &["src/a.rs", "src/deep/b.rs"]);
        check(&["**"], &["filesystem_read:secret"], &[".ai", ".git", "src", "top"]);
        check(
            &["**"],
            &["filesystem_read:.ai/rules", "filesystem_read:src/deep/c.txt"],
            &[".git", "secret", "src/a.rs", "src/deep/b.rs", "top"],
        );
        // An agent writes beside what holds it.
        let permissions = Permissions { filesystem_write: vec!["**".into()], ..Default::default() };
        let context = PermissionContext::everything()
            .and(Layer::new("x", &permissions, &root).unwrap())
            .protecting(Protected::new(Some(&root), None));
        let found = reach(&context, Kind::FilesystemWrite, &root).unwrap();
        assert_eq!(found, ["secret", "src", "top"].map(|path| root.join(path)));
        assert_eq!(reach(&PermissionContext::everything(), Kind::FilesystemRead, &root).unwrap(), [root]);
    }
}
