//! Reading what a process writes, up to a cap.

use rustix::buffer::spare_capacity;
use std::io;
use std::os::fd::OwnedFd;
use tokio::net::unix::pipe::Receiver;

use crate::error::ExecError;
use crate::process::{Stream, Watch};

/// One stream of a running process.
pub struct Capture {
    stream: Stream,
    pipe: Option<Receiver>,
    cap: u64,
    kept: Vec<u8>,
    overflowed: bool,
    buffer: Vec<u8>,
}

/// A way to read a pipe without waiting; what was in the buffer makes room.
pub type Read = fn(&Receiver, &mut Vec<u8>) -> io::Result<usize>;

/// Reads what the runtime was told of, and lets it wait for more where that was nothing.
pub fn read_told(pipe: &Receiver, buffer: &mut Vec<u8>) -> io::Result<usize> {
    empty(buffer);
    pipe.try_read_buf(buffer)
}

/// Reads what is there. That the runtime was not told of it yet does not mean that it is not: a launcher can say its last
/// before that.
pub fn read_there(pipe: &Receiver, buffer: &mut Vec<u8>) -> io::Result<usize> {
    empty(buffer);
    Ok(rustix::io::retry_on_intr(|| rustix::io::read(pipe, spare_capacity(buffer)))?)
}

/// Room for all that a pipe holds, which nobody has to fill with zeros first.
fn empty(buffer: &mut Vec<u8>) {
    buffer.clear();
    buffer.reserve(PIPE);
}

/// What a pipe holds, unless somebody made it larger.
const PIPE: usize = 64 << 10;

impl Capture {
    pub fn new(stream: Stream, pipe: OwnedFd, cap: u64) -> Result<Self, ExecError> {
        let pipe = Receiver::from_owned_fd(pipe).map_err(ExecError::io("watch the output of the tool"))?;
        Ok(Self { stream, pipe: Some(pipe), cap, kept: Vec::new(), overflowed: false, buffer: Vec::new() })
    }

    /// Whether more may come.
    pub const fn is_open(&self) -> bool {
        self.pipe.is_some()
    }

    /// Whether the process wrote more than it may. The rest is read and thrown away, so that it can still end in
    /// order.
    pub const fn has_overflowed(&self) -> bool {
        self.overflowed
    }

    /// Waits for bytes and takes them. Can be dropped at any time without losing any.
    pub async fn flow(&mut self, watch: &dyn Watch) {
        if let Some(pipe) = &self.pipe
            && pipe.readable().await.is_err()
        {
            self.pipe = None;
        }
        self.take(read_told, watch);
    }

    /// Takes what is already there: after the last writer of the tool has ended, that is all there will be. A writer
    /// that is not the tool's (it may have handed its pipe to a stranger) is heard up to the cap.
    pub fn drain(&mut self, watch: &dyn Watch) {
        while !self.overflowed && self.take(read_there, watch) {}
    }

    /// What was kept.
    pub fn into_bytes(self) -> Vec<u8> {
        self.kept
    }

    fn take(&mut self, read: Read, watch: &dyn Watch) -> bool {
        let Some(pipe) = &self.pipe else { return false };
        match read(pipe, &mut self.buffer) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => false,
            Ok(0) | Err(_) => {
                self.pipe = None;
                false
            }
            Ok(count) => {
                self.keep(count, watch);
                true
            }
        }
    }

    fn keep(&mut self, count: usize, watch: &dyn Watch) {
        let room = self.cap.saturating_sub(self.kept.len() as u64);
        let fits = usize::try_from(room).unwrap_or(usize::MAX).min(count);
        self.overflowed |= fits < count;
        if let Some(bytes) = self.buffer.get(..fits).filter(|bytes| !bytes.is_empty()) {
            self.kept.extend_from_slice(bytes);
            watch.output(self.stream, bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Unwatched;
    use std::io::Write as _;

    /// A pipe with something in it that the runtime has had no occasion to tell of.
    #[tokio::test]
    async fn what_is_in_the_pipe_is_taken_whether_or_not_the_runtime_was_told() {
        for text in ["own\n".to_owned(), "x".repeat(PIPE)] {
            let (reader, mut writer) = io::pipe().unwrap();
            let mut capture = Capture::new(Stream::Stdout, reader.into(), 1 << 20).unwrap();
            writer.write_all(text.as_bytes()).unwrap();
            capture.drain(&Unwatched);
            assert!(capture.into_bytes() == text.as_bytes());
        }
    }
}
