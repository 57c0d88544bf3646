//! What Kiwi and its launcher say to each other.
//!
//! Frames over one stream socket: a little-endian length, then JSON. Kiwi sends an [`Opening`] and a [`Launch`]
//! (descriptors travel with its first byte); the launcher answers with one [`Report`]. Nothing else is ever sent, so
//! to the launcher a readable socket after the launch can only mean that the other end has closed.
//!
//! A spare is told before that what it is to have ready, a [`Sandbox`] or nothing, and says `()` when it has; it says so
//! once more when it has got the opening, and only then it gets the launch.

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags,
};
use serde::de::value::SeqAccessDeserializer;
use serde::de::{DeserializeOwned, Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use crate::confinement::Limits;
use crate::process::Exit;
use crate::sandbox::Sandbox;

/// More descriptors than any launch needs, fewer than the kernel's limit for one message.
const MOST_DESCRIPTORS: usize = 64;
/// The kernel takes far less than this as arguments; the bound only keeps a broken peer from asking for memory.
const LARGEST_FRAME: u32 = 64 << 20;

/// Said before anything lies on disk, so that the launcher can clean up even if Kiwi dies while writing.
#[derive(Debug, Serialize, Deserialize)]
pub struct Opening {
    /// The folder Kiwi is about to make for this run.
    pub snapshot: Option<Raw>,
}

/// Everything the launcher needs to start the tool.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Launch {
    pub program: Word,
    pub args: Vec<Word>,
    pub env: Vec<(String, Word)>,
    pub cwd: Raw,
    /// Whether the first descriptor is the tool's standard input.
    pub stdin: bool,
    /// How many of the next descriptors are files the tool inherits. Any others are held until it has ended.
    pub files: usize,
    pub timeout_ms: u64,
    pub grace_ms: u64,
    /// Whether the tool loses the way to new privileges and gets resource limits.
    pub confined: bool,
    /// Whether its environment holds secrets.
    pub has_secrets: bool,
    /// What it may use.
    pub limits: Limits,
    /// A folder that is of no use to anybody when this does not come to an end of its own.
    pub scrap: Option<Raw>,
    /// The walls around it, if any. The descriptor for its proxy follows the files.
    pub sandbox: Option<Sandbox>,
}

impl Launch {
    /// Whether it has limits that need a control group of Kiwi's: a container has one of its own.
    pub fn needs_group(&self) -> bool {
        let is_contained = self.sandbox.as_ref().is_some_and(Sandbox::is_contained);
        self.confined && !is_contained && (self.limits.memory.is_some() || self.limits.pids.is_some())
    }
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Report {
    /// By itself.
    Ended(Exit),
    /// The time was up.
    TimedOut,
    /// Kiwi closed the socket.
    Cancelled,
    /// The tool was never started.
    NotStarted { stage: Stage, errno: i32 },
}

/// What the launcher was doing when the system refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Making the process ready: descriptors, limits, privileges.
    Prepare,
    /// Entering the working folder.
    Folder,
    /// Starting the program.
    Start,
    /// Setting this limit.
    Limit(Limit),
    /// Building this wall of the sandbox.
    Wall(Wall),
}

/// A limit that needs something of the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    Cpu,
    Memory,
    Pids,
    Files,
}

/// What a sandbox is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wall {
    /// The program `bwrap`, which says itself why.
    Bubblewrap,
    /// A container engine, likewise.
    Container,
    Namespaces,
    /// The root file system as a whole.
    Root,
    /// One thing in it, by its number in the view.
    Shown(usize),
    Network,
    Privileges,
    Landlock,
    Seccomp,
}

/// A text in which a number stands for "the path of that inherited descriptor".
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Word(pub Vec<Part>);

/// A piece of a [`Word`].
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum Part {
    /// As it is.
    Text(Raw),
    /// The path under which the tool can open its inherited file of this number.
    Inherited(usize),
}

/// Characters as the system takes them: JSON cannot carry a path that is not UTF-8.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Raw {
    /// Nearly always.
    Text(String),
    /// Otherwise.
    Bytes(Vec<u8>),
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Part::deserialize(deserializer)? {
            Part::Text(raw) => Ok(raw),
            Part::Inherited(_) => Err(D::Error::custom("a number, and not a text")),
        }
    }
}

/// By what comes, and not by trying one form after the other: an order has a hundred of them.
impl<'de> Deserialize<'de> for Part {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Pieces)
    }
}

struct Pieces;

impl<'de> Visitor<'de> for Pieces {
    type Value = Part;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a text, its bytes or a number")
    }

    fn visit_str<E>(self, text: &str) -> Result<Part, E> {
        Ok(Part::Text(Raw::Text(text.to_owned())))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Part, E> {
        usize::try_from(number).map(Part::Inherited).map_err(E::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, bytes: A) -> Result<Part, A::Error> {
        let bytes = Vec::deserialize(SeqAccessDeserializer::new(bytes))?;
        Ok(Part::Text(Raw::Bytes(bytes)))
    }
}

impl Raw {
    pub fn of(text: impl AsRef<OsStr>) -> Self {
        let text = text.as_ref();
        text.to_str()
            .map_or_else(|| Self::Bytes(text.as_bytes().to_vec()), |text| Self::Text(text.to_owned()))
    }

    pub fn as_os(&self) -> &OsStr {
        match self {
            Self::Text(text) => OsStr::new(text),
            Self::Bytes(bytes) => OsStr::from_bytes(bytes),
        }
    }

    pub fn as_path(&self) -> &Path {
        Path::new(self.as_os())
    }
}

impl Word {
    /// The text, with the path of each inherited file put in.
    pub fn spell(&self, inherited: &[PathBuf]) -> io::Result<OsString> {
        let mut bytes = Vec::new();
        for part in &self.0 {
            bytes.extend_from_slice(match part {
                Part::Text(text) => text.as_os().as_bytes(),
                Part::Inherited(index) => inherited.get(*index).ok_or_else(malformed)?.as_os_str().as_bytes(),
            });
        }
        Ok(OsString::from_vec(bytes))
    }

    /// How many bytes it will be, nearly.
    pub fn len(&self) -> usize {
        self.0.iter().map(|part| if let Part::Text(text) = part { text.as_os().len() } else { 16 }).sum()
    }
}

/// A message as it goes over the socket.
pub fn frame(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; 4];
    serde_json::to_writer(&mut bytes, message)?;
    let length = u32::try_from(bytes.len() - 4)
        .ok()
        .filter(|length| *length <= LARGEST_FRAME)
        .ok_or_else(malformed)?;
    if let Some(header) = bytes.first_chunk_mut() {
        *header = length.to_le_bytes();
    }
    Ok(bytes)
}

