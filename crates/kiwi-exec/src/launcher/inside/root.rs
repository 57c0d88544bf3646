//! The root file system of a sandbox, made of mounts: what is not put here does not exist inside.

use nix::sched::CloneFlags;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, StatVfsMountFlags};
use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags};
use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::launcher::start::failed;
use crate::sandbox::{DEVICES, STREAMS, Shown};
use crate::wire::{Report, Stage, Wall};

/// Where the host's files are while the root is being built.
const OLD: &str = "/.host";

/// Builds the root and moves into it.
pub fn build(view: &[Shown]) -> Result<(), Report> {
    let root = || failed::<io::Error>(Stage::Wall(Wall::Root));
    begin().map_err(root())?;
    for (number, shown) in view.iter().enumerate() {
        show(shown).map_err(failed(Stage::Wall(Wall::Shown(number))))?;
    }
    finish(view).map_err(root())
}

/// An empty root, with the host's below it.
fn begin() -> io::Result<()> {
    nix::sched::unshare(CloneFlags::CLONE_NEWNS)?;
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
        bind(Path::new(device), Path::new(device))?;
    }
    STREAMS.iter().try_for_each(|(at, to)| symlink(to, at))
}

fn show(shown: &Shown) -> io::Result<()> {
    let at = shown.at();
    match shown {
        Shown::Bind { from, .. } | Shown::Entries { from, .. } => bind(from.as_path(), at),
        Shown::Private { .. } => private(at),
        // What lies on the root itself stays empty because the root becomes read-only.
        Shown::Empty { .. } => match fs::create_dir_all(at) {
            Ok(()) if is_on_root(at) => Ok(()),
            _ => private(at),
        },
        Shown::Link { to, .. } => make_parent(at).and_then(|()| symlink(to.as_path(), at)),
        Shown::File { text, .. } => make_parent(at).and_then(|()| fs::write(at, text)),
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

/// Shows something of the host, with everything mounted below it. Any link on the way is an error: whoever could put one
/// there could show anything.
fn bind(from: &Path, at: &Path) -> io::Result<()> {
    let below = from.strip_prefix("/").map_err(io::Error::other)?;
    let source = rustix::fs::openat2(
        CWD,
        Path::new(OLD).join(below),
        OFlags::PATH | OFlags::CLOEXEC,
        Mode::empty(),
        ResolveFlags::NO_SYMLINKS,
    )?;
    make_parent(at)?;
    if rustix::fs::fstat(&source)?.st_mode & 0o170_000 == 0o040_000 {
        if !at.is_dir() {
            fs::create_dir(at)?;
        }
    } else if !at.exists() {
        fs::File::create_new(at)?;
    }
    let source = format!("{OLD}/proc/self/fd/{}", source.as_raw_fd());
    Ok(rustix::mount::mount_bind_recursive(source, at)?)
}

fn make_parent(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) if !parent.is_dir() => fs::create_dir_all(parent),
        _ => Ok(()),
    }
}

/// Gives every mount its flags, and lets go of the host.
fn finish(view: &[Shown]) -> io::Result<()> {
    // What is mounted somewhere below a folder came with it and needs its flags too.
    for mount in mounts(&fs::read(format!("{OLD}/proc/self/mountinfo"))?) {
        if mount.starts_with(OLD) || mount == Path::new("/") || mount.starts_with("/proc") {
            continue;
        }
        let shown = view.iter().rfind(|shown| mount.starts_with(shown.at()));
        let mut flags = MountFlags::BIND | MountFlags::NOSUID;
        if shown.is_some() {
            flags |= MountFlags::NODEV;
        }
        if shown.is_some_and(|shown| !shown.is_writable()) {
            flags |= MountFlags::RDONLY;
        }
        // Flags the host has set cannot be taken away.
        let now = rustix::fs::statvfs(&mount)?.f_flag;
        for (has, flag) in [
            (StatVfsMountFlags::RDONLY, MountFlags::RDONLY),
            (StatVfsMountFlags::NODEV, MountFlags::NODEV),
            (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
        ] {
            if now.contains(has) {
                flags |= flag;
            }
        }
        rustix::mount::mount_remount(&mount, flags, c"")?;
    }
    rustix::mount::unmount(OLD, UnmountFlags::DETACH)?;
    fs::remove_dir(OLD)?;
    let flags = MountFlags::BIND | MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV;
    Ok(rustix::mount::mount_remount("/", flags, c"")?)
}

/// Where something is mounted, as the kernel lists it: four characters stand for what would break the line.
fn mounts(list: &[u8]) -> Vec<PathBuf> {
    let place = |line: &[u8]| {
        let mut rest = line.split(|byte| *byte == b' ').nth(4)?;
        let mut path = Vec::new();
        while let Some((first, tail)) = rest.split_first() {
            let octal = tail
                .get(..3)
                .filter(|_| *first == b'\\')
                .and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
            path.push(octal.unwrap_or(*first));
            rest = if octal.is_some() { tail.get(3..).unwrap_or_default() } else { tail };
        }
        Some(PathBuf::from(std::ffi::OsString::from_vec(path)))
    };
    list.split(|byte| *byte == b'\n').filter_map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_are_read_as_they_are() {
        let list = b"22 1 0:2 / / rw - ext4 /dev/vda rw\n23 22 0:3 / /a\\040b\\134c rw - tmpfs tmpfs rw\n\n";
        assert_eq!(mounts(list), [PathBuf::from("/"), PathBuf::from("/a b\\c")]);
    }
}
