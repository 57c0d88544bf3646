//! The first process of a sandbox: it finishes the walls, starts the tool, and collects what the tool leaves behind.
//!
//! It lives behind the same walls as the tool. When it ends, the kernel ends everything in its process namespace; it
//! ends when the tool has, when the launcher asks for it, and when the launcher is gone. Nothing inside can signal it,
//! because signals from inside do not reach the first process of a namespace unless it wants them.

pub mod ahead;
pub mod early;
mod network;
mod root;
mod rules;
mod users;

use alloc::vec::Vec;
use core::time::Duration;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::io::{Errno, Result};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};
use rustix::thread::{CapabilitySet, CapabilitySets};

use crate::folder::Folder;
use crate::kernel::clock::Moment;
use crate::kernel::descriptors::{close_on_start, take_stdin};
use crate::kernel::namespaces::{Namespaces, enter_new};
use crate::kernel::numbers;
use crate::kernel::processes::copy_with;
use crate::kernel::seccomp::{self, Step};
use crate::kernel::signals;
use crate::limits::renounce_privileges;
use crate::memory::keep_memory_private;
use crate::plan::{Builder, Sandbox};
use crate::start::{self, Given};
use crate::wire::{self, Exit, Launch, Limit, Limits, Report, Stage, Wall};
use crate::{ending, limits};

use ahead::Cell;
use network::{Network, offer_proxy};
use root::Root;
use rules::Rules;
pub use users::Users;

/// Whether something was done, or what is to be told of it.
type Done<T> = core::result::Result<T, Report>;

/// The second argument by which a launcher knows that a container engine has started it, inside; behind it stands where its
/// order comes from.
pub const ROLE_CONTAINED: &str = "inside-contained";

/// Becomes the first process of a container. Its streams come through the socket too: those of an engine are not needed.
pub fn serve_contained(socket: &[u8]) -> Result<()> {
    let control =
        rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    rustix::net::connect(&control, &SocketAddrUnix::new(socket)?)?;
    let Some(((), streams)) = wire::receive::<()>(&control)? else { return Ok(()) };
    let [stdout, stderr] = streams.as_slice() else { return Err(Errno::INVAL) };
    rustix::stdio::dup2_stdout(stdout)?;
    rustix::stdio::dup2_stderr(stderr)?;
    drop(streams);
    close_on_start(3)?;
    take_order(&control)
}

/// Becomes the first process, where `bwrap` has started it.
pub fn serve(readiness: Readiness) -> Result<()> {
    close_on_start(3)?;
    let control = take_stdin()?;
    wait_unseen(readiness, &control)?;
    take_order(&control)
}

/// What the first process is about to be told is for nobody of the same user to see, and they may have all the time they
/// want to look at it.
fn wait_unseen(readiness: Readiness, control: &OwnedFd) -> Result<()> {
    keep_memory_private()?;
    match readiness {
        Readiness::Told => wire::send_all(control, &wire::frame(&())?, &[]),
        Readiness::Untold => Ok(()),
    }
}

fn take_order(control: &OwnedFd) -> Result<()> {
    let Some((launch, descriptors)) = wire::receive::<Launch>(control)? else { return Ok(()) };
    let given = Given::sort(&launch, descriptors);
    live(Ok(Standing::Everything), &launch, given, control, Keeper::Launcher)
}

/// Makes the first process of an order that is there, as a copy of this one. In the copy this never returns.
pub fn copy(launch: &Launch, given: Given, control: &OwnedFd) -> Done<Pid> {
    let kept = given.inside().into_iter().chain([control.as_fd()]);
    let kept: Vec<i32> = kept.map(|kept| kept.as_raw_fd()).collect();
    let first = copy_with(&kept, || {
        rustix::stdio::dup2_stdin(control)?;
        let is_bounded = launch.limits.pids.is_none();
        live(Beginning::apart(is_bounded).map(Standing::Begun), launch, given, control, Keeper::Launcher)
    });
    first.map_err(Stage::Wall(Wall::Namespaces).failed())
}

/// Whether the first process says that it is ready for its order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readiness {
    /// Somebody waits for it.
    Told,
    /// The order is sent anyway.
    Untold,
}

impl Readiness {
    const BOTH: [Self; 2] = [Self::Told, Self::Untold];

    /// The second argument by which a launcher knows that it is inside, and this.
    pub const fn role(self) -> &'static str {
        match self {
            Self::Told => "inside-ahead",
            Self::Untold => "inside",
        }
    }

    /// What this argument says.
    pub fn of(role: &[u8]) -> Option<Self> {
        Self::BOTH.into_iter().find(|readiness| readiness.role().as_bytes() == role)
    }
}

/// What stands already of the walls that are not put up around a single process.
enum Standing {
    /// All: somebody else has built them.
    Everything,
    /// What is the same for every order.
    Begun(Beginning),
    /// All that was known before the order.
    Cell(Cell),
}

