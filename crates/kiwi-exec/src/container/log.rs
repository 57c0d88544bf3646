//! What a container writes, taken from its log instead of from its client.
//!
//! Podman's client loses output now and then: once its standard input has ended, the other direction may end with it.
//! The log is written by the process that watches the container, line by line, and is complete when the container has
//! ended. It lies in a private folder that goes away with this process, or else with the copies of killed calls: a
//! rootless engine lives in a namespace of its own, from which memory of this process cannot be opened.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::snapshot::{Snapshot, folder_of, random_name};

const PIECE: usize = 64 << 10;
/// How late a line may be.
const PAUSE: Duration = Duration::from_millis(5);

/// A log that a container is about to write.
pub struct Log {
    file: File,
    path: PathBuf,
    _folder: Snapshot,
}

/// A log that is passed on while it grows.
pub struct Passing {
    is_complete: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<()>,
}

impl Log {
    pub fn new() -> io::Result<Self> {
        let name = random_name().map_err(io::Error::other)?;
        let path = folder_of(&std::env::temp_dir(), &name);
        let folder = Snapshot::new(path.clone());
        folder.create().map_err(io::Error::other)?;
        let path = path.join("log");
        let file = OpenOptions::new().read(true).append(true).create_new(true).mode(0o600).open(&path)?;
        Ok(Self { file, path, _folder: folder })
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The private folder it lies in.
    pub fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("/"))
    }

    /// Passes it on to this process's own streams, byte for byte.
    pub fn pass_on(self) -> io::Result<Passing> {
        let is_complete = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&is_complete);
        let thread = std::thread::Builder::new().name("kiwi-log".into()).spawn(move || self.follow(&seen))?;
        Ok(Passing { is_complete, thread })
    }

    fn follow(&self, is_complete: &AtomicBool) {
        let (mut at, mut piece, mut open) = (0, vec![0; PIECE], Vec::new());
        loop {
            // Asked first: what is there afterwards is all there will be.
            let is_last = is_complete.load(Ordering::Acquire);
            while let Ok(count @ 1..) = self.file.read_at(&mut piece, at) {
                at += count as u64;
                open.extend_from_slice(piece.get(..count).unwrap_or_default());
                let whole = open.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
                let lines: Vec<u8> = open.drain(..whole).collect();
                // Nobody listens any more: the call is over and says so by other means.
                let _ = write_out(&lines);
            }
            if is_last {
                return;
            }
            std::thread::sleep(PAUSE);
        }
    }
}

impl Passing {
    /// Waits for the rest, once the container has ended.
    pub fn finish(self) {
        self.is_complete.store(true, Ordering::Release);
        let _ = self.thread.join();
    }
}

fn write_out(lines: &[u8]) -> io::Result<()> {
    let (mut stdout, mut stderr) = (io::stdout().lock(), io::stderr().lock());
    for (is_stdout, bytes, ends) in lines.split(|byte| *byte == b'\n').filter_map(entry) {
        let out: &mut dyn Write = if is_stdout { &mut stdout } else { &mut stderr };
        out.write_all(bytes)?;
        if ends {
            out.write_all(b"\n")?;
        }
    }
    stdout.flush()?;
    stderr.flush()
}

/// `TIME stdout F TEXT`: which stream, the text, and whether its line ended there (`F`) or goes on (`P`).
fn entry(line: &[u8]) -> Option<(bool, &[u8], bool)> {
    let mut parts = line.splitn(4, |byte| *byte == b' ');
    let (_time, stream, kind) = (parts.next()?, parts.next()?, parts.next()?);
    Some((stream == b"stdout", parts.next().unwrap_or_default(), kind == b"F"))
}

#[cfg(test)]
mod tests {
    use super::entry;

    #[test]
    fn entries_are_read_byte_for_byte() {
        assert_eq!(entry(b"T stdout F a  b "), Some((true, &b"a  b "[..], true)));
        assert_eq!(entry(b"T stderr P \x00\xff"), Some((false, &b"\x00\xff"[..], false)));
        assert_eq!(entry(b"T stdout F "), Some((true, &b""[..], true)));
        assert_eq!(entry(b""), None);
    }
}
