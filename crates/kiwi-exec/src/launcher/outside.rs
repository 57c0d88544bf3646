//! The outer side of a sandbox: namespaces are made here, by `bwrap` or by a container engine, and the first process inside
//! is started.
#![expect(clippy::disallowed_methods, reason = "starts the first process of a sandbox")]

use nix::sched::CloneFlags;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{CWD, MemfdFlags, Mode, OFlags, ResolveFlags};
use rustix::io::FdFlags;
use rustix::net::{AddressFamily, SendFlags, SocketType};
use rustix::process::Pid;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::container::Container;
use super::start::{Given, failed, pid};
use super::{ending, inside};
use crate::process::{Exit, Launcher};
use crate::sandbox::{Builder, DEVICES, Found, LINKS, Sandbox, Shown};
use crate::wire::{self, Launch, Report, Stage, Wall};

/// A sandbox with its first process in it.
pub struct Outside {
    /// The first process, or whoever waits for it.
    pub first: Pid,
    /// When this closes, the first process leaves, and with it everything inside.
    pub status: UnixStream,
    by: By,
    /// What was found of the host: as long as it is held, nothing else gets its number.
    held: Vec<OwnedFd>,
}

/// Who made it.
enum By {
    Launcher,
    Bubblewrap,
    Engine(Container),
}

impl Outside {
    /// Builds the walls that can only be built from outside, and tells the first process the rest.
    pub fn start(
        launch: &Launch,
        sandbox: &Sandbox,
        given: Given,
        control: &OwnedFd,
    ) -> Result<Self, Report> {
        match &sandbox.builder {
            Builder::Native => Self::native(sandbox, |theirs| inside::fork(launch, given, theirs)),
            Builder::Bubblewrap(program) => {
                let mut outside = Self::bubblewrap(program.as_os(), sandbox, inside::ROLE)?;
                outside.hand_over(launch, sandbox, &given)?;
                Ok(outside)
            }
            Builder::Container(engine) => {
                let (container, sandbox) = Container::start(engine, launch, sandbox, control)?;
                let status = container.status.try_clone().map_err(failed(Stage::Prepare))?;
                let (first, by) = (container.client, By::Engine(container));
                let mut outside = Self { first, status, by, held: Vec::new() };
                match outside.hand_over(launch, &sandbox, &given) {
                    Ok(()) => Ok(outside),
                    Err(report) => {
                        outside.end(Duration::ZERO);
                        Err(report)
                    }
                }
            }
        }
    }

    /// The same before there is an order: the first process gets it by [`Outside::hand_over`], once it has said that it is
    /// ready.
    pub fn prepare(sandbox: &Sandbox) -> Result<Self, Report> {
        match &sandbox.builder {
            Builder::Native => Self::native(sandbox, |theirs| inside::fork_ahead(sandbox, theirs)),
            Builder::Bubblewrap(program) => Self::bubblewrap(program.as_os(), sandbox, inside::ROLE_AHEAD),
            // Nobody asks for it.
            Builder::Container(_) => Err(Report::NotStarted { stage: Stage::Prepare, errno: 0 }),
        }
    }

    fn native(
        sandbox: &Sandbox,
        fork: impl FnOnce(UnixStream) -> Result<Pid, Report>,
    ) -> Result<Self, Report> {
        let (status, theirs) = UnixStream::pair().map_err(failed(Stage::Prepare))?;
        let refused = || failed::<io::Error>(Stage::Wall(Wall::Namespaces));
        enter_namespaces().map_err(refused())?;
        let first = fork(theirs)?;
        // A network takes as long to make as a root: the first process makes the one, the launcher the other.
        // Without it the first process starts nothing, and leaves when nobody can hand it over any more.
        let made = make_namespaces(sandbox.sockets).map_err(refused())?;
        let order = wire::frame(&()).map_err(refused())?;
        // It may be gone already; then it has said why.
        let _ = wire::send_all(&status, &order, &made.each_ref().map(AsFd::as_fd));
        Ok(Self { first, status, by: By::Launcher, held: Vec::new() })
    }

