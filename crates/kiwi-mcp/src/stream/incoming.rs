//! Reading lines.

use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};

use super::LONGEST;

/// What is read at once; and the longest line whose room is kept for the next.
const USUAL: usize = 64 << 10;

/// A stream of lines.
#[derive(Debug)]
pub struct Incoming<R> {
    read: BufReader<R>,
    line: Vec<u8>,
    /// The rest of the line is thrown away: it is too long.
    is_skipping: bool,
    /// The line has been handed out.
    is_done: bool,
}

/// What came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Read<'a> {
    /// A line, without its break.
    Line(&'a [u8]),
    /// A line that is too long; told once, as soon as that is clear.
    Overlong,
    /// The end. What came before it without a break is no line; [`Incoming::rest`] has it.
    End,
}

impl<R: AsyncRead + Unpin> Incoming<R> {
    /// The lines of a stream.
    pub fn new(read: R) -> Self {
        let read = BufReader::with_capacity(USUAL, read);
        Self { read, line: Vec::new(), is_skipping: false, is_done: false }
    }

    /// What came before the end without a break; given once.
    pub fn rest(&mut self) -> Option<Vec<u8>> {
        let is_left = !self.is_done && !self.is_skipping && !self.line.is_empty();
        is_left.then(|| std::mem::take(&mut self.line))
    }

    /// The next line. Can be dropped at any time: what was read stays.
    pub async fn next(&mut self) -> Read<'_> {
        if std::mem::take(&mut self.is_done) {
            self.line.clear();
            self.line.shrink_to(USUAL);
        }
        loop {
            let available = match self.read.fill_buf().await {
                Ok(available) if !available.is_empty() => available,
                Ok(_) | Err(_) => return Read::End,
            };
            let end = available.iter().position(|byte| *byte == b'\n');
            let taken = available.get(..end.unwrap_or(available.len())).unwrap_or_default();
            let is_overlong = !self.is_skipping && self.line.len() + taken.len() > LONGEST;
            if is_overlong {
                self.is_skipping = true;
                self.line = Vec::new();
            } else if !self.is_skipping {
                self.line.extend_from_slice(taken);
            }
            let count = taken.len() + usize::from(end.is_some());
            self.read.consume(count);
            if end.is_some() && !std::mem::take(&mut self.is_skipping) {
                self.is_done = true;
                return Read::Line(self.line.strip_suffix(b"\r").unwrap_or(&self.line));
            }
            if is_overlong {
                return Read::Overlong;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::io::AsyncWriteExt as _;

    fn line(text: &str) -> Read<'_> {
        Read::Line(text.as_bytes())
    }

    #[tokio::test]
    async fn lines_come_one_by_one() {
        let mut incoming = Incoming::new(&b"one\r\n\ntwo\nhalf"[..]);
        assert_eq!(incoming.next().await, line("one"));
        assert_eq!(incoming.next().await, line(""));
        assert_eq!(incoming.next().await, line("two"));
        assert_eq!(incoming.rest(), None);
        assert_eq!(incoming.next().await, Read::End);
        assert_eq!(incoming.rest().as_deref(), Some(&b"half"[..]));
        assert_eq!(incoming.next().await, Read::End);
        assert_eq!(incoming.rest(), None);
    }

    #[tokio::test]
    async fn what_was_read_stays_when_nobody_waits() {
        let (mut near, far) = tokio::io::duplex(64);
        let mut incoming = Incoming::new(far);
        for part in ["a l", "ong ", "line"] {
            near.write_all(part.as_bytes()).await.unwrap();
            let next = tokio::time::timeout(Duration::from_millis(5), incoming.next()).await;
            assert!(next.is_err(), "{part}");
        }
        near.write_all(b"\nb\n").await.unwrap();
        assert_eq!(incoming.next().await, line("a long line"));
        assert_eq!(incoming.next().await, line("b"));
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_is_told_once_and_skipped() {
        let mut bytes = b"a\n".to_vec();
        for length in [LONGEST + 1, LONGEST * 2, LONGEST] {
            bytes.resize(bytes.len() + length, b'x');
            bytes.push(b'\n');
        }
        bytes.extend_from_slice(b"b\n");
        let mut incoming = Incoming::new(bytes.as_slice());
        assert_eq!(incoming.next().await, line("a"));
        assert_eq!(incoming.next().await, Read::Overlong);
        assert_eq!(incoming.next().await, Read::Overlong);
        assert!(matches!(incoming.next().await, Read::Line(longest) if longest.len() == LONGEST));
        assert_eq!(incoming.next().await, line("b"));
        assert!(incoming.line.capacity() <= USUAL, "what a long line took is given back");
        assert_eq!(incoming.next().await, Read::End);
    }
}
