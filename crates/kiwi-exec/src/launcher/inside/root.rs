//! The root file system of a sandbox, made of mounts: what is not put here does not exist inside.

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::mount::{MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags};
use std::fs;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::attributes::{self, NO_DEVICES, NO_OWNERS, READ_ONLY};
use crate::launcher::start::failed;
use crate::sandbox::{DEVICES, LINKS, Shown};
use crate::wire::{Report, Stage, Wall};

/// Where the host's files are while the root is being built.
const OLD: &str = "/.host";

/// So many bytes of a file are copied at once, at most.
const AT_ONCE: usize = 1 << 20;

/// A root that is being built: the host's is still there, below it.
pub struct Root {
    /// What is still to become read-only, once everything below it is in place.
    emptied: Vec<PathBuf>,
}

impl Root {
    /// One that shows this, moved into.
    pub fn build(view: &[Shown]) -> Result<Self, Report> {
        begin().map_err(failed(Stage::Wall(Wall::Root)))?;
        let mut root = Self { emptied: Vec::new() };
        for (number, shown) in view.iter().enumerate() {
            root.show(number, shown)?;
        }
        Ok(root)
    }

    /// Puts one thing of the view there, by its number in it.
    pub fn show(&mut self, number: usize, shown: &Shown) -> Result<(), Report> {
        show(shown, &mut self.emptied).map_err(failed(Stage::Wall(Wall::Shown(number))))
    }

    /// Lets go of the host, and closes what only had to be open until now. It waits until no processor can be looking at the
    /// host's files any more, so it comes last.
    pub fn finish(self) -> Result<(), Report> {
        finish(&self.emptied).map_err(failed(Stage::Wall(Wall::Root)))
    }
}

/// An empty root, with the host's below it.
fn begin() -> io::Result<()> {
    rustix::mount::mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    // Any folder will do: it is uncovered again as soon as the new root has moved away.
    let base = Path::new("/usr");
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    rustix::mount::mount("tmpfs", base, "tmpfs", flags, c"mode=0755")?;
    rustix::process::chdir(base)?;
    fs::create_dir(OLD.trim_start_matches('/'))?;
    rustix::process::pivot_root(".", OLD.trim_start_matches('/'))?;
    rustix::process::chdir("/")?;
    fs::create_dir("/proc")?;
    // The host's own must still be there: the kernel shows a new one only to whoever can see an old one.
    let flags = flags | MountFlags::NOEXEC | MountFlags::RDONLY;
    rustix::mount::mount("proc", "/proc", "proc", flags, None)?;
    fs::create_dir("/dev")?;
    for device in DEVICES {
        bind(Path::new(device), Path::new(device), NO_OWNERS)?;
    }
    LINKS.iter().try_for_each(|(at, to)| symlink(to, at))
}

/// Puts one thing there. What is still to become read-only, once everything below it is in place, is added to `emptied`.
fn show(shown: &Shown, emptied: &mut Vec<PathBuf>) -> io::Result<()> {
    let at = shown.at();
    match shown {
        Shown::Bind { from, .. } | Shown::Entries { from, .. } => {
            let reading = if shown.is_writable() { 0 } else { READ_ONLY };
            bind(from.as_path(), at, NO_OWNERS | NO_DEVICES | reading)
        }
        Shown::Private { .. } => private(at),
        // What lies on the root itself stays empty because the root becomes read-only.
        Shown::Empty { .. } => match fs::create_dir_all(at) {
            Ok(()) if is_on_root(at) => Ok(()),
            _ => {
                emptied.push(at.to_owned());
                private(at)
            }
        },
        Shown::Link { to, .. } => put(at, || symlink(to.as_path(), at)),
        // Made, never overwritten: nothing of the host's is meant.
        Shown::File { text, .. } => put(at, || fs::File::create_new(at))?.write_all(text.as_bytes()),
        Shown::Copy { from, .. } => {
            let source = find(from.as_path(), OFlags::RDONLY)?;
            let copy = put(at, || fs::File::create_new(at))?;
            while rustix::fs::sendfile(&copy, &source, None, AT_ONCE)? > 0 {}
            Ok(())
        }
    }
}

fn is_on_root(path: &Path) -> bool {
    let device = |path: &Path| rustix::fs::stat(path).map(|stat| stat.st_dev);
    device(path).is_ok_and(|own| device(Path::new("/")).is_ok_and(|root| root == own))
}

fn private(at: &Path) -> io::Result<()> {
    put(at, || folder(at))?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    Ok(rustix::mount::mount("tmpfs", at, "tmpfs", flags, c"mode=0755")?)
}

/// Something of the host. Any link on the way is an error: whoever could put one there could show anything.
fn find(from: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let below = from.strip_prefix("/").map_err(io::Error::other)?;
    let (path, flags) = (Path::new(OLD).join(below), flags | OFlags::CLOEXEC);
    Ok(rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?)
}

/// Shows something of the host, with everything mounted below it, all of it with these attributes from the first moment.
fn bind(from: &Path, at: &Path, attributes: u64) -> io::Result<()> {
    let source = find(from, OFlags::PATH)?;
    let is_folder = FileType::from_raw_mode(rustix::fs::fstat(&source)?.st_mode).is_dir();
    put(at, || if is_folder { folder(at) } else { file(at) })?;
    let copy = copy(&source)?;
    attributes::add(&copy, attributes)?;
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_SYMLINKS;
    Ok(rustix::mount::move_mount(&copy, "", CWD, at, flags)?)
}

/// A mount of the same, with everything mounted below it, that is nowhere yet.
fn copy(source: &OwnedFd) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_RECURSIVE;
    Ok(rustix::mount::open_tree(source, "", flags)?)
}

/// Makes something; the folders around it only where they turn out to be missing.
fn put<T>(at: &Path, make: impl Fn() -> io::Result<T>) -> io::Result<T> {
    match (make(), at.parent()) {
        (Err(error), Some(around)) if error.kind() == io::ErrorKind::NotFound => {
            fs::create_dir_all(around)?;
            make()
        }
        (done, _) => done,
    }
}

/// A folder to mount something on, unless there is one.
fn folder(at: &Path) -> io::Result<()> {
    there(rustix::fs::mkdir(at, Mode::from_raw_mode(0o777)))
}

/// A file to mount something on, unless there is one.
fn file(at: &Path) -> io::Result<()> {
    there(rustix::fs::mknodat(CWD, at, FileType::RegularFile, Mode::from_raw_mode(0o666), 0))
}

fn there(made: rustix::io::Result<()>) -> io::Result<()> {
    match made {
        // Where it is of the wrong kind, nothing can be mounted on it.
        Err(rustix::io::Errno::EXIST) => Ok(()),
        other => Ok(other?),
    }
}

fn finish(emptied: &[PathBuf]) -> io::Result<()> {
    rustix::mount::unmount(OLD, UnmountFlags::DETACH)?;
    fs::remove_dir(OLD)?;
    let flags = MountFlags::BIND | MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV;
    for at in emptied.iter().map(PathBuf::as_path).chain([Path::new("/")]) {
        rustix::mount::mount_remount(at, flags, c"")?;
    }
    Ok(())
}
