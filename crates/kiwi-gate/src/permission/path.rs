//! Paths as the kernel understands them: absolute, without links, also where the end is not there yet.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use super::glob;

/// As many links as the kernel follows.
const MOST_LINKS: usize = 40;

/// One place in the file system, under the name it was given and under its real one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// Absolute, and without `.` and `..` by the spelling alone.
    pub lexical: String,
    /// What the kernel would open.
    pub real: PathBuf,
    /// Whether a folder is there.
    pub is_folder: bool,
}

impl Place {
    /// Finds the place that `path` names, seen from `base`.
    pub fn find(path: &str, base: &Path) -> Result<Self, String> {
        let absolute = base.join(path);
        let lexical = lexical(&absolute).to_str().map(str::to_owned);
        let real = resolve(&absolute)?;
        let is_text = real.to_str().is_some();
        match lexical.filter(|_| is_text) {
            Some(lexical) => Ok(Self { lexical, is_folder: real.is_dir(), real }),
            None => Err(format!("`{}` is not Unicode", real.display())),
        }
    }

    /// The real name as text.
    pub fn real(&self) -> &str {
        // `find` lets nothing through that is none.
        self.real.to_str().unwrap_or("/")
    }
}

/// Goes the way the kernel would go, one part at a time: a link is replaced by where it leads before anything behind it
/// is looked at, so that `..` leaves the folder the link leads to. Parts that are not there stay as they are.
pub(crate) fn resolve(path: &Path) -> Result<PathBuf, String> {
    let mut real = PathBuf::from("/");
    let mut ahead: VecDeque<OsString> = parts(path).collect();
    let mut links = 0;
    while let Some(part) = ahead.pop_front() {
        if part == ".." {
            real.pop();
            continue;
        }
        let next = real.join(&part);
        match std::fs::read_link(&next) {
            Ok(target) => {
                links += 1;
                if links > MOST_LINKS {
                    return Err(format!("`{}` goes through too many symbolic links", path.display()));
                }
                if target.is_absolute() {
                    real = PathBuf::from("/");
                }
                for part in parts(&target).collect::<Vec<_>>().into_iter().rev() {
                    ahead.push_front(part);
                }
            }
            // Not a link, or not there, or not for us to see: then nobody who acts for us gets further either.
            Err(_) => real = next,
        }
    }
    Ok(real)
}

fn parts(path: &Path) -> impl Iterator<Item = OsString> {
    path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    })
}

fn lexical(path: &Path) -> PathBuf {
    let mut out = PathBuf::from("/");
    for part in parts(path) {
        if part == ".." {
            out.pop();
        } else {
            out.push(part);
        }
    }
    out
}

/// A written glob in two halves: the part before the first wildcard, plain, and the rest as it stands.
pub(crate) fn split(pattern: &str) -> (String, Option<String>) {
    let parts: Vec<&str> = pattern.split('/').collect();
    let wild = parts.iter().position(|part| glob::plain(part).is_none()).unwrap_or(parts.len());
    let (base, rest) = parts.split_at(wild);
    let base: Vec<String> = base.iter().filter_map(|part| glob::plain(part)).collect();
    let base = if base == [""] && wild < parts.len() { "/".to_owned() } else { base.join("/") };
    (base, (!rest.is_empty()).then(|| rest.join("/")))
}

/// A glob of the layer's owner, made absolute: relative ones are rooted. Links are not followed here, since whoever
/// could put one in its way could otherwise stretch it; only the root itself is named as the kernel names it.
pub(crate) fn rooted(pattern: &str, root: &Path) -> Result<String, String> {
    let real = resolve(root)?;
    let text = |path: &Path| path.to_str().map(glob::escape).ok_or("the project's path is not Unicode");
    let (given, real) = (text(&lexical(root))?, text(&real)?);
    let below_root = |rest: &str| format!("{}/{rest}", real.trim_end_matches('/'));
    let inside = pattern.strip_prefix(given.as_str()).filter(|rest| rest.is_empty() || rest.starts_with('/'));
    let absolute = match inside {
        Some(rest) => below_root(rest),
        None if pattern.starts_with('/') => pattern.to_owned(),
        None => below_root(pattern),
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in absolute.split('/').filter(|part| !part.is_empty() && *part != ".") {
        if part != ".." {
            parts.push(part);
        } else if parts.pop().is_some_and(|last| glob::plain(last).is_none()) {
            return Err("goes up with `..` from a wildcard".into());
        }
    }
    Ok(format!("/{}", parts.join("/")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_path_is_what_the_kernel_would_open() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("src/deep")).unwrap();
        std::fs::create_dir_all(root.join("elsewhere/inner")).unwrap();
        symlink("../elsewhere/inner", root.join("src/link")).unwrap();
        symlink(root.join("elsewhere"), root.join("away")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        for (path, real, lexical) in [
            ("src/../secret", "secret", "secret"),
            ("./src//deep/", "src/deep", "src/deep"),
            ("src/link/x", "elsewhere/inner/x", "src/link/x"),
            // By spelling it is `src`; the kernel leaves the folder behind the link.
            ("src/link/..", "elsewhere", "src"),
            ("away/new/file", "elsewhere/new/file", "away/new/file"),
            ("missing/../src", "src", "src"),
        ] {
            let place = Place::find(path, &root).unwrap();
            assert_eq!(place.real, root.join(real), "{path}");
            assert_eq!(Path::new(&place.lexical), root.join(lexical), "{path}");
        }
        assert!(Place::find("src", &root).unwrap().is_folder);
        assert!(!Place::find("src/none", &root).unwrap().is_folder);
        assert!(Place::find("loop/x", &root).is_err());
        assert_eq!(Place::find("/../../etc", &root).unwrap().real, Path::new("/etc"));
    }

    #[test]
    fn globs_are_rooted_at_the_real_project() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("p[1]");
        std::fs::create_dir(&root).unwrap();
        let link = root.with_file_name("link");
        symlink(&root, &link).unwrap();
        let escaped = root.to_str().unwrap().replace('[', "\\[");
        for (pattern, below) in [("src/**", "/src/**"), ("./a//b/", "/a/b"), ("**", "/**"), ("a/../b", "/b")]
        {
            assert_eq!(rooted(pattern, &link).unwrap(), format!("{escaped}{below}"), "{pattern}");
        }
        assert_eq!(rooted(&format!("{}/x/*", link.display()), &link).unwrap(), format!("{escaped}/x/*"));
        assert_eq!(rooted("/var/**", &link).unwrap(), "/var/**");
        assert_eq!(rooted("../other", &link).unwrap(), root.with_file_name("other").to_str().unwrap());
        assert!(rooted("*/../x", &link).is_err());
    }

    #[test]
    fn a_pattern_is_split_before_its_first_wildcard() {
        for (pattern, base, rest) in [
            ("a/b", "a/b", None),
            ("a/*/b", "a", Some("*/b")),
            ("/**", "/", Some("**")),
            ("**", "", Some("**")),
            ("a\\*/b", "a*/b", None),
            ("/a/b[0]/c", "/a", Some("b[0]/c")),
        ] {
            assert_eq!(split(pattern), (base.to_owned(), rest.map(str::to_owned)), "{pattern}");
        }
    }
}
