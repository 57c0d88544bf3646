//! The first process of a sandbox: it finishes the walls, starts the tool, and collects what the tool leaves behind.
//!
//! It lives behind the same walls as the tool. When it ends, the kernel ends everything in its process namespace; it
//! ends when the tool has, when the launcher asks for it, and when the launcher is gone. Nothing inside can signal it,
//! because signals from inside do not reach the first process of a namespace unless it wants them.

mod ahead;
mod attributes;
mod fork;
mod root;
mod rules;

use nix::sched::CloneFlags;
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, WaitOptions, WaitStatus};
use rustix::thread::{CapabilitySet, CapabilitySets, LinkNameSpaceType};
use seccompiler::BpfProgram;
use std::ffi::OsString;
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use super::start::{self, Given, failed};
use super::{ending, limits};
use crate::memory::keep_memory_private;
use crate::process::Exit;
use crate::sandbox::{Builder, PROXY, Sandbox};
use crate::wire::{self, Launch, Limit, Report, Stage, Wall};

use ahead::Cell;
pub use fork::{fork, fork_ahead};
use root::Root;
use rules::Rules;

/// The second argument by which a launcher knows that it is inside.
pub const ROLE: &str = "inside";
/// The same for one whose order is still to come, and who therefore says when it is ready.
pub const ROLE_AHEAD: &str = "inside-ahead";

/// The same for one that a container engine has started; behind it stands where its order comes from.
pub const ROLE_CONTAINED: &str = "inside-contained";

/// Becomes the first process of a container. Its streams come through the socket too: those of an engine are not needed.
pub fn serve_contained(socket: Option<OsString>) -> io::Result<()> {
    let control = OwnedFd::from(UnixStream::connect(socket.unwrap_or_default())?);
    let Some(((), streams)) = wire::receive::<()>(&control)? else { return Ok(()) };
    let [stdout, stderr] = streams.as_slice() else { return Err(io::ErrorKind::InvalidData.into()) };
    rustix::stdio::dup2_stdout(stdout)?;
    rustix::stdio::dup2_stderr(stderr)?;
    drop(streams);
    close_fds::set_fds_cloexec(3, &[]);
    take_order(&control)
}

/// Becomes the first process, where `bwrap` has started it.
pub fn serve(is_ahead: bool) -> io::Result<()> {
    close_fds::set_fds_cloexec(3, &[]);
    let control = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    if is_ahead {
        ahead::wait_unseen(&control)?;
    }
    take_order(&control)
}

fn take_order(control: &OwnedFd) -> io::Result<()> {
    let Some((launch, descriptors)) = wire::receive::<Launch>(control)? else { return Ok(()) };
    let given = Given::sort(&launch, descriptors);
    live(&launch, given, control)
}

/// The whole life of the first process.
fn live(launch: &Launch, given: Given, control: &OwnedFd) -> io::Result<()> {
    live_in(None, launch, given, control)
}

/// The same in walls that stand already, if they do.
fn live_in(cell: Option<Cell>, launch: &Launch, given: Given, control: &OwnedFd) -> io::Result<()> {
    let report = match begin(cell, launch, given, control) {
        Ok(mut tool) => {
            let grace = Duration::from_millis(launch.grace_ms);
            let Some(exit) = tool.attend(control, grace)? else {
                // Nobody outside can ask those inside a container to end.
                if launch.sandbox.as_ref().is_some_and(Sandbox::is_contained) {
                    tool.end_everybody(grace);
                }
                return Ok(());
            };
            Report::Ended(exit)
        }
        Err(report) => report,
    };
    wire::send_all(control, &wire::frame(&report)?, &[])
}

