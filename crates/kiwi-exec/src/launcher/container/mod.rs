//! A sandbox whose walls a container engine builds.
//!
//! The container sees what the sandbox shows and nothing of an image. Its first process is this program, which takes its
//! order through a socket and then does what it does behind `bwrap`. Nothing in a container descends from the launcher,
//! so nobody here can signal it; what holds it is the socket: without the other end the first process ends everything,
//! and the engine removes the container. That is so whoever was killed, and when.

mod mounts;

use kiwi_launcher::plan::{EngineClient, EngineKind, Sandbox};
use kiwi_launcher::wire::{self, Launch, Limits, Report, Stage, Wall};
use kiwi_launcher::{Contained, Engines, ending, inside};
use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, PidfdFlags};
use std::io;
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::container::{Client, Life, holds_limits};
use crate::process::Launcher;
use crate::snapshot::Snapshot;

/// Where this program and its socket are found inside.
const OURS: &str = "/.kiwi";
/// What holds every container, and keeps its engine from writing what only its first process says.
const HELD: [&str; 9] = [
    "--attach=stderr",
    "--log-driver=none",
    "--network=none",
    "--cap-drop=ALL",
    "--security-opt=no-new-privileges",
    "--security-opt=label=disable",
    "--read-only",
    "--hostname=kiwi",
    "--workdir=/",
];
/// How long an engine has to clear up, once everything inside has ended.
const PATIENCE: Duration = Duration::from_secs(1);

/// The engines that Kiwi can speak to.
pub struct OfKiwi;

/// A container with its first process in it.
struct Container {
    client: Pid,
    status: UnixStream,
    engine: Client,
    _folder: Snapshot,
}

impl Engines for OfKiwi {
    fn contain(
        &self,
        engine: &EngineClient,
        launch: &Launch,
        sandbox: &Sandbox,
        control: &OwnedFd,
    ) -> Result<(Box<dyn Contained>, Sandbox), Report> {
        let refused = || failed(Stage::Wall(Wall::Container));
        let other = |_| Stage::Prepare.in_vain();
        let path = engine.folder.as_path();
        let folder = Snapshot::new(path.to_owned());
        folder.create().map_err(other)?;
        let sandbox = Sandbox { view: mounts::prepare(path, &sandbox.view)?, ..sandbox.clone() };
        let listener = UnixListener::bind(path.join("socket")).map_err(refused())?;
        let life = Life::own().ok_or(io::ErrorKind::NotFound.into()).map_err(refused())?;
        let client = Client::new(engine.program.as_os().to_owned(), life, &engine.name).within(&engine.env);

        let mut command = client.run_command();
        command.args(words(engine, launch)).args(mounts::words(&sandbox.view, path).map_err(refused())?);
        command.arg("--entrypoint").arg(format!("{OURS}/launcher")).arg(&engine.image);
        command.args([Launcher::ARGUMENT, inside::ROLE_CONTAINED]).arg(format!("{OURS}/socket"));
        // What it says is why there is no container. Podman writes about memory that ran out where it is started.
        command.current_dir(path).stdin(Stdio::null()).stdout(Stdio::null()).process_group(0);
        let child = command.spawn().map_err(refused())?;
        let started = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let started = started.ok_or(Stage::Prepare.in_vain())?;
        // While it starts there is time to look for what others left.
        let listing = client.list();
        let greeted = greet(&listener, started, control);
        client.reap(listing);
        match greeted {
            Ok(status) => {
                let container = Container { client: started, status, engine: client, _folder: folder };
                Ok((Box::new(container), sandbox))
            }
            Err(report) => {
                ending::end_everything(Duration::ZERO);
                // An engine goes on making what it was asked for; it would find nobody to take orders from.
                let patience = if report == Report::Cancelled { PATIENCE } else { Duration::ZERO };
                client.remove(Instant::now() + patience);
                ending::end_everything(PATIENCE);
                Err(report)
            }
        }
    }
}

impl Contained for Container {
    fn client(&self) -> Pid {
        self.client
    }

    fn status(&self) -> rustix::io::Result<OwnedFd> {
        rustix::io::fcntl_dupfd_cloexec(&self.status, 3)
    }

    /// What an engine leaves beside is ended as well: a Podman without privileges has a process that stays.
    fn end(&self, grace: Duration) {
        let _ = self.status.shutdown(Shutdown::Write);
        if !ending::has_ended(self.client, grace + PATIENCE) {
            ending::end_everything(Duration::ZERO);
            self.engine.remove(Instant::now());
        }
        ending::end_everything(grace);
    }
}

/// Waits for the first process, and gives it the launcher's own streams to write to.
fn greet(listener: &UnixListener, client: Pid, control: &OwnedFd) -> Result<UnixStream, Report> {
    let refused = || failed(Stage::Wall(Wall::Container));
    let client = rustix::process::pidfd_open(client, PidfdFlags::empty()).map_err(Stage::Prepare.failed())?;
    loop {
        let mut fds = [
            PollFd::new(listener, PollFlags::IN),
            PollFd::new(&client, PollFlags::IN),
            PollFd::new(control, PollFlags::IN | PollFlags::RDHUP),
        ];
        match rustix::event::poll(&mut fds, None) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(errno) => return Err(refused()(errno.into())),
        }
        match fds.map(|fd| !fd.revents().is_empty()) {
            [true, ..] => break,
            [_, true, _] => return Err(Stage::Wall(Wall::Container).in_vain()),
            [_, _, true] => return Err(Report::Cancelled),
            _ => {}
        }
    }
    let (status, _) = listener.accept().map_err(refused())?;
    let streams = [rustix::stdio::stdout(), rustix::stdio::stderr()];
    let told = wire::frame(&()).and_then(|told| wire::send_all(&status, &told, &streams));
    told.map_err(Stage::Wall(Wall::Container).failed())?;
    Ok(status)
}

/// Everything that holds a container, but for what it sees.
fn words(engine: &EngineClient, launch: &Launch) -> Vec<String> {
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    let mut words = HELD.map(str::to_owned).to_vec();
    let mut add = |option: &str, value: String| words.extend([option.to_owned(), value]);
    if engine.kind == EngineKind::Podman && !user.is_root() {
        // Its containers have users of their own, and the first of them is this one.
        add("--user", "0:0".to_owned());
    } else {
        add("--user", format!("{}:{}", user.as_raw(), group.as_raw()));
        // What the user may read as one of a group, the tool may too, where it has declared it.
        for group in rustix::process::getgroups().unwrap_or_default() {
            add("--group-add", group.as_raw().to_string());
        }
    }
    if let Some(bytes) = launch.limits.memory {
        add("--memory", bytes.to_string());
        // Without swap of its own: else the limit only slows it down.
        add("--memory-swap", bytes.to_string());
    }
    let room = holds_limits(engine.kind).then_some(Limits::ROOM);
    if let Some(count) = launch.limits.pids.or(room) {
        // The first process counts too.
        add("--pids-limit", count.saturating_add(1).to_string());
    }
    if engine.kind == EngineKind::Podman {
        words.push("--read-only-tmpfs=false".to_owned());
    }
    words
}

/// For `map_err`: what was being done when the system refused.
fn failed(stage: Stage) -> impl FnOnce(io::Error) -> Report {
    move |error| Report::NotStarted { stage, errno: error.raw_os_error().unwrap_or(0) }
}