/// Who sees to it that a call ends in time, and that nothing of it stays.
enum Keeper {
    /// The launcher, outside.
    Launcher,
    /// The first process, which is the launcher.
    First(Option<Folder>),
}

/// The whole life of the first process.
fn live(
    standing: Done<Standing>,
    launch: &Launch,
    given: Given,
    control: &OwnedFd,
    keeper: Keeper,
) -> Result<()> {
    let is_alone = matches!(keeper, Keeper::First(_));
    let report = match standing.and_then(|standing| begin(standing, launch, given, &keeper)) {
        Ok(tool) => {
            let grace = Duration::from_millis(launch.grace_ms);
            let time = is_alone.then_some(Duration::from_millis(launch.timeout_ms));
            let deadline = time.and_then(|time| Moment::now().after(time));
            let outcome = tool.attend(control, grace, deadline)?;
            // Nobody outside can ask those inside a container to end.
            let is_contained = launch.sandbox.as_ref().is_some_and(Sandbox::is_contained);
            if !matches!(outcome, Report::Ended(_)) && (is_alone || is_contained) {
                tool.end_everybody(grace);
            }
            if outcome == Report::Cancelled && !is_alone {
                // There is nobody to tell.
                return Ok(());
            }
            outcome
        }
        Err(report) => report,
    };
    // Whoever hears of the end finds nothing of it.
    drop(keeper);
    wire::send_all(control, &wire::frame(&report)?, &[])
}

fn begin(standing: Standing, launch: &Launch, mut given: Given, keeper: &Keeper) -> Done<Tool> {
    let Some(sandbox) = &launch.sandbox else {
        return Err(Stage::Prepare.in_vain());
    };
    let is_native = matches!(sandbox.builder, Builder::Native);
    let mut maker = None;
    let walls = match standing {
        Standing::Cell(cell) => cell.complete(sandbox)?,
        Standing::Begun(begun) => {
            let Beginning { mut root, network } = begun;
            root.show_all(&sandbox.view)?;
            let walls = Walls::begin(sandbox)?;
            root.finish()?;
            network.move_in(sandbox.sockets).map_err(Stage::Wall(Wall::Namespaces).failed())?;
            maker = Some(network);
            walls
        }
        Standing::Everything => {
            recognise(sandbox)?;
            renounce_privileges().map_err(Stage::Wall(Wall::Privileges).failed())?;
            Walls::begin(sandbox)?
        }
    };
    if let Keeper::First(Some(folder)) = keeper {
        walls.rules.let_go(folder.around()).map_err(Stage::Wall(Wall::Landlock).failed())?;
    }
    if let Some(channel) = given.proxy.take() {
        offer_proxy(&channel).map_err(Stage::Wall(Wall::Network).failed())?;
    }
    let endings = signals::endings().map_err(Stage::Prepare.failed())?;
    let tool = start::start(launch, &mut given, || {
        limits::confine(&launch.limits)?;
        // In a container the engine counts.
        if !sandbox.is_contained() {
            // Those of ours that are counted in the same namespace: this process, and a launcher that made it itself.
            let ours = if is_native { 2 } else { 1 };
            let most = launch.limits.pids.unwrap_or(Limits::ROOM).saturating_add(ours);
            limits::bound_processes(most).map_err(Stage::Limit(Limit::Pids).failed())?;
        }
        walls.close_in()?;
        // It has had its end announced, and the tool finds nobody here but this process.
        drop(maker);
        Ok(())
    })?;
    Ok(Tool { pid: tool, endings })
}

/// Whether what is shown is what the launcher found: a name may have come to mean something else since.
fn recognise(sandbox: &Sandbox) -> Done<()> {
    if sandbox.found.len() != sandbox.view.len() {
        return Err(Stage::Prepare.in_vain());
    }
    for (number, (shown, found)) in sandbox.view.iter().zip(&sandbox.found).enumerate() {
        let wall = || Stage::Wall(Wall::Shown(number));
        let Some(found) = *found else { continue };
        let stat = rustix::fs::stat(shown.place()).map_err(wall().failed())?;
        if (stat.st_dev, stat.st_ino) != found {
            return Err(wall().failed()(Errno::LOOP));
        }
    }
    Ok(())
}

/// What can be begun without an order: a root that shows nothing yet, and a network that is being made beside it.
struct Beginning {
    root: Root,
    network: Network,
}

impl Beginning {
    /// In namespaces that are new to this process, besides those that it was born in.
    fn apart(is_bounded: bool) -> Done<Self> {
        let others = Namespaces::MOUNTS.and(Namespaces::NAMES).and(Namespaces::CONTROL_GROUPS);
        let network = enter_new(others).and_then(|()| Network::begin());
        Self::with(network.map_err(Stage::Wall(Wall::Namespaces).failed())?, is_bounded)
    }

