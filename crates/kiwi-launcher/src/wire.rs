//! What Kiwi and its launcher say to each other.
//!
//! Frames over one stream socket: a little-endian length, then the message in `postcard`'s form. Kiwi sends an [`Opening`] and a [`Launch`]
//! (descriptors travel with its first byte); the launcher answers with one [`Report`]. Nothing else is ever sent, so
//! to the launcher a readable socket after the launch can only mean that the other end has closed.
//!
//! A spare is told before that what it is to have ready, a [`Sandbox`] or nothing (where it is to be behind the launcher's own
//! walls, with a descriptor that tells of the host's mounts), and says `()` when it has; it says so once more when it has
//! got the opening, and only then it gets the launch.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::mem::MaybeUninit;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{Errno, IoSlice, IoSliceMut, Result};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::plan::Sandbox;
pub use crate::words::{Part, Raw, Word};

/// More descriptors than any launch needs, fewer than the kernel's limit for one message.
const MOST_DESCRIPTORS: usize = 64;
/// The kernel takes far less than this as arguments; the bound only keeps a broken peer from asking for memory.
const LARGEST_FRAME: u32 = 64 << 20;

/// Said before anything lies on disk, so that the launcher can clean up even if Kiwi dies while writing.
#[derive(Debug, Serialize, Deserialize)]
pub struct Opening {
    /// What the folder is called that Kiwi is about to make for this run. The one it is made in comes as a descriptor.
    pub folder: Option<Raw>,
}

/// Everything the launcher needs to start the tool.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Launch {
    /// What to start; behind it nothing is looked for.
    pub program: Word,
    /// Its arguments.
    pub args: Vec<Word>,
    /// Its whole environment.
    pub env: Vec<(String, Word)>,
    /// Where it starts.
    pub cwd: Raw,
    /// Whether the first descriptor is the tool's standard input.
    pub stdin: bool,
    /// How many of the next descriptors are files the tool inherits. Any others are held until it has ended.
    pub files: usize,
    /// How long it may take.
    pub timeout_ms: u64,
    /// How long it has between being asked to end and being made to.
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
        self.confined && !is_contained && self.limits.need_group()
    }
}

/// What one call may use. A limit that cannot be enforced here is a refusal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Seconds of processor time each process of the call may use; a part of a second counts as a whole one.
    pub cpu: Option<f64>,
    /// Bytes of memory for all processes of the call together. Needs a control group.
    pub memory: Option<u64>,
    /// Processes and threads at one time. Needs a control group, or a sandbox of a user who is not root. Behind walls there
    /// is [`Limits::ROOM`] where nothing is said.
    pub pids: Option<u64>,
    /// Files each process may have open.
    pub files: Option<u64>,
}

impl Limits {
    /// So many processes and threads a tool behind walls may have at one time where nothing else is said: one that starts
    /// others without end takes time of the processor, but not everybody's numbers.
    pub const ROOM: u64 = 1024;

    /// Whether one of them counts everything that is started, and not each process.
    pub const fn need_group(self) -> bool {
        self.memory.is_some() || self.pids.is_some()
    }

    /// Which of them has most likely brought about this end, and what it is. A shell tells the signal that ended its
    /// command by a code above 128.
    pub fn ended(self, exit: Exit) -> Option<String> {
        let signal = match exit {
            Exit::Signal(signal) => signal,
            Exit::Code(code) => code.checked_sub(128)?,
        };
        if signal == rustix::process::Signal::XCPU.as_raw() {
            let cpu = self.cpu?;
            return Some(alloc::format!(
                "it has used the processor for the {cpu} s that `limits.cpu` allows"
            ));
        }
        let memory = self.memory.filter(|_| signal == rustix::process::Signal::KILL.as_raw())?;
        Some(alloc::format!("most likely it wanted more than the {memory} bytes that `limits.memory` allows"))
    }
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Exit {
    /// It returned this code.
    Code(i32),
    /// A signal ended it.
    Signal(i32),
}

impl Exit {
    /// Whether it says that all went well.
    pub const fn is_success(self) -> bool {
        matches!(self, Self::Code(0))
    }
}

impl core::fmt::Display for Exit {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
        }
    }
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Report {
    /// By itself.
    Ended(Exit),
    /// The time was up.
    TimedOut,
    /// Kiwi closed the socket.
    Cancelled,
    /// The tool was never started.
    NotStarted {
        /// What was being done.
        stage: Stage,
        /// What the system said; zero where it said nothing.
        errno: i32,
    },
}

/// What the launcher was doing when the system refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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

impl Stage {
    /// For `map_err`: this was being done when the system refused.
    pub fn failed(self) -> impl FnOnce(Errno) -> Report {
        move |errno| Report::NotStarted { stage: self, errno: errno.raw_os_error() }
    }

    /// What cannot be, was, while this was being done.
    pub const fn in_vain(self) -> Report {
        Report::NotStarted { stage: self, errno: 0 }
    }
}

/// A limit that needs something of the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Limit {
    /// Time of the processor.
    Cpu,
    /// Memory of the whole call.
    Memory,
    /// Processes of the whole call.
    Pids,
    /// Open files.
    Files,
}

