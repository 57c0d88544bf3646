//! A folder that nothing opened through it can leave.
//!
//! The kernel does the checking (`openat2` with `RESOLVE_BENEATH`), so a symlink swapped in between looking and opening
//! gains nothing. Where the kernel lacks the call the path is resolved first and compared.

use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, Stat, statat};
use rustix::io::Errno;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use crate::error::{PathProblem, SpaceError};
use crate::stamp::Stamp;

/// How often a lookup that raced with a rename is tried again.
const RETRIES: usize = 8;

/// An open `.ai` folder.
pub(crate) struct Root {
    fd: OwnedFd,
    path: PathBuf,
}

/// A regular file, opened once; everything that is read of it is read through this descriptor.
pub(crate) struct Opened {
    pub(crate) file: File,
    pub(crate) stat: Stat,
}

/// What an entry turned out to be when it was opened.
pub(crate) enum Entry {
    File(Opened),
    Folder,
}

impl Root {
    /// Opens a folder; `None` where there is none.
    pub(crate) fn open(path: &Path) -> Result<Option<Self>, SpaceError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match rustix::fs::open(path, flags, Mode::empty()) {
            Ok(fd) => Ok(Some(Self { fd, path: path.to_owned() })),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(error) => Err(SpaceError::unreadable(path, error)),
        }
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Which folder it is: another one in its place has another identity.
    pub(crate) fn identity(&self) -> Option<(u64, u64)> {
        let stat = rustix::fs::fstat(&self.fd).ok()?;
        Some((stat.st_dev, stat.st_ino))
    }

    /// The absolute path of something inside, for messages and for [`kiwi_model::Content::OnDisk`].
    pub(crate) fn absolute(&self, relative: &str) -> PathBuf {
        self.path.join(relative)
    }

    /// What stands at a path, a symlink itself included; `None` where nothing does.
    pub(crate) fn stat(&self, relative: &str) -> Option<Stat> {
        statat(&self.fd, relative, AtFlags::SYMLINK_NOFOLLOW).ok()
    }

    /// What a path leads to, through symlinks that stay inside; `None` where that is nothing.
    pub(crate) fn stat_through(&self, relative: &str) -> Option<Stat> {
        let fd = self.open_beneath(relative, OFlags::PATH | OFlags::CLOEXEC).ok()?;
        rustix::fs::fstat(fd).ok()
    }

    /// The stamp of a folder; `None` where there is none, and for a symlink to one.
    pub(crate) fn folder_stamp(&self, relative: &str) -> Option<Stamp> {
        let stat = self.stat(relative)?;
        (FileType::from_raw_mode(stat.st_mode) == FileType::Directory).then(|| Stamp::of_folder(&stat))
    }

    /// Opens a folder that is reached through no symlink at all.
    pub(crate) fn open_plain_folder(&self, relative: &str) -> Result<OwnedFd, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match open_beneath(self.fd.as_fd(), relative, flags, ResolveFlags::NO_SYMLINKS) {
            Err(Errno::NOSYS | Errno::PERM) => rustix::fs::openat(&self.fd, relative, flags, Mode::empty()),
            opened => opened,
        }
    }

    /// Opens a regular file.
    pub(crate) fn open_file(&self, relative: &str) -> Result<Opened, SpaceError> {
        match self.open_entry(relative)? {
            Entry::File(opened) => Ok(opened),
            Entry::Folder => Err(SpaceError::bad_path(self.absolute(relative), PathProblem::Folder)),
        }
    }

    /// Opens a folder.
    pub(crate) fn open_folder(&self, relative: &str) -> Result<OwnedFd, SpaceError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        self.open_beneath(relative, flags)
    }

    /// Opens a file or a folder, whichever is there. Never blocks: a fifo is opened without waiting and then refused.
    pub(crate) fn open_entry(&self, relative: &str) -> Result<Entry, SpaceError> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let fd = self.open_beneath(relative, flags)?;
        let stat =
            rustix::fs::fstat(&fd).map_err(|error| SpaceError::unreadable(self.absolute(relative), error))?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Ok(Entry::File(Opened { file: File::from(fd), stat })),
            FileType::Directory => Ok(Entry::Folder),
            _ => Err(SpaceError::bad_path(self.absolute(relative), PathProblem::SpecialFile)),
        }
    }

    fn open_beneath(&self, relative: &str, flags: OFlags) -> Result<OwnedFd, SpaceError> {
        for _ in 0..RETRIES {
            return match open_beneath(self.fd.as_fd(), relative, flags, ResolveFlags::NO_MAGICLINKS) {
                Ok(fd) => Ok(fd),
                Err(Errno::AGAIN | Errno::INTR) => continue,
                // An absolute symlink counts as leaving for the kernel, even one that comes back inside.
                Err(Errno::XDEV | Errno::NOSYS | Errno::PERM) => self.open_resolved(relative, flags),
                Err(error) => Err(self.explain(relative, error)),
            };
        }
        Err(SpaceError::unreadable(self.absolute(relative), Errno::AGAIN))
    }

    /// Resolves every symlink, compares, opens what was resolved.
    fn open_resolved(&self, relative: &str, flags: OFlags) -> Result<OwnedFd, SpaceError> {
        let path = self.absolute(relative);
        let root = self.path.canonicalize().map_err(|error| SpaceError::unreadable(&self.path, error))?;
        let target = path.canonicalize().map_err(|error| {
            match error.raw_os_error().map(Errno::from_raw_os_error) {
                Some(errno) => self.explain(relative, errno),
                None => SpaceError::unreadable(&path, error),
            }
        })?;
        if !target.starts_with(&root) {
            return Err(SpaceError::bad_path(path, PathProblem::LeavesSpace));
        }
        rustix::fs::open(&target, flags | OFlags::NOFOLLOW, Mode::empty())
            .map_err(|error| self.explain(relative, error))
    }

    fn explain(&self, relative: &str, error: Errno) -> SpaceError {
        let path = self.absolute(relative);
        let is_link = || {
            self.stat(relative).is_some_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink)
        };
        match error {
            Errno::LOOP => SpaceError::bad_path(path, PathProblem::Loop),
            // Opening a socket, or a device that is not there.
            Errno::NXIO | Errno::NODEV | Errno::OPNOTSUPP => {
                SpaceError::bad_path(path, PathProblem::SpecialFile)
            }
            Errno::NOENT if is_link() => SpaceError::bad_path(path, PathProblem::Dangling),
            error => SpaceError::unreadable(path, error),
        }
    }
}

fn open_beneath(
    root: BorrowedFd<'_>,
    relative: &str,
    flags: OFlags,
    resolve: ResolveFlags,
) -> Result<OwnedFd, Errno> {
    rustix::fs::openat2(root, relative, flags, Mode::empty(), resolve | ResolveFlags::BENEATH)
}

/// Whether a path stays inside whatever it is joined to, by its spelling alone.
pub(crate) fn is_inside(path: &str) -> bool {
    !path.is_empty()
        && !path.contains('\0')
        && path.split('/').all(|part| !part.is_empty() && part != "." && part != "..")
}

/// Whether the owner may execute.
pub(crate) fn is_executable(stat: &Stat) -> bool {
    stat.st_mode & 0o100 != 0
}

/// A number of the operating system, whose width differs between platforms.
pub(crate) fn wide<N: TryInto<i64>>(number: N) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

/// A length of the operating system.
pub(crate) fn length(stat: &Stat) -> u64 {
    u64::try_from(wide(stat.st_size)).unwrap_or(0)
}