    /// In the namespaces that this process is in.
    fn with(network: Network, is_bounded: bool) -> Done<Self> {
        if is_bounded && numbers::are_bounded_apart() {
            // Who may not do so is bounded by a limit that the tool inherits, unless it is root in a container.
            let _ = numbers::keep_few();
        }
        rustix::system::sethostname(b"kiwi").map_err(Stage::Wall(Wall::Namespaces).failed())?;
        Ok(Self { root: Root::begin()?, network })
    }
}

/// The walls that a process can only build around itself, as far as they do not hinder it from building the others.
struct Walls {
    rules: Rules,
    last: Vec<Step>,
}

impl Walls {
    /// Begins with them, where everything is shown that is known.
    fn begin(sandbox: &Sandbox) -> Done<Self> {
        let rules = Rules::write(sandbox).map_err(Stage::Wall(Wall::Landlock).failed())?;
        let filters = &sandbox.filters;
        let early = filters.early.steps().and_then(|early| seccomp::apply(&early));
        let last = early.and_then(|()| filters.last.steps()).map_err(Stage::Wall(Wall::Seccomp).failed())?;
        Ok(Self { rules, last })
    }

    fn close_in(self) -> Done<()> {
        drop_privileges().map_err(Stage::Wall(Wall::Privileges).failed())?;
        self.rules.enforce().map_err(Stage::Wall(Wall::Landlock).failed())?;
        seccomp::apply(&self.last).map_err(Stage::Wall(Wall::Seccomp).failed())
    }
}

fn drop_privileges() -> Result<()> {
    // Nobody inside looks into this process or takes it over.
    keep_memory_private()?;
    let none = CapabilitySet::empty();
    rustix::thread::set_capabilities(
        None,
        CapabilitySets { effective: none, permitted: none, inheritable: none },
    )
}

struct Tool {
    pid: Pid,
    /// Readable when a child has ended.
    endings: OwnedFd,
}

impl Tool {
    /// Stays until nobody is left, or the grace after the tool's own end is over; until the time is up; or until whoever
    /// orders here is gone.
    fn attend(&self, control: &OwnedFd, grace: Duration, deadline: Option<Moment>) -> Result<Report> {
        let mut ended: Option<(Exit, Option<Moment>)> = None;
        loop {
            let is_alone = self.reap(|exit| {
                ended.get_or_insert_with(|| (exit, Moment::now().after(grace)));
            });
            let left = match ended {
                Some((exit, _)) if is_alone => return Ok(Report::Ended(exit)),
                Some((exit, until)) => {
                    let left = until.map(|until| until.left().unwrap_or_default());
                    if left.is_some_and(|left| left.is_zero()) {
                        // Everybody in this namespace but ourselves.
                        signals::everybody(Signal::KILL);
                        ending::wait_for_all();
                        return Ok(Report::Ended(exit));
                    }
                    left
                }
                None => {
                    let left = deadline.map(|deadline| deadline.left().unwrap_or_default());
                    if left.is_some_and(|left| left.is_zero()) {
                        return Ok(Report::TimedOut);
                    }
                    left
                }
            };
            let timeout = left.and_then(|left| Timespec::try_from(left).ok());
            let mut fds = [PollFd::new(&self.endings, PollFlags::IN), PollFd::new(control, PollFlags::RDHUP)];
            match rustix::event::poll(&mut fds, timeout.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
            let [_, control] = &fds;
            if !control.revents().is_empty() {
                // A tool that ended in the same moment has ended by itself.
                let mut exit = None;
                let is_alone = self.reap(|ended| exit = Some(ended));
                let exit = exit.or(ended.map(|(exit, _)| exit)).filter(|_| is_alone);
                return Ok(exit.map_or(Report::Cancelled, Report::Ended));
            }
            // Who has ended is asked above.
            while rustix::io::read(&self.endings, &mut [0_u8; SIGNAL]).is_ok() {}
        }
    }

    /// Asks everybody to end, waits for so long, and makes them.
    fn end_everybody(&self, grace: Duration) {
        let until = Moment::now().after(grace);
        ask_everybody();
        let mut pauses = ending::Pauses::default();
        while !self.reap(|_| {}) {
            if until.is_some_and(Moment::is_over) {
                signals::everybody(Signal::KILL);
                ending::wait_for_all();
                return;
            }
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
                Ok(Some(_)) | Err(Errno::INTR) => {}
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

/// How many bytes tell of one signal.
const SIGNAL: usize = 128;

/// Asks everybody in this namespace but ourselves to end. A stopped process acts on it when continued.
fn ask_everybody() {
    signals::everybody(Signal::TERM);
    signals::everybody(Signal::CONT);
}

fn exit(status: WaitStatus) -> Exit {
    let code = status.exit_status().map(Exit::Code);
    code.or_else(|| status.terminating_signal().map(Exit::Signal)).unwrap_or(Exit::Signal(0))
}