fn begin(cell: Option<Cell>, launch: &Launch, mut given: Given, control: &OwnedFd) -> Result<Tool, Report> {
    let Some(sandbox) = &launch.sandbox else {
        return Err(Report::NotStarted { stage: Stage::Prepare, errno: 0 });
    };
    let is_native = matches!(sandbox.builder, Builder::Native);
    let walls = match cell {
        Some(cell) => cell.complete(sandbox)?,
        None if is_native => {
            let namespaces = || failed::<io::Error>(Stage::Wall(Wall::Namespaces));
            enter_namespaces().map_err(namespaces())?;
            let root = Root::build(&sandbox.view)?;
            let walls = Walls::prepare(sandbox)?;
            root.finish()?;
            move_on(control).map_err(namespaces())?;
            walls
        }
        None => {
            recognise(sandbox, |_| true)?;
            Walls::prepare(sandbox)?
        }
    };
    if let Some(channel) = given.proxy.take() {
        offer_proxy(&channel).map_err(failed(Stage::Wall(Wall::Network)))?;
    }
    let mut children = SigSet::empty();
    children.add(Signal::SIGCHLD);
    let prepare = || failed::<nix::errno::Errno>(Stage::Prepare);
    children.thread_block().map_err(prepare())?;
    let endings =
        SignalFd::with_flags(&children, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK).map_err(prepare())?;
    let tool = start::start(launch, &mut given, || {
        limits::confine(&launch.limits)?;
        // In a container the engine counts.
        if let Some(count) = launch.limits.pids.filter(|_| !sandbox.is_contained()) {
            // Those of ours that are counted in the same namespace: this process, and a launcher that made it itself.
            let ours = if is_native { 2 } else { 1 };
            let most = count.saturating_add(ours);
            limits::bound_processes(most).map_err(failed(Stage::Limit(Limit::Pids)))?;
        }
        walls.close_in()
    })?;
    Ok(Tool { pid: tool, endings })
}

/// Whether what is shown, as far as it is asked for, is what the launcher found: a name may have come to mean something
/// else since.
fn recognise(sandbox: &Sandbox, is_asked: impl Fn(usize) -> bool) -> Result<(), Report> {
    if sandbox.found.len() != sandbox.view.len() {
        return Err(Report::NotStarted { stage: Stage::Prepare, errno: 0 });
    }
    let all = sandbox.view.iter().zip(&sandbox.found).enumerate();
    for (number, (shown, found)) in all.filter(|(number, _)| is_asked(*number)) {
        let wall = || Stage::Wall(Wall::Shown(number));
        let Some(found) = *found else { continue };
        let stat = rustix::fs::stat(shown.at()).map_err(failed(wall()))?;
        if (stat.st_dev, stat.st_ino) != found {
            return Err(failed(wall())(rustix::io::Errno::LOOP));
        }
    }
    Ok(())
}

/// Namespaces of the first process's own, besides those it was born in.
fn enter_namespaces() -> io::Result<()> {
    nix::sched::unshare(CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWUTS | CloneFlags::CLONE_NEWCGROUP)?;
    Ok(rustix::system::sethostname(b"kiwi")?)
}

/// Waits for the namespaces that the launcher makes meanwhile, and moves into them.
fn move_on(control: &OwnedFd) -> io::Result<()> {
    let Some(((), made)) = wire::receive::<()>(control)? else {
        return Err(io::ErrorKind::UnexpectedEof.into());
    };
    let kinds = [LinkNameSpaceType::Network, LinkNameSpaceType::InterProcessCommunication];
    if made.len() != kinds.len() {
        return Err(io::ErrorKind::InvalidData.into());
    }
    for (namespace, kind) in made.iter().zip(kinds) {
        rustix::thread::move_into_link_name_space(namespace.as_fd(), Some(kind))?;
    }
    Ok(())
}

/// The walls that a process can only build around itself, ready to be put up.
struct Walls {
    rules: Rules,
    filter: BpfProgram,
}

impl Walls {
    /// Writes them down, and gives up what nobody behind them gets.
    fn prepare(sandbox: &Sandbox) -> Result<Self, Report> {
        let rules = Rules::write(sandbox).map_err(failed(Stage::Wall(Wall::Landlock)))?;
        let filter = sandbox.filter.program().map_err(failed(Stage::Wall(Wall::Seccomp)))?;
        renounce_privileges().map_err(failed(Stage::Wall(Wall::Privileges)))?;
        Ok(Self { rules, filter })
    }

    fn close_in(self) -> Result<(), Report> {
        drop_privileges().map_err(failed(Stage::Wall(Wall::Privileges)))?;
        self.rules.enforce().map_err(failed(Stage::Wall(Wall::Landlock)))?;
        let applied = seccompiler::apply_filter(&self.filter).map_err(io::Error::other);
        applied.map_err(failed(Stage::Wall(Wall::Seccomp)))
    }
}