    fn bubblewrap(program: &OsStr, sandbox: &Sandbox, role: &str) -> Result<Self, Report> {
        let (status, theirs) = UnixStream::pair().map_err(failed(Stage::Prepare))?;
        let refused = || failed::<io::Error>(Stage::Wall(Wall::Bubblewrap));
        let mut kept = Vec::new();
        let mut command = bubblewrap(program, sandbox, &mut kept).map_err(refused())?;
        command.arg(Launcher::ARGUMENT).arg(role).env_clear().process_group(0);
        command.stdin(Stdio::from(OwnedFd::from(theirs)));
        let child = command.spawn().map_err(refused())?;
        let first = pid(&child).ok_or(Report::NotStarted { stage: Stage::Prepare, errno: 0 })?;
        Ok(Self { first, status, by: By::Bubblewrap, held: Vec::new() })
    }

    /// Tells a first process that has none its order, and what is on the host at this moment: it sees for itself whether
    /// that is what is shown to it.
    pub fn hand_over(&mut self, launch: &Launch, sandbox: &Sandbox, given: &Given) -> Result<(), Report> {
        let (found, held) = look(&sandbox.view)?;
        self.held = held;
        let told = Launch { sandbox: Some(Sandbox { found, ..sandbox.clone() }), ..launch.clone() };
        let order = wire::frame(&told).map_err(failed(Stage::Prepare))?;
        // It may be gone already; then it has said why, or whoever started it has.
        let _ = wire::send_all(&self.status, &order, &given.inside());
        Ok(())
    }

    /// Whether the first process has said something, or left.
    pub fn has_spoken(&self) -> bool {
        let mut fds = [PollFd::new(&self.status, PollFlags::IN)];
        rustix::event::poll(&mut fds, Some(&Timespec::default())).map_or(true, |count| count > 0)
    }

    /// What the first process has said, if it has.
    pub fn report(&self) -> Option<Report> {
        self.status.set_nonblocking(true).ok()?;
        wire::receive::<Report>(&self.status).ok().flatten().map(|(report, _)| report)
    }

    /// Whether an engine made it, which still has to clear up when all inside have ended.
    pub const fn is_contained(&self) -> bool {
        matches!(self.by, By::Engine(_))
    }

    /// Ends everything inside, and everybody who waits for it.
    pub fn end(&self, grace: Duration) {
        match &self.by {
            By::Engine(container) => container.end(grace),
            By::Launcher | By::Bubblewrap => ending::end_everything(grace),
        }
    }

    /// What the end of the outermost process means.
    pub fn conclude(&self, exit: Exit) -> Report {
        self.report().unwrap_or(match exit {
            // So `bwrap` and engines tell of a signal.
            Exit::Code(code @ 129..=192) if !matches!(self.by, By::Launcher) => {
                Report::Ended(Exit::Signal(code - 128))
            }
            Exit::Code(_) => {
                let wall = match self.by {
                    By::Launcher => Wall::Namespaces,
                    By::Bubblewrap => Wall::Bubblewrap,
                    By::Engine(_) => Wall::Container,
                };
                Report::NotStarted { stage: Stage::Wall(wall), errno: 0 }
            }
            signal @ Exit::Signal(_) => Report::Ended(signal),
        })
    }
}

/// The first namespaces of the tool's own; its first process makes those that are made quickly, and the process
/// namespace begins with it. The launcher keeps its view of files.
fn enter_namespaces() -> io::Result<()> {
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    nix::sched::unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWPID)?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
}

/// Namespaces for the first process to move into: a network with nothing but a loopback, which is up where there are
/// sockets that could use it, and queues and shared memory with nothing in them.
fn make_namespaces(sockets: bool) -> io::Result<[OwnedFd; 2]> {
    nix::sched::unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWIPC)?;
    if sockets {
        raise_loopback()?;
    }
    let open = |path| rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
    Ok([open("/proc/self/ns/net")?, open("/proc/self/ns/ipc")?])
}

/// Sets the flag "up" of the first network device, which in a new namespace is the loopback.
fn raise_loopback() -> io::Result<()> {
    const RTM_NEWLINK: u16 = 16;
    const NLM_F_REQUEST: u16 = 1;
    const IFF_UP: u32 = 1;
    let route = rustix::net::socket(AddressFamily::NETLINK, SocketType::RAW, None)?;
    let mut message = Vec::with_capacity(32);
    // Header: length, kind, flags, sequence, sender. Body: family, kind, index, flags, which flags.
    message.extend_from_slice(&32_u32.to_ne_bytes());
    message.extend_from_slice(&RTM_NEWLINK.to_ne_bytes());
    message.extend_from_slice(&NLM_F_REQUEST.to_ne_bytes());
    message.extend_from_slice(&[0; 12]);
    message.extend_from_slice(&1_u32.to_ne_bytes());
    message.extend_from_slice(&IFF_UP.to_ne_bytes());
    message.extend_from_slice(&IFF_UP.to_ne_bytes());
    rustix::net::send(&route, &message, SendFlags::empty())?;
    Ok(())
}

