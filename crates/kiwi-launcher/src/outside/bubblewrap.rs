//! The walls of a sandbox in the words of `bwrap`.

use alloc::ffi::CString;
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;
use rustix::fd::{AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{MemfdFlags, Mode, OFlags};
use rustix::io::{Errno, FdFlags, Result};
use rustix::process::Pid;

use super::find;
use crate::ARGUMENT;
use crate::kernel::files::{is_within, text};
use crate::kernel::numbers;
use crate::kernel::processes::{Part, Program};
use crate::plan::{DEVICES, LINKS, Sandbox, Shown};

/// What `bwrap` makes in every case.
const MADE: [&str; 13] = [
    "--unshare-user",
    "--unshare-pid",
    "--unshare-ipc",
    "--unshare-uts",
    "--unshare-net",
    "--unshare-cgroup-try",
    "--as-pid-1",
    "--hostname",
    "kiwi",
    "--cap-drop",
    "ALL",
    "--proc",
    "/proc",
];

/// Starts `bwrap` with the launcher behind it, in this role; it takes its order through `stdin`. `is_bounded`: not more
/// processes than any tool needs.
pub fn start(
    program: &[u8],
    sandbox: &Sandbox,
    role: &str,
    stdin: BorrowedFd<'_>,
    is_bounded: bool,
) -> Result<Pid> {
    let mut words = Words::default();
    words.describe(sandbox)?;
    // This program need not be visible inside: it is started through a descriptor.
    let own = rustix::fs::open("/proc/self/exe", OFlags::RDONLY, Mode::empty())?;
    let own = format!("/proc/self/fd/{}", words.keep(own));
    words.add(["--chdir", "/", "--", &own, ARGUMENT, role]);
    let mut arguments = vec![text(program)?];
    for word in words.said {
        arguments.push(text(word)?);
    }
    let environment: Vec<CString> = Vec::new();
    let part = |among_few| Part::Tool { stdin, among_few };
    let bwrap = Program { path: text(program)?, arguments, environment, part: part(false) };
    // `bwrap` makes a namespace of its own in this one, and gives nobody there the right to bound it. Other users than root
    // are bounded by a limit that the tool inherits.
    if is_bounded && rustix::process::geteuid().is_root() && numbers::are_bounded_apart() {
        let among_few = Program { part: part(true), ..bwrap.clone() };
        match among_few.start() {
            // A root that may not do so, as in a container.
            Err(Errno::PERM | Errno::ACCESS | Errno::ROFS) => {}
            other => return other,
        }
    }
    bwrap.start()
}

/// What is said to `bwrap`.
#[derive(Default)]
struct Words {
    said: Vec<Vec<u8>>,
    /// What it is to read, or the launcher behind it.
    kept: Vec<OwnedFd>,
}

impl Words {
    fn add<W: AsRef<[u8]>>(&mut self, words: impl IntoIterator<Item = W>) {
        self.said.extend(words.into_iter().map(|word| word.as_ref().to_vec()));
    }

    fn keep(&mut self, file: OwnedFd) -> i32 {
        let number = file.as_raw_fd();
        self.kept.push(file);
        number
    }

    fn describe(&mut self, sandbox: &Sandbox) -> Result<()> {
        self.add(MADE);
        for device in DEVICES {
            self.add(["--dev-bind", device, device]);
        }
        for (at, to) in LINKS {
            self.add(["--symlink", to, at]);
        }
        let mut covered: Vec<&[u8]> = Vec::new();
        for (number, shown) in sandbox.view.iter().enumerate() {
            let at = shown.place();
            // On the root itself a folder stays empty because the root becomes read-only.
            let is_mount = |other: &Shown| {
                matches!(other, Shown::Bind { .. } | Shown::Entries { .. } | Shown::Private { .. })
            };
            let mut before = sandbox.view.iter().take(number);
            match shown {
                Shown::Bind { from, write, .. } => {
                    self.add([if *write { &b"--bind"[..] } else { b"--ro-bind" }, from.bytes(), at]);
                }
                Shown::Entries { from, .. } => self.add([b"--bind", from.bytes(), at]),
                Shown::Empty { .. }
                    if before.any(|other| is_mount(other) && is_within(at, other.place())) =>
                {
                    covered.push(at);
                    self.add([b"--tmpfs", at]);
                }
                Shown::Empty { .. } => self.add([b"--dir", at]),
                Shown::Private { .. } => self.add([b"--tmpfs", at]),
                Shown::Link { to, .. } => self.add([b"--symlink", to.bytes(), at]),
                Shown::File { text, .. } => self.file(readable(text)?, at),
                // What is read is what was found here: no name is looked up again.
                Shown::Copy { from, .. } => self.file(find(from.bytes(), OFlags::RDONLY)?, at),
            }
        }
        for at in covered.into_iter().chain([&b"/proc"[..], b"/"]) {
            self.add([b"--remount-ro", at]);
        }
        Ok(())
    }

    fn file(&mut self, file: OwnedFd, at: &[u8]) {
        let number = format!("{}", self.keep(file));
        self.add([b"--file", number.as_bytes(), at]);
    }
}

/// A descriptor from which this text can be read, and which the next program inherits.
fn readable(text: &str) -> Result<OwnedFd> {
    let file = rustix::fs::memfd_create("file", MemfdFlags::empty())?;
    rustix::io::pwrite(&file, text.as_bytes(), 0)?;
    rustix::io::fcntl_setfd(&file, FdFlags::empty())?;
    Ok(file)
}