/// Whatever is started from here gets no privileges; this process keeps its own.
fn renounce_privileges() -> io::Result<()> {
    rustix::thread::clear_ambient_capability_set()?;
    let held = rustix::thread::capabilities(None)?.effective;
    if held.contains(CapabilitySet::SETPCAP) {
        for capability in (0..64).map(|bit| CapabilitySet::from_bits_retain(1 << bit)) {
            // The first number the kernel does not know is the end of the list.
            if rustix::thread::remove_capability_from_bounding_set(capability).is_err() {
                break;
            }
        }
    }
    Ok(())
}

fn drop_privileges() -> io::Result<()> {
    // Nobody inside looks into this process or takes it over.
    keep_memory_private()?;
    let none = CapabilitySet::empty();
    rustix::thread::set_capabilities(
        None,
        CapabilitySets { effective: none, permitted: none, inheritable: none },
    )?;
    Ok(())
}

/// Listens where the tool will look for the proxy. Who accepts the connections is outside: a socket belongs to the
/// network it was made in, whoever holds it.
fn offer_proxy(channel: &OwnedFd) -> io::Result<()> {
    let listener = TcpListener::bind(PROXY)?;
    wire::send_all(channel, &wire::frame(&())?, &[listener.as_fd()])
}

struct Tool {
    pid: Pid,
    /// Readable when a child has ended.
    endings: SignalFd,
}

impl Tool {
    /// Stays until nobody is left, or the grace after the tool's own end is over. `None`: the launcher is gone.
    fn attend(&mut self, control: &OwnedFd, grace: Duration) -> io::Result<Option<Exit>> {
        let mut ended: Option<(Exit, Instant)> = None;
        loop {
            let is_alone = self.reap(|exit| {
                ended.get_or_insert_with(|| (exit, Instant::now() + grace));
            });
            let left = match ended {
                Some((exit, _)) if is_alone => return Ok(Some(exit)),
                Some((exit, until)) => {
                    let left = until.checked_duration_since(Instant::now());
                    if left.is_none() {
                        // Everybody in this namespace but ourselves.
                        let _ = kill(nix::unistd::Pid::from_raw(-1), Signal::SIGKILL);
                        ending::wait_for_all();
                        return Ok(Some(exit));
                    }
                    left
                }
                None => None,
            };
            let timeout = left.and_then(|left| Timespec::try_from(left).ok());
            let mut fds = [PollFd::new(&self.endings, PollFlags::IN), PollFd::new(control, PollFlags::RDHUP)];
            match rustix::event::poll(&mut fds, timeout.as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
            let [_, control] = &fds;
            if !control.revents().is_empty() {
                return Ok(None);
            }
            while let Ok(Some(_)) = self.endings.read_signal() {}
        }
    }

    /// Asks everybody to end, and waits for so long; who is left ends with this process.
    fn end_everybody(&self, grace: Duration) {
        let until = Instant::now() + grace;
        ask_everybody();
        let mut pauses = ending::Pauses::default();
        while !self.reap(|_| {}) && Instant::now() < until {
            pauses.sleep();
        }
    }

    /// Takes leave of everybody who has ended; whether nobody is left. The tool's own end is told, and whoever it left
    /// behind is asked to end too.
    fn reap(&self, mut tell: impl FnMut(Exit)) -> bool {
        let mut has_ended = false;
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.pid => {
                    has_ended = true;
                    tell(exit(status));
                }
                Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
                Ok(None) if has_ended => {
                    ask_everybody();
                    return false;
                }
                Ok(None) => return false,
                Err(_) => return true,
            }
        }
    }
}

/// Asks everybody in this namespace but ourselves to end. A stopped process acts on it when continued.
fn ask_everybody() {
    for signal in [Signal::SIGTERM, Signal::SIGCONT] {
        let _ = kill(nix::unistd::Pid::from_raw(-1), signal);
    }
}

fn exit(status: WaitStatus) -> Exit {
    let code = status.exit_status().map(Exit::Code);
    code.or_else(|| status.terminating_signal().map(Exit::Signal)).unwrap_or(Exit::Signal(0))
}
