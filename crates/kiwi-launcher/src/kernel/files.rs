//! Whole files and folders.

use alloc::borrow::ToOwned;
use alloc::ffi::CString;
use alloc::vec::Vec;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags};
use rustix::io::{Errno, Result};
use rustix::path::Arg;

/// So much is read at once.
const AT_ONCE: usize = 4096;

/// A text as the kernel takes it: it cannot hold a NUL.
pub fn text(bytes: impl Into<Vec<u8>>) -> Result<CString> {
    CString::new(bytes).map_err(|_| Errno::INVAL)
}

/// One path behind the other.
pub fn join(folder: &[u8], name: impl AsRef<[u8]>) -> Vec<u8> {
    let mut path = folder.to_vec();
    if !path.ends_with(b"/") {
        path.push(b'/');
    }
    path.extend_from_slice(name.as_ref());
    path
}

/// The folder around this place, unless it is the root.
pub fn parent(path: &[u8]) -> Option<&[u8]> {
    let path = path.strip_suffix(b"/").unwrap_or(path);
    let slash = path.iter().rposition(|byte| *byte == b'/')?;
    match path.get(..slash)? {
        [] if path.len() > 1 => Some(b"/"),
        [] => None,
        folder => Some(folder),
    }
}

/// Whether a path is this folder or lies in it.
pub fn is_within(path: &[u8], folder: &[u8]) -> bool {
    let folder = folder.strip_suffix(b"/").unwrap_or(folder);
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}

pub fn exists(path: impl Arg) -> bool {
    rustix::fs::statat(CWD, path, AtFlags::empty()).is_ok()
}

/// Everything in a file.
pub fn read(path: impl Arg) -> Result<Vec<u8>> {
    let file = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut bytes = Vec::new();
    loop {
        let filled = bytes.len();
        bytes.resize(filled + AT_ONCE, 0);
        let room = bytes.get_mut(filled..).unwrap_or_default();
        match rustix::io::read(&file, room) {
            Ok(count) => bytes.truncate(filled + count),
            Err(Errno::INTR) => {
                bytes.truncate(filled);
                continue;
            }
            Err(errno) => return Err(errno),
        }
        if bytes.len() == filled {
            return Ok(bytes);
        }
    }
}

/// A file that is there, to be written to.
pub fn open_to_write(path: impl Arg) -> Result<OwnedFd> {
    rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())
}

/// Writes all of it.
pub fn write(file: impl AsFd, mut bytes: &[u8]) -> Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(&file, bytes) {
            Ok(0) => return Err(Errno::IO),
            Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// A folder, and those around it that are missing.
pub fn make_folders(path: &[u8]) -> Result<()> {
    match rustix::fs::mkdir(path, Mode::from_raw_mode(0o777)) {
        Err(Errno::NOENT) => {
            make_folders(parent(path).ok_or(Errno::NOENT)?)?;
            rustix::fs::mkdir(path, Mode::from_raw_mode(0o777))
        }
        Err(Errno::EXIST) if rustix::fs::stat(path).is_ok_and(|it| is_folder(it.st_mode)) => Ok(()),
        other => other,
    }
}

fn is_folder(mode: u32) -> bool {
    FileType::from_raw_mode(mode).is_dir()
}

/// What lies in a folder, by name.
pub fn names(folder: impl AsFd) -> Result<Vec<CString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let name = entry?.file_name().to_owned();
        if name.as_bytes() != b"." && name.as_bytes() != b".." {
            names.push(name);
        }
    }
    Ok(names)
}

/// What lies in the folder of this name; nothing if there is none.
pub fn names_in(path: impl Arg) -> Vec<CString> {
    open_folder(CWD, path).and_then(names).unwrap_or_default()
}

fn open_folder(around: impl AsFd, path: impl Arg) -> Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(around, path, flags, Mode::empty())
}

/// Removes a folder and everything in it, whatever was done to its permissions, and follows no link. There is nobody to
/// complain to about what stays.
pub fn remove_tree(path: impl Arg + Copy) {
    remove_tree_in(CWD, path);
}

