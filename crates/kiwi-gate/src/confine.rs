//! From what a chain declares to what a sandbox opens: patterns become files and folders that are there.

use kiwi_chain::Needs;
use kiwi_model::{ErrorKind, Fault, Piece, Text};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// More matches than this are a mistake in the pattern.
const MOST_MATCHES: usize = 1000;

/// The files and folders that are declared, without symbolic links on the way.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Opened {
    pub read: Vec<PathBuf>,
    pub write: Vec<PathBuf>,
}

/// Finds what is declared. A file or folder that is to be written and is not there yet is made: inside a sandbox there
/// is nothing it could be made in.
pub(crate) fn open(needs: &Needs, project: &Path) -> Result<Opened, Fault> {
    let mut opened = Opened::default();
    for text in &needs.read {
        opened.read.extend(matches(&Pattern::of(text, project)?)?);
    }
    for text in &needs.write {
        let pattern = Pattern::of(text, project)?;
        pattern.make()?;
        opened.write.extend(matches(&pattern)?);
    }
    Ok(opened)
}

/// A declared path: a base without wildcards, and what must match below it.
struct Pattern {
    shown: String,
    base: PathBuf,
    /// Each a name or a wildcard; empty for the base itself.
    rest: Vec<String>,
}

impl Pattern {
    fn of(text: &Text, project: &Path) -> Result<Self, Fault> {
        let shown = text.to_string();
        let path = text.resolve(|piece| match piece {
            Piece::Project => Ok(project.to_string_lossy().into_owned()),
            _ => Err(refused(&shown, "names a file of the tool, which it can read anyway")),
        })?;
        let mut base = PathBuf::from(if path.starts_with('/') { Path::new("/") } else { project });
        let mut parts = path.split('/').filter(|part| !part.is_empty() && *part != ".").peekable();
        while let Some(part) = parts.next_if(|part| !part.contains(['*', '?', '['])) {
            if part == ".." {
                return Err(refused(&shown, "goes up with `..`"));
            }
            base.push(part);
        }
        let rest: Vec<String> = parts.map(str::to_owned).collect();
        if rest.iter().any(|part| part == "..") {
            return Err(refused(&shown, "goes up with `..`"));
        }
        Ok(Self { shown, base, rest })
    }

    fn is_folder(&self) -> bool {
        !self.rest.is_empty()
    }

    /// Makes what will be written: the folder of a pattern, or the file itself.
    fn make(&self) -> Result<(), Fault> {
        let made = if self.is_folder() {
            fs_err::create_dir_all(&self.base)
        } else if self.base.exists() {
            Ok(())
        } else {
            let parent = self.base.parent().unwrap_or(&self.base);
            fs_err::create_dir_all(parent).and_then(|()| fs_err::File::create_new(&self.base).map(|_| ()))
        };
        made.map_err(|error| refused(&self.shown, &format!("cannot be made: {error}")))
    }
}

/// What a pattern matches now. A folder that is meant whole is one match.
fn matches(pattern: &Pattern) -> Result<Vec<PathBuf>, Fault> {
    let mut found = BTreeSet::new();
    let Ok(base) = pattern.base.canonicalize() else { return Ok(Vec::new()) };
    descend(&base, &pattern.rest, &mut found);
    if found.len() > MOST_MATCHES {
        return Err(refused(&pattern.shown, &format!("matches more than {MOST_MATCHES} paths")));
    }
    Ok(found.into_iter().collect())
}

fn descend(folder: &Path, rest: &[String], found: &mut BTreeSet<PathBuf>) {
    match rest.split_first() {
        None => {
            found.insert(folder.to_path_buf());
        }
        // Everything below: the folder itself says so.
        Some((part, [])) if part == "**" => {
            found.insert(folder.to_path_buf());
        }
        Some((part, below)) => {
            let any_depth = part == "**";
            let wildcard = if any_depth { None } else { wildcard(part) };
            if any_depth {
                descend(folder, below, found);
            }
            for entry in fs_err::read_dir(folder).into_iter().flatten().flatten() {
                let name = entry.file_name();
                // A link could lead anywhere; what it leads to must be declared itself.
                let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
                if is_link || found.len() > MOST_MATCHES {
                    continue;
                }
                if any_depth && entry.path().is_dir() {
                    descend(&entry.path(), rest, found);
                } else if wildcard.as_ref().is_some_and(|wildcard| wildcard.is_match(&name)) {
                    descend(&entry.path(), below, found);
                }
            }
        }
    }
}

/// One part of a pattern: `*` for any characters, `?` for one. What is none matches nothing.
fn wildcard(part: &str) -> Option<globset::GlobMatcher> {
    Some(globset::Glob::new(part).ok()?.compile_matcher())
}

fn refused(shown: &str, why: &str) -> Fault {
    Fault::new(ErrorKind::InvalidManifest, format!("the declared path `{shown}` {why}"))
        .with_hint("`permissions` lists paths like `data/in.csv`, `src/**` or `{path}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs(read: &[&str], write: &[&str]) -> Needs {
        let texts = |paths: &[&str]| paths.iter().map(|path| Text::literal(*path)).collect();
        Needs { read: texts(read), write: texts(write), ..Needs::default() }
    }

    #[test]
    fn patterns_become_what_is_there() {
        let folder = tempfile::tempdir().expect("folder");
        let root = folder.path().canonicalize().expect("root");
        for path in ["src/a.rs", "src/deep/b.rs", "data/1.csv", "data/2.csv", "data/x.txt", ".ai/secret"] {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().expect("parent")).expect("folder");
            std::fs::write(path, "").expect("file");
        }
        std::os::unix::fs::symlink("/etc", root.join("data/etc")).expect("link");
        let shown = |needs: Needs| -> (Vec<String>, Vec<String>) {
            let opened = open(&needs, &root).expect("opened");
            let tell = |paths: Vec<PathBuf>| {
                let below = |path: PathBuf| path.strip_prefix(&root).map(|it| it.display().to_string());
                paths
                    .into_iter()
                    .map(|path| below(path.clone()).unwrap_or_else(|_| path.display().to_string()))
                    .collect()
            };
            (tell(opened.read), tell(opened.write))
        };
        assert_eq!(shown(needs(&["src/**"], &[])).0, ["src"]);
        assert_eq!(shown(needs(&["data/*.csv"], &[])).0, ["data/1.csv", "data/2.csv"]);
        assert_eq!(shown(needs(&["**/b.rs"], &[])).0, ["src/deep/b.rs"]);
        assert_eq!(shown(needs(&["data/*"], &[])).0, ["data/1.csv", "data/2.csv", "data/x.txt"]);
        assert_eq!(shown(needs(&["nothing/here", "/etc/hostname-nobody"], &[])).0, Vec::<String>::new());
        assert_eq!(shown(needs(&[], &["out/new/**", "made/file.txt"])).1, ["out/new", "made/file.txt"]);
        assert!(root.join("out/new").is_dir() && root.join("made/file.txt").is_file());
        for bad in ["../x", "src/../../x", "a/*/../b"] {
            assert!(open(&needs(&[bad], &[]), &root).is_err(), "{bad}");
        }
    }
}