/// What is at each path of the host that is to be shown. `bwrap` takes names and follows links; whether what it shows is
/// what was found here without following any, the first process inside sees before anything else happens.
fn look(view: &[Shown]) -> Result<(Vec<Found>, Vec<OwnedFd>), Report> {
    let (mut found, mut held) = (Vec::new(), Vec::new());
    for (number, shown) in view.iter().enumerate() {
        let Some(from) = shown.from() else {
            found.push(None);
            continue;
        };
        let refused = |errno| failed::<rustix::io::Errno>(Stage::Wall(Wall::Shown(number)))(errno);
        let file = find(from, OFlags::PATH | OFlags::CLOEXEC).map_err(refused)?;
        let stat = rustix::fs::fstat(&file).map_err(refused)?;
        found.push(Some((stat.st_dev, stat.st_ino)));
        held.push(file);
    }
    Ok((found, held))
}

/// Something of the host, with no link on the way.
fn find(path: &Path, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)
}

/// The same walls in the words of `bwrap`. What it is to read through descriptors is put into `kept`.
fn bubblewrap(program: &OsStr, sandbox: &Sandbox, kept: &mut Vec<OwnedFd>) -> io::Result<Command> {
    let mut command = Command::new(program);
    command.args(["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net"]);
    command.args(["--unshare-cgroup-try", "--as-pid-1", "--hostname", "kiwi", "--cap-drop", "ALL"]);
    command.args(["--proc", "/proc"]);
    for device in DEVICES {
        command.args(["--dev-bind", device, device]);
    }
    for (at, to) in LINKS {
        command.args(["--symlink", to, at]);
    }
    let mut covered: Vec<&OsStr> = Vec::new();
    let mut keep = |file: OwnedFd| {
        let number = OsString::from(file.as_raw_fd().to_string());
        kept.push(file);
        number
    };
    let words = |words: &[&OsStr]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<OsString>>();
    for (shown, place) in sandbox.view.iter().zip(0..) {
        let at = shown.at().as_os_str();
        // On the root itself a folder stays empty because the root becomes read-only.
        let is_mount = |other: &Shown| {
            matches!(other, Shown::Bind { .. } | Shown::Entries { .. } | Shown::Private { .. })
        };
        let mut before = sandbox.view.iter().take(place);
        let is_covered = before.any(|other| is_mount(other) && shown.at().starts_with(other.at()));
        command.args(match shown {
            Shown::Bind { from, write, .. } => {
                words(&[OsStr::new(if *write { "--bind" } else { "--ro-bind" }), from.as_os(), at])
            }
            Shown::Entries { from, .. } => words(&[OsStr::new("--bind"), from.as_os(), at]),
            Shown::Empty { .. } if is_covered => {
                covered.push(at);
                words(&[OsStr::new("--tmpfs"), at])
            }
            Shown::Empty { .. } => words(&[OsStr::new("--dir"), at]),
            Shown::Private { .. } => words(&[OsStr::new("--tmpfs"), at]),
            Shown::Link { to, .. } => words(&[OsStr::new("--symlink"), to.as_os(), at]),
            Shown::File { text, .. } => words(&[OsStr::new("--file"), &keep(readable(text)?), at]),
            // What is read is what was found here: no name is looked up again.
            Shown::Copy { from, .. } => {
                let file = find(from.as_path(), OFlags::RDONLY)?;
                words(&[OsStr::new("--file"), &keep(file), at])
            }
        });
    }
    for at in covered.into_iter().chain(["/proc", "/"].map(OsStr::new)) {
        command.arg("--remount-ro").arg(at);
    }
    // This program need not be visible inside: it is started through a descriptor.
    let own = rustix::fs::open("/proc/self/exe", OFlags::RDONLY, Mode::empty())?;
    let mut program = OsString::from("/proc/self/fd/");
    program.push(keep(own));
    command.args(["--chdir", "/", "--"]).arg(program);
    Ok(command)
}

/// A descriptor from which this text can be read, and which the next program inherits.
fn readable(text: &str) -> io::Result<OwnedFd> {
    let file = rustix::fs::memfd_create("file", MemfdFlags::empty())?;
    rustix::io::pwrite(&file, text.as_bytes(), 0)?;
    rustix::io::fcntl_setfd(&file, FdFlags::empty())?;
    Ok(file)
}
