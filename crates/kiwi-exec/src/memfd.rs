//! Bytes in sealed memory: whoever opens them sees what was verified, and nobody can change them any more.

use kiwi_model::{Content, Digest, File, Hasher};
use rustix::fs::{MemfdFlags, Mode, OFlags, SealFlags};
use rustix::io::Errno;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use crate::error::ExecError;

/// A file whose bytes and length are fixed for good. It is open for reading only, at its beginning.
pub fn sealed(
    name: &str,
    is_executable: bool,
    fill: impl FnOnce(&mut std::fs::File) -> Result<(), ExecError>,
) -> Result<OwnedFd, ExecError> {
    let keeping = || ExecError::io("keep verified bytes in memory");
    let mut memory = std::fs::File::from(create(name, is_executable).map_err(keeping())?);
    fill(&mut memory)?;
    rustix::fs::fcntl_add_seals(
        &memory,
        SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE,
    )
    .map_err(keeping())?;
    // A second, read-only opening: the kernel does not execute a file that somebody holds open for writing.
    let path = format!("/proc/self/fd/{}", memory.as_raw_fd());
    rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).map_err(keeping())
}

/// The sealed form of one verified file.
pub fn sealed_file(file: &File) -> Result<OwnedFd, ExecError> {
    let name = file.entry.path.rsplit('/').next().unwrap_or_default();
    sealed(name, file.entry.is_executable, |memory| copy_verified(file, memory))
}

/// Sealed bytes for standard input.
pub fn sealed_stdin(bytes: &[u8]) -> Result<OwnedFd, ExecError> {
    sealed("stdin", false, |memory| {
        memory.write_all(bytes).map_err(ExecError::io("write the standard input"))
    })
}

/// Copies a file's verified bytes. What comes from disk is hashed on the way: it may have changed since.
pub fn copy_verified(file: &File, into: &mut impl Write) -> Result<(), ExecError> {
    let path = &file.entry.path;
    match &file.content {
        Content::Bytes(bytes) => into.write_all(bytes).map_err(ExecError::io(format!("copy `{path}`"))),
        Content::OnDisk(source) => {
            let actual = copy_hashing(source, into).map_err(ExecError::io(format!("copy `{path}`")))?;
            if actual == file.entry.sha256 {
                return Ok(());
            }
            Err(ExecError::Tampered { path: path.clone(), expected: file.entry.sha256, actual })
        }
    }
}

fn copy_hashing(source: &Path, into: &mut impl Write) -> std::io::Result<Digest> {
    // Not blocking on what may have become a pipe; not reading without end what somebody keeps appending to.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = std::fs::File::from(rustix::fs::open(source, flags, Mode::empty())?);
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(std::io::Error::other("it is no longer a regular file"));
    }
    let mut hasher = Hasher::default();
    let mut reader = file.take(metadata.len().saturating_add(1));
    let mut buffer = vec![0; 128 << 10];
    loop {
        match reader.read(&mut buffer)? {
            0 => return Ok(hasher.finish()),
            count => {
                let chunk = buffer.get(..count).unwrap_or_default();
                hasher.update(chunk);
                into.write_all(chunk)?;
            }
        }
    }
}

fn create(name: &str, is_executable: bool) -> Result<OwnedFd, Errno> {
    // The name is only for people who look into /proc; the kernel takes up to 249 bytes of it and no NUL.
    let name: String = name.chars().filter(|char| *char != '\0').take(60).collect();
    let base = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let exact = if is_executable { MemfdFlags::EXEC } else { MemfdFlags::NOEXEC_SEAL };
    match rustix::fs::memfd_create(&name, base | exact) {
        // Kernels before 6.3 do not know the two flags; there every such file may be executed.
        Err(Errno::INVAL) => rustix::fs::memfd_create(&name, base),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sealed_bytes_can_be_read_again_and_again_but_not_written() {
        let fd = sealed_stdin(b"hello").unwrap();
        let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
        for _ in 0..2 {
            assert_eq!(std::fs::read(&path).unwrap(), b"hello");
        }
        assert!(std::fs::write(&path, b"other").is_err());
        assert!(
            std::fs::OpenOptions::new().append(true).open(&path).and_then(|mut f| f.write_all(b"x")).is_err()
        );
        let seals = rustix::fs::fcntl_get_seals(&fd).unwrap();
        assert!(seals.contains(SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL));
        assert_eq!(std::fs::read(&path).unwrap(), b"hello");
    }
}
