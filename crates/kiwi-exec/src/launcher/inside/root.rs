//! The root file system of a sandbox, made of mounts: what is not put here does not exist inside.

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::mount::{MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags};
use std::fs;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::attributes::{self, NO_DEVICES, NO_OWNERS, READ_ONLY};
use crate::launcher::start::failed;
use crate::sandbox::{DEVICES, STREAMS, Shown};
use crate::wire::{Report, Stage, Wall};

/// Where the host's files are while the root is being built.
const OLD: &str = "/.host";

/// A root that is being built: the host's is still there, below it.
pub struct Root {
    /// What is still to become read-only, once everything below it is in place.
    emptied: Vec<PathBuf>,
}

impl Root {
    /// An empty root, moved into.
    pub fn begin() -> Result<Self, Report> {
        begin().map_err(failed(Stage::Wall(Wall::Root)))?;
        Ok(Self { emptied: Vec::new() })
    }

    /// Puts one thing of the view there, by its number in it.
    pub fn show(&mut self, number: usize, shown: &Shown) -> Result<(), Report> {
        show(shown, &mut self.emptied).map_err(failed(Stage::Wall(Wall::Shown(number))))
    }

    /// Lets go of the host, and closes what only had to be open until now.
    pub fn finish(self) -> Result<(), Report> {
        finish(&self.emptied).map_err(failed(Stage::Wall(Wall::Root)))
    }
}

/// Builds the root and moves into it.
pub fn build(view: &[Shown]) -> Result<(), Report> {
    let mut root = Root::begin()?;
    for (number, shown) in view.iter().enumerate() {
        root.show(number, shown)?;
    }
    root.finish()
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
    STREAMS.iter().try_for_each(|(at, to)| symlink(to, at))
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
        Shown::Link { to, .. } => make_parent(at).and_then(|()| symlink(to.as_path(), at)),
        Shown::File { text, .. } => make_parent(at).and_then(|()| fs::write(at, text)),
        Shown::Copy { from, .. } => {
            let mut bytes = Vec::new();
            fs::File::from(find(from.as_path(), OFlags::RDONLY)?).read_to_end(&mut bytes)?;
            make_parent(at).and_then(|()| fs::write(at, bytes))
        }
    }
}

fn is_on_root(path: &Path) -> bool {
    let device = |path: &Path| rustix::fs::stat(path).map(|stat| stat.st_dev);
    device(path).is_ok_and(|own| device(Path::new("/")).is_ok_and(|root| root == own))
}

fn private(at: &Path) -> io::Result<()> {
    if !at.is_dir() {
        fs::create_dir_all(at)?;
    }
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
    make_parent(at)?;
    if rustix::fs::fstat(&source)?.st_mode & 0o170_000 == 0o040_000 {
        if !at.is_dir() {
            fs::create_dir(at)?;
        }
    } else if !at.exists() {
        fs::File::create_new(at)?;
    }
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

fn make_parent(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) if !parent.is_dir() => fs::create_dir_all(parent),
        _ => Ok(()),
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