/// The message at the front of what was received, if it has all come.
pub fn unframe<T: DeserializeOwned>(received: &[u8]) -> io::Result<Option<T>> {
    let Some((header, rest)) = received.split_first_chunk() else { return Ok(None) };
    match rest.get(..body_length(*header)?) {
        Some(body) => Ok(Some(serde_json::from_slice(body)?)),
        None => Ok(None),
    }
}

/// Sends what the socket takes at once, descriptors with the first byte. Answers how many bytes went.
pub fn send(socket: impl AsFd, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::from(io::ErrorKind::ArgumentListTooLong));
    }
    Ok(rustix::net::sendmsg(socket, &[IoSlice::new(bytes)], &mut ancillary, SendFlags::NOSIGNAL)?)
}

/// Sends a whole message on a socket that blocks.
pub fn send_all(socket: impl AsFd, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let (mut rest, mut with) = (bytes, descriptors);
    while !rest.is_empty() {
        let sent = send(&socket, rest, with)?;
        rest = rest.get(sent..).unwrap_or_default();
        with = &[];
    }
    Ok(())
}

/// Waits for one message. `None` when the other end has closed instead.
pub fn receive<T: DeserializeOwned>(socket: impl AsFd) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
    let mut descriptors = Vec::new();
    let mut header = [0; 4];
    if !fill(&socket, &mut header, &mut descriptors)? {
        return Ok(None);
    }
    let mut body = vec![0; body_length(header)?];
    if !fill(&socket, &mut body, &mut descriptors)? {
        return Ok(None);
    }
    Ok(Some((serde_json::from_slice(&body)?, descriptors)))
}

fn body_length(header: [u8; 4]) -> io::Result<usize> {
    let length = u32::from_le_bytes(header);
    usize::try_from(length).ok().filter(|_| length <= LARGEST_FRAME).ok_or_else(malformed)
}

/// Fills the buffer; `false` when the stream ends first.
fn fill(socket: &impl AsFd, buffer: &mut [u8], descriptors: &mut Vec<OwnedFd>) -> io::Result<bool> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let iov = &mut [IoSliceMut::new(rest)];
        let received = match rustix::net::recvmsg(socket, iov, &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
            Ok(message) => message.bytes,
            Err(rustix::io::Errno::INTR) => continue,
            // The other end closed with our words unread: it is as gone as one that closed politely.
            Err(rustix::io::Errno::CONNRESET) => 0,
            Err(errno) => return Err(errno.into()),
        };
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                descriptors.extend(rights);
            }
        }
        if received == 0 {
            return Ok(false);
        }
        filled += received;
    }
    Ok(true)
}

fn malformed() -> io::Error {
    io::Error::from(io::ErrorKind::InvalidData)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_launch_travels_with_its_descriptors() {
        let (here, there) = UnixStream::pair().unwrap();
        let word = |text: &str| Word(vec![Part::Text(Raw::of(text)), Part::Inherited(1)]);
        let launch = Launch {
            program: word("a"),
            args: vec![word(""), Word::default()],
            env: vec![("K".into(), word("v"))],
            cwd: Raw::of(OsStr::from_bytes(b"/\xff")),
            stdin: true,
            files: 1,
            timeout_ms: 1,
            grace_ms: 2,
            confined: true,
            has_secrets: true,
            limits: Limits::default(),
            scrap: None,
            sandbox: None,
        };
        let bytes = frame(&launch).unwrap();
        let null = std::fs::File::open("/dev/null").unwrap();
        assert_eq!(send(&here, &bytes, &[null.as_fd(), null.as_fd()]).unwrap(), bytes.len());
        let (got, descriptors) = receive::<Launch>(&there).unwrap().unwrap();
        assert_eq!(descriptors.len(), 2);
        assert_eq!(got.cwd.as_os().as_bytes(), b"/\xff");
        let paths = [PathBuf::from("/x"), PathBuf::from("/proc/self/fd/7")];
        assert_eq!(got.program.spell(&paths).unwrap(), "a/proc/self/fd/7");
        assert!(got.program.spell(&[]).is_err());
        drop(here);
        assert!(receive::<Launch>(&there).unwrap().is_none());
    }

    #[test]
    fn a_frame_is_read_only_when_it_is_whole() {
        let bytes = frame(&Report::Ended(Exit::Code(3))).unwrap();
        for cut in 0..bytes.len() {
            assert_eq!(unframe::<Report>(bytes.get(..cut).unwrap()).unwrap(), None);
        }
        assert_eq!(unframe(&bytes).unwrap(), Some(Report::Ended(Exit::Code(3))));
        assert!(unframe::<Report>(&[255; 8]).is_err());
    }
}