/// What a sandbox is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Wall {
    /// The program `bwrap`, which says itself why.
    Bubblewrap,
    /// A container engine, likewise.
    Container,
    /// What is its own of processes, names, queues and so on.
    Namespaces,
    /// The root file system as a whole.
    Root,
    /// One thing in it, by its number in the view.
    Shown(usize),
    /// Its way to the proxy.
    Network,
    /// The way to rights it is not to have.
    Privileges,
    /// Rules about files.
    Landlock,
    /// The filter of system calls.
    Seccomp,
}

/// A message as it goes over the socket.
pub fn frame(message: &impl Serialize) -> Result<Vec<u8>> {
    let body = postcard::to_allocvec(message).map_err(|_| Errno::INVAL)?;
    let length = u32::try_from(body.len()).ok().filter(|length| *length <= LARGEST_FRAME);
    let mut bytes = Vec::with_capacity(4 + body.len());
    bytes.extend(length.ok_or(Errno::INVAL)?.to_le_bytes());
    bytes.extend(body);
    Ok(bytes)
}

/// The message at the front of what was received, if it has all come.
pub fn unframe<T: DeserializeOwned>(received: &[u8]) -> Result<Option<T>> {
    let Some((header, rest)) = received.split_first_chunk() else { return Ok(None) };
    rest.get(..body_length(*header)?).map(understand).transpose()
}

fn understand<T: DeserializeOwned>(body: &[u8]) -> Result<T> {
    match postcard::take_from_bytes(body) {
        Ok((message, [])) => Ok(message),
        _ => Err(Errno::INVAL),
    }
}

/// Sends what the socket takes at once, descriptors with the first byte. Answers how many bytes went.
pub fn send(socket: impl AsFd, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(Errno::TOOBIG);
    }
    rustix::net::sendmsg(socket, &[IoSlice::new(bytes)], &mut ancillary, SendFlags::NOSIGNAL)
}

/// Sends a whole message on a socket that blocks.
pub fn send_all(socket: impl AsFd, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> Result<()> {
    let (mut rest, mut with) = (bytes, descriptors);
    while !rest.is_empty() {
        let sent = send(&socket, rest, with)?;
        rest = rest.get(sent..).unwrap_or_default();
        with = &[];
    }
    Ok(())
}

/// Waits for one message. `None` when the other end has closed instead.
pub fn receive<T: DeserializeOwned>(socket: impl AsFd) -> Result<Option<(T, Vec<OwnedFd>)>> {
    let mut descriptors = Vec::new();
    let mut header = [0; 4];
    if !fill(&socket, &mut header, &mut descriptors)? {
        return Ok(None);
    }
    let mut body = vec![0; body_length(header)?];
    if !fill(&socket, &mut body, &mut descriptors)? {
        return Ok(None);
    }
    Ok(Some((understand(&body)?, descriptors)))
}

fn body_length(header: [u8; 4]) -> Result<usize> {
    let length = u32::from_le_bytes(header);
    usize::try_from(length).ok().filter(|_| length <= LARGEST_FRAME).ok_or(Errno::INVAL)
}

/// Fills the buffer; `false` when the stream ends first.
fn fill(socket: &impl AsFd, buffer: &mut [u8], descriptors: &mut Vec<OwnedFd>) -> Result<bool> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let iov = &mut [IoSliceMut::new(rest)];
        let received = match rustix::net::recvmsg(socket, iov, &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
            Ok(message) => message.bytes,
            Err(Errno::INTR) => continue,
            // The other end closed with our words unread: it is as gone as one that closed politely.
            Err(Errno::CONNRESET) => 0,
            Err(errno) => return Err(errno),
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

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_launch_travels_with_its_descriptors() {
        let (here, there) = UnixStream::pair().unwrap();
        let word = |text: &str| Word(vec![Part::Text(text.as_bytes().into()), Part::Inherited(1)]);
        let launch = Launch {
            program: word("a"),
            args: vec![word(""), Word::default()],
            env: vec![("K".into(), word("v"))],
            cwd: b"/\xff".as_slice().into(),
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
        assert_eq!(got.cwd.bytes(), b"/\xff");
        assert_eq!(got.program.bytes(&["/x", "/proc/self/fd/7"]).unwrap(), b"a/proc/self/fd/7");
        assert!(got.program.bytes(&[] as &[&str]).is_err());
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
        // Something is left over.
        assert!(unframe::<()>(&[1, 0, 0, 0, 0]).is_err());
    }

    #[test]
    fn only_a_limit_that_is_set_can_have_ended_something() {
        let (none, both) =
            (Limits::default(), Limits { cpu: Some(2.0), memory: Some(64), ..Limits::default() });
        for (exit, limit) in [
            (Exit::Signal(24), Some("limits.cpu")),
            (Exit::Code(152), Some("limits.cpu")),
            (Exit::Signal(9), Some("limits.memory")),
            (Exit::Code(137), Some("limits.memory")),
            (Exit::Signal(11), None),
            (Exit::Code(9), None),
            (Exit::Code(0), None),
        ] {
            assert_eq!(none.ended(exit), None, "{exit}");
            let said = both.ended(exit);
            assert_eq!(said.is_some(), limit.is_some(), "{exit}: {said:?}");
            assert!(said.unwrap_or_default().contains(limit.unwrap_or_default()), "{exit}");
        }
    }
}
