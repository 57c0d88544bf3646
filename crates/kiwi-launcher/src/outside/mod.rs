//! The outer side of a sandbox: namespaces are made here, by `bwrap` or by a container engine, and the first process inside
//! is started.

mod bubblewrap;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::process::Pid;

use crate::inside::{Readiness, Users};
use crate::plan::{Builder, EngineClient, Found, Sandbox, Shown};
use crate::start::Given;
use crate::wire::{self, Exit, Launch, Report, Stage, Wall};
use crate::{ending, inside};

/// A sandbox with its first process in it.
pub struct Outside {
    /// The first process, or whoever waits for it.
    pub first: Pid,
    /// When this closes, the first process leaves, and with it everything inside.
    pub status: OwnedFd,
    by: By,
    /// What was found of the host: as long as it is held, nothing else gets its number.
    held: Vec<OwnedFd>,
}

/// Who made it.
enum By {
    Launcher,
    Bubblewrap,
    Engine(Box<dyn Contained>),
}

/// Container engines, as far as this program can speak to them.
pub trait Engines {
    /// Has a container made, and waits for its first process. The sandbox it gives is the one to be told of: the same
    /// things, each as this engine shows it.
    fn contain(
        &self,
        engine: &EngineClient,
        launch: &Launch,
        sandbox: &Sandbox,
        control: &OwnedFd,
    ) -> Result<(Box<dyn Contained>, Sandbox), Report>;
}

/// A container with its first process in it.
pub trait Contained {
    /// Who runs as long as the container is there.
    fn client(&self) -> Pid;
    /// What the first process is told, and says.
    fn status(&self) -> rustix::io::Result<OwnedFd>;
    /// Ends everything inside, and waits until the engine has cleared up.
    fn end(&self, grace: Duration);
}

/// For a program that speaks to none.
#[derive(Debug, Clone, Copy)]
pub struct NoEngines;

impl Engines for NoEngines {
    fn contain(
        &self,
        _: &EngineClient,
        _: &Launch,
        _: &Sandbox,
        _: &OwnedFd,
    ) -> Result<(Box<dyn Contained>, Sandbox), Report> {
        Err(Stage::Wall(Wall::Container).in_vain())
    }
}

impl Outside {
    /// Builds the walls that can only be built from outside, and tells the first process the rest.
    pub fn start(
        launch: &Launch,
        sandbox: &Sandbox,
        given: Given,
        control: &OwnedFd,
        engines: &dyn Engines,
    ) -> Result<Self, Report> {
        match &sandbox.builder {
            Builder::Native => {
                Users::own().enter()?;
                let (status, theirs) = pair().map_err(Stage::Prepare.failed())?;
                Ok(Self::new(inside::copy(launch, given, &theirs)?, status, By::Launcher))
            }
            Builder::Bubblewrap(program) => {
                let is_bounded = launch.limits.pids.is_none();
                let outside = Self::bubblewrap(program.bytes(), sandbox, Readiness::Untold, is_bounded)?;
                outside.hand_over(launch, sandbox, given)
            }
            Builder::Container(engine) => {
                let (container, sandbox) = engines.contain(engine, launch, sandbox, control)?;
                let status = container.status().map_err(Stage::Prepare.failed())?;
                let outside = Self::new(container.client(), status, By::Engine(container));
                outside.hand_over(launch, &sandbox, given)
            }
        }
    }

    /// The same before there is an order: the first process gets it by [`Outside::hand_over`], once it has said that it is
    /// ready.
    pub fn prepare(sandbox: &Sandbox) -> Result<Self, Report> {
        match &sandbox.builder {
            Builder::Bubblewrap(program) => Self::bubblewrap(program.bytes(), sandbox, Readiness::Told, true),
            // Whoever has the launcher's own ready is behind them; of a container nobody asks for it.
            Builder::Native | Builder::Container(_) => Err(Stage::Prepare.in_vain()),
        }
    }

    fn bubblewrap(
        program: &[u8],
        sandbox: &Sandbox,
        readiness: Readiness,
        is_bounded: bool,
    ) -> Result<Self, Report> {
        let (status, theirs) = pair().map_err(Stage::Prepare.failed())?;
        let started = bubblewrap::start(program, sandbox, readiness.role(), theirs.as_fd(), is_bounded);
        let first = started.map_err(Stage::Wall(Wall::Bubblewrap).failed())?;
        Ok(Self::new(first, status, By::Bubblewrap))
    }

    const fn new(first: Pid, status: OwnedFd, by: By) -> Self {
        Self { first, status, by, held: Vec::new() }
    }

    /// Tells a first process its order, and what is on the host at this moment: it sees for itself whether that is what is
    /// shown to it.
    pub fn hand_over(mut self, launch: &Launch, sandbox: &Sandbox, given: Given) -> Result<Self, Report> {
        let told = look(&sandbox.view).and_then(|(found, held)| {
            self.held = held;
            let told = Launch { sandbox: Some(Sandbox { found, ..sandbox.clone() }), ..launch.clone() };
            wire::frame(&told).map_err(Stage::Prepare.failed())
        });
        match told {
            Ok(order) => {
                // It may be gone already; then it has said why, or whoever started it has.
                let _ = wire::send_all(&self.status, &order, &given.inside());
                drop(given);
                Ok(self)
            }
            Err(report) => {
                self.end(Duration::ZERO);
                Err(report)
            }
        }
    }

    /// Whether the first process has said something, or left.
    pub fn has_spoken(&self) -> bool {
        let mut fds = [PollFd::new(&self.status, PollFlags::IN)];
        rustix::event::poll(&mut fds, Some(&Timespec::default())).map_or(true, |count| count > 0)
    }

    /// What the first process has said, if it has.
    pub fn report(&self) -> Option<Report> {
        rustix::io::ioctl_fionbio(&self.status, true).ok()?;
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
            Exit::Code(_) => Stage::Wall(match self.by {
                By::Launcher => Wall::Namespaces,
                By::Bubblewrap => Wall::Bubblewrap,
                By::Engine(_) => Wall::Container,
            })
            .in_vain(),
            signal @ Exit::Signal(_) => Report::Ended(signal),
        })
    }
}

/// The two ends of a way between processes.
fn pair() -> rustix::io::Result<(OwnedFd, OwnedFd)> {
    rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
}

/// What is at each path of the host that is to be shown. `bwrap` takes names and follows links; whether what it shows is
/// what was found here without following any, the first process inside sees before anything else happens.
fn look(view: &[Shown]) -> Result<(Vec<Found>, Vec<OwnedFd>), Report> {
    let (mut found, mut held) = (Vec::new(), Vec::new());
    for (number, shown) in view.iter().enumerate() {
        let Some(from) = shown.source() else {
            found.push(None);
            continue;
        };
        let refused = || Stage::Wall(Wall::Shown(number)).failed();
        let file = find(from, OFlags::PATH | OFlags::CLOEXEC).map_err(refused())?;
        let stat = rustix::fs::fstat(&file).map_err(refused())?;
        found.push(Some((stat.st_dev, stat.st_ino)));
        held.push(file);
    }
    Ok((found, held))
}

/// Something of the host, with no link on the way.
fn find(path: &[u8], flags: OFlags) -> rustix::io::Result<OwnedFd> {
    rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)
}