/// The same for one that lies in a folder that is open.
pub fn remove_tree_in(around: impl AsFd, path: impl Arg + Copy) {
    let around = around.as_fd();
    // Depth first, and without a call for every level: a tool decides how deep its folders are.
    let mut levels: Vec<Level> = Level::open(around, path, None).into_iter().collect();
    while let Some(level) = levels.last_mut() {
        let Some(name) = level.left.pop() else {
            let emptied = levels.pop().and_then(|level| level.name);
            if let (Some(name), Some(around)) = (emptied, levels.last()) {
                let _ = rustix::fs::unlinkat(&around.folder, &name, AtFlags::REMOVEDIR);
            }
            continue;
        };
        let remove = |flags| rustix::fs::unlinkat(&level.folder, &name, flags).is_ok();
        if remove(AtFlags::empty()) || remove(AtFlags::REMOVEDIR) {
            continue;
        }
        let below = Level::open(&level.folder, name.as_c_str(), Some(name.clone()));
        levels.extend(below);
    }
    let _ = rustix::fs::unlinkat(around, path, AtFlags::REMOVEDIR);
}

/// A folder that is being emptied.
struct Level {
    folder: OwnedFd,
    /// What it is called in the one around it, if that is being emptied too.
    name: Option<CString>,
    /// What is still to be removed.
    left: Vec<CString>,
}

impl Level {
    fn open(around: impl AsFd, path: impl Arg + Copy, name: Option<CString>) -> Option<Self> {
        let folder = unlocked(around, path)?;
        let left = names(&folder).ok()?;
        Some(Self { folder, name, left })
    }
}

/// A folder in which entries can be removed.
fn unlocked(around: impl AsFd, path: impl Arg + Copy) -> Option<OwnedFd> {
    let around = around.as_fd();
    let whole = Mode::from_raw_mode(0o700);
    let open = || open_folder(around, path);
    let folder = match open() {
        Err(Errno::ACCESS) => {
            let there = rustix::fs::statat(around, path, AtFlags::SYMLINK_NOFOLLOW).ok()?;
            // Of a link its target would be meant.
            is_folder(there.st_mode)
                .then(|| rustix::fs::chmodat(around, path, whole, AtFlags::empty()))?
                .ok()?;
            open().ok()?
        }
        other => other.ok()?,
    };
    let _ = rustix::fs::fchmod(&folder, whole);
    Some(folder)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::fs;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn paths_are_taken_apart_as_by_anybody() {
        let around =
            |path: &str| parent(path.as_bytes()).map(|it| std::str::from_utf8(it).unwrap().to_owned());
        for path in ["/a/b/c", "/a", "/", "/a/b/", "a/b"] {
            let expected = std::path::Path::new(path).parent().map(|it| it.to_str().unwrap().to_owned());
            assert_eq!(around(path), expected, "{path}");
        }
        for (path, folder) in
            [("/a/b", "/a"), ("/ab", "/a"), ("/a", "/a"), ("/a", "/"), ("/a", "/a/b"), ("/", "/")]
        {
            let expected = std::path::Path::new(path).starts_with(folder);
            assert_eq!(is_within(path.as_bytes(), folder.as_bytes()), expected, "{path} {folder}");
        }
    }

    #[test]
    fn a_tree_goes_away_even_when_it_was_locked_and_links_are_not_followed() {
        let root = tempfile::tempdir().unwrap();
        let kept = root.path().join("kept");
        fs::create_dir(&kept).unwrap();
        fs::write(kept.join("file"), "").unwrap();
        let tree = root.path().join("tree");
        let mut deep = tree.join("a/b");
        for _ in 0..60 {
            deep.push("deeper");
        }
        fs::create_dir_all(&deep).unwrap();
        for file in [tree.join("a/b/c"), tree.join("a/d"), deep.join("e")] {
            fs::write(file, "").unwrap();
        }
        symlink(&kept, tree.join("a/out")).unwrap();
        for locked in ["a/b/deeper", "a/b", "a", ""] {
            fs::set_permissions(tree.join(locked), fs::Permissions::from_mode(0o000)).unwrap();
        }
        remove_tree(tree.as_os_str().as_bytes());
        assert!(!tree.exists() && kept.join("file").exists());
    }

    #[test]
    fn missing_folders_are_made() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("a/b/c");
        for _ in 0..2 {
            make_folders(path.as_os_str().as_bytes()).unwrap();
            assert!(path.is_dir());
        }
        fs::write(path.join("file"), "text").unwrap();
        assert!(make_folders(path.join("file").as_os_str().as_bytes()).is_err());
        assert_eq!(read(path.join("file").as_os_str().as_bytes()).unwrap(), b"text");
    }
}
