//! The root file system of a sandbox, made of mounts: what is not put here does not exist inside.

use alloc::borrow::ToOwned;
use alloc::vec::Vec;
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, symlink};
use rustix::io::{Errno, Result};
use rustix::mount::{MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags};

use super::Done;
use crate::kernel::files;
use crate::kernel::mounts::{self, NO_DEVICES, NO_OWNERS, READ_ONLY};
use crate::plan::{DEVICES, LINKS, Shown};
use crate::wire::{Stage, Wall};

/// Where the host's files are while the root is being built.
const OLD: &str = "/.host";

/// Whatever the mask leaves of it.
const ANY: Mode = Mode::from_raw_mode(0o777);

/// So many bytes of a file are copied at once, at most.
const AT_ONCE: usize = 1 << 20;

/// A root that is being built: the host's is still there, below it.
pub struct Root {
    /// What is still to become read-only, once everything below it is in place.
    emptied: Vec<Vec<u8>>,
}

impl Root {
    /// One that shows nothing but what every sandbox has, moved into.
    pub fn begin() -> Done<Self> {
        begin().map_err(Stage::Wall(Wall::Root).failed())?;
        Ok(Self { emptied: Vec::new() })
    }

    /// Puts the whole view there.
    pub fn show_all(&mut self, view: &[Shown]) -> Done<()> {
        view.iter().enumerate().try_for_each(|(number, shown)| self.show(number, shown))
    }

    /// Puts one thing of the view there, by its number in it.
    pub fn show(&mut self, number: usize, shown: &Shown) -> Done<()> {
        show(shown, &mut self.emptied).map_err(Stage::Wall(Wall::Shown(number)).failed())
    }

    /// Lets go of the host, and closes what only had to be open until now. It waits until no processor can be looking at the
    /// host's files any more, so it comes last.
    pub fn finish(self) -> Done<()> {
        finish(&self.emptied).map_err(Stage::Wall(Wall::Root).failed())
    }
}

/// An empty root, with the host's below it.
fn begin() -> Result<()> {
    rustix::mount::mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    // Any folder will do: it is uncovered again as soon as the new root has moved away.
    let base = "/usr";
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    rustix::mount::mount("tmpfs", base, "tmpfs", flags, c"mode=0755")?;
    rustix::process::chdir(base)?;
    rustix::fs::mkdir(OLD.trim_start_matches('/'), ANY)?;
    rustix::process::pivot_root(".", OLD.trim_start_matches('/'))?;
    rustix::process::chdir("/")?;
    rustix::fs::mkdir("/proc", ANY)?;
    // The host's own must still be there: the kernel shows a new one only to whoever can see an old one.
    let flags = flags | MountFlags::NOEXEC | MountFlags::RDONLY;
    rustix::mount::mount("proc", "/proc", "proc", flags, None)?;
    rustix::fs::mkdir("/dev", ANY)?;
    for device in DEVICES {
        bind(device.as_bytes(), device.as_bytes(), NO_OWNERS)?;
    }
    LINKS.iter().try_for_each(|(at, to)| symlink(*to, *at))
}

/// Puts one thing there. What is still to become read-only, once everything below it is in place, is added to `emptied`.
fn show(shown: &Shown, emptied: &mut Vec<Vec<u8>>) -> Result<()> {
    let at = shown.place();
    match shown {
        Shown::Bind { from, .. } | Shown::Entries { from, .. } => {
            let reading = if shown.is_writable() { 0 } else { READ_ONLY };
            bind(from.bytes(), at, NO_OWNERS | NO_DEVICES | reading)
        }
        Shown::Private { .. } => private(at),
        // What lies on the root itself stays empty because the root becomes read-only.
        Shown::Empty { .. } => match files::make_folders(at) {
            Ok(()) if is_on_root(at) => Ok(()),
            _ => {
                emptied.push(at.to_owned());
                private(at)
            }
        },
        Shown::Link { to, .. } => put(at, || symlink(to.bytes(), at)),
        // Made, never overwritten: nothing of the host's is meant.
        Shown::File { text, .. } => files::write(put(at, || new_file(at))?, text.as_bytes()),
        Shown::Copy { from, .. } => {
            let source = find(from.bytes(), OFlags::RDONLY)?;
            let copy = put(at, || new_file(at))?;
            while rustix::fs::sendfile(&copy, &source, None, AT_ONCE)? > 0 {}
            Ok(())
        }
    }
}

fn is_on_root(path: &[u8]) -> bool {
    let device = |path: &[u8]| rustix::fs::stat(path).map(|stat| stat.st_dev);
    device(path).is_ok_and(|own| device(b"/").is_ok_and(|root| root == own))
}

fn private(at: &[u8]) -> Result<()> {
    put(at, || folder(at))?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    rustix::mount::mount("tmpfs", at, "tmpfs", flags, c"mode=0755")
}

/// Something of the host. Any link on the way is an error: whoever could put one there could show anything.
fn find(from: &[u8], flags: OFlags) -> Result<OwnedFd> {
    let below = from.strip_prefix(b"/").ok_or(Errno::INVAL)?;
    let (path, flags) = (files::join(OLD.as_bytes(), below), flags | OFlags::CLOEXEC);
    rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)
}

/// Shows something of the host, with everything mounted below it, all of it with these attributes from the first moment.
fn bind(from: &[u8], at: &[u8], attributes: u64) -> Result<()> {
    let source = find(from, OFlags::PATH)?;
    let is_folder = FileType::from_raw_mode(rustix::fs::fstat(&source)?.st_mode).is_dir();
    put(at, || if is_folder { folder(at) } else { file(at) })?;
    let copy = copy(&source)?;
    mounts::add(&copy, attributes)?;
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_SYMLINKS;
    rustix::mount::move_mount(&copy, "", CWD, at, flags)
}

/// A mount of the same, with everything mounted below it, that is nowhere yet.
fn copy(source: &OwnedFd) -> Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_RECURSIVE;
    rustix::mount::open_tree(source, "", flags)
}

/// Makes something; the folders around it only where they turn out to be missing.
fn put<T>(at: &[u8], make: impl Fn() -> Result<T>) -> Result<T> {
    match (make(), files::parent(at)) {
        (Err(Errno::NOENT), Some(around)) => {
            files::make_folders(around)?;
            make()
        }
        (done, _) => done,
    }
}

/// A folder to mount something on, unless there is one.
fn folder(at: &[u8]) -> Result<()> {
    there(rustix::fs::mkdir(at, ANY))
}

/// A file that was not there.
fn new_file(at: &[u8]) -> Result<OwnedFd> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    rustix::fs::open(at, flags, Mode::from_raw_mode(0o666))
}

/// A file to mount something on, unless there is one.
fn file(at: &[u8]) -> Result<()> {
    there(rustix::fs::mknodat(CWD, at, FileType::RegularFile, Mode::from_raw_mode(0o666), 0))
}

fn there(made: Result<()>) -> Result<()> {
    match made {
        // Where it is of the wrong kind, nothing can be mounted on it.
        Err(Errno::EXIST) => Ok(()),
        other => other,
    }
}

fn finish(emptied: &[Vec<u8>]) -> Result<()> {
    rustix::mount::unmount(OLD, UnmountFlags::DETACH)?;
    rustix::fs::rmdir(OLD)?;
    let flags = MountFlags::BIND | MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV;
    for at in emptied.iter().map(Vec::as_slice).chain([&b"/"[..]]) {
        rustix::mount::mount_remount(at, flags, c"")?;
    }
    Ok(())
}
