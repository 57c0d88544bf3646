//! From a process to a running one: what [`Launcher::run`] and [`Launcher::serve`] have in common.

use kiwi_model::Isolation;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::pin::Pin;

use crate::error::ExecError;
use crate::memfd::sealed_stdin;
use crate::order::Order;
use crate::place::{Placed, Placement};
use crate::process::{Launcher, Package, Process};
use crate::refused::Refused;
use crate::running::{Pipes, Running};
use crate::sandbox::{self, Builder, Hosts, Proxy, Trial};
use crate::snapshot::{Snapshot, open_around, random_name};
use crate::spare::Walls;
use crate::way::{Ahead, Way};
use kiwi_launcher::wire::{self, Launch, Opening, Raw, Stage, Wall};

/// What a process reads from standard input.
pub enum Input {
    /// Nothing.
    Nothing,
    /// These bytes, and then it ends.
    Bytes(Vec<u8>),
    /// What can be read from this.
    Pipe(OwnedFd),
}

impl Input {
    pub fn of(bytes: &[u8]) -> Self {
        if bytes.is_empty() { Self::Nothing } else { Self::Bytes(bytes.to_vec()) }
    }

    /// Puts its bytes where the tool can read them.
    fn seal(&mut self) -> Result<(), ExecError> {
        if let Self::Bytes(bytes) = self {
            *self = Self::Pipe(sealed_stdin(bytes)?);
        }
        Ok(())
    }

    /// As the tool is given it.
    fn open(mut self) -> Result<Option<OwnedFd>, ExecError> {
        self.seal()?;
        Ok(if let Self::Pipe(pipe) = self { Some(pipe) } else { None })
    }
}

/// A process that is to be started.
pub struct Asked<'a> {
    pub process: Process,
    pub input: Input,
    pub held: Held<'a>,
    /// Where a launcher may be that was started ahead.
    pub ahead: Option<&'a Ahead>,
}

/// What is held until everything has ended, even if Kiwi itself is killed.
#[derive(Debug, Default, Clone, Copy)]
pub struct Held<'a> {
    /// A lock: it stays open so long.
    pub lock: Option<BorrowedFd<'a>>,
    /// A folder that is removed, under the lock, when the process is ended before it has ended by itself.
    pub scrap: Option<&'a Path>,
}

/// A process whose launcher knows everything.
pub struct Begun {
    pub running: Running,
    pub pipes: Pipes,
    pub proxy: Option<Proxy>,
    pub order: Ordered,
}

/// What was ordered, to explain by it why it did not start.
pub struct Ordered {
    launch: Launch,
    level: Isolation,
    cwd: PathBuf,
    /// What said that `bwrap` works here, where it was asked to build the walls.
    trial: Option<Trial>,
}

impl Ordered {
    /// Why the launcher could not start it.
    pub fn refused(&self, stage: Stage, errno: i32, said: &[u8]) -> ExecError {
        if let (Stage::Wall(Wall::Bubblewrap), Some(trial)) = (stage, &self.trial) {
            trial.forget();
        }
        let error = io::Error::from_raw_os_error(errno);
        Refused { stage, error, said }.explain(&self.launch, self.level, self.cwd.clone())
    }
}

impl Launcher {
    /// Starts a launcher and tells it everything. What goes wrong before that has no effect.
    pub(crate) async fn begin(
        &self,
        asked: Asked<'_>,
        mut cancel: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<Begun, ExecError> {
        let Asked { process, mut input, held, ahead } = asked;
        let hosts = Hosts::parse(&process.confinement.network.hosts)?;
        let builder = tokio::select! {
            builder = sandbox::choose(self, &process) => builder?,
            () = &mut cancel => return Err(ExecError::Cancelled),
        };
        let Process { isolation: level, .. } = process;
        let spare = self.spare(&process, builder.as_ref(), &mut input).await?;
        let (mut running, pipes, order, is_open) = if let Some((running, pipes, order)) = spare {
            (running, pipes, Ok(order), true)
        } else {
            let placement = Placement::decide(&process, &self.scratch)?;
            // Loading it takes about as long as drawing up its orders, and the two go on beside each other.
            let way = Way::of(&process, builder.as_ref());
            let started = ahead.and_then(|ahead| ahead.take(way));
            let started = started.map_or_else(|| way.start(&self.door), Ok)?;
            let (running, pipes) = Running::adopt(self, started)?;
            let order = Order::draw_up(self, &process, placement, builder, running.call());
            (running, pipes, order, false)
        };
        let Order { mut launch, placement } = match order {
            Ok(order) => order,
            Err(error) => {
                running.abandon().await;
                return Err(error);
            }
        };
        let has_snapshot = placement.snapshot().is_some();
        launch.stdin = !matches!(input, Input::Nothing);
        launch.scrap = held.scrap.map(Raw::of);
        let Process { cwd, packages, .. } = process;

        let told = async {
            // From here on the launcher knows the folder and removes it, whatever becomes of Kiwi. While it is still
            // being loaded, the files are put in place.
            if !is_open {
                let (opening, around) = opening(&placement)?;
                let around: Vec<BorrowedFd<'_>> = around.iter().map(AsFd::as_fd).collect();
                running.tell(&opening, &around).await?;
            }
            let stdin = input.open()?;
            let Placed { snapshot, sealed } = tokio::select! {
                placed = place(placement, packages) => placed?,
                () = &mut cancel => return Err(ExecError::Cancelled),
            };
            running.folders.extend(snapshot);
            if let Some(Builder::Container(engine)) = launch.sandbox.as_ref().map(|sandbox| &sandbox.builder)
            {
                // The launcher makes it and removes it, if it can.
                running.folders.push(Snapshot::new(engine.folder.as_path().to_owned()));
            }
            launch.files = sealed.len();
            let has_proxy = launch.sandbox.as_ref().is_some_and(|sandbox| sandbox.proxy);
            let proxy = if has_proxy { Some(Proxy::start(hosts)?) } else { None };
            let (proxy, channel) = proxy.unzip();
            let owned: Vec<OwnedFd> = stdin.into_iter().chain(sealed).chain(channel).collect();
            let descriptors: Vec<BorrowedFd<'_>> = owned.iter().map(AsFd::as_fd).chain(held.lock).collect();
            running.tell(&framed(&launch)?, &descriptors).await?;
            Ok(proxy)
        };
        match told.await {
            Ok(proxy) => {
                self.spares.wish(self, &launch, has_snapshot);
                let trial = match launch.sandbox.as_ref().map(|sandbox| &sandbox.builder) {
                    Some(Builder::Bubblewrap(program)) => Some(Trial::of(self, Some(program.as_path()))),
                    _ => None,
                };
                Ok(Begun { running, pipes, proxy, order: Ordered { launch, level, cwd, trial } })
            }
            Err(error) => {
                running.abandon().await;
                Err(error)
            }
        }
    }
}

impl Launcher {
    /// A launcher that waits for this very order and has been told the first of it, if there is one. Whatever
    /// is not as it should be is no reason to do without: then the process is started as if there were no spares.
    async fn spare(
        &self,
        process: &Process,
        builder: Option<&Builder>,
        input: &mut Input,
    ) -> Result<Option<(Running, Pipes, Order)>, ExecError> {
        let sockets = process.isolation == Isolation::Sandboxed;
        let walls = builder.map(|builder| Walls { builder: builder.clone(), sockets });
        let Some(spare) = self.spares.take(self, walls.as_ref()) else { return Ok(None) };
        let drawn = random_name().and_then(|call| {
            let placement = Placement::decide(process, &self.scratch)?;
            let order = Order::draw_up(self, process, placement, builder.cloned(), &call)?;
            Ok((call, opening(&order.placement)?, order))
        });
        // Asked once: the kernel tells of a change once.
        let is_good = spare.is_good();
        let (call, opening, order) = match drawn {
            Ok(drawn) if is_good && spare.fits(&drawn.2.launch) => drawn,
            other => {
                self.spares.give_back(spare, is_good);
                return other.map(|_| None);
            }
        };
        let (opening, around) = opening;
        let (mut running, pipes) = Running::adopt(self, spare.open(&opening, around.as_ref(), call))?;
        // While it wakes up.
        input.seal()?;
        // One that was ended in this moment has started nothing. It may still remove the folder it was told about, so the
        // next one gets another.
        Ok(running.answers().await.then_some((running, pipes, order)))
    }
}

/// What is said of the folder of the run, and the folder it will be made in.
fn opening(placement: &Placement) -> Result<(Vec<u8>, Option<OwnedFd>), ExecError> {
    let folder = placement.snapshot().and_then(Path::file_name).map(Raw::of);
    let around = placement.snapshot().and_then(Path::parent).map(open_around).transpose()?;
    Ok((framed(&Opening { folder })?, around))
}

async fn place(placement: Placement, packages: Vec<Package>) -> Result<Placed, ExecError> {
    if !placement.is_heavy(&packages) {
        return placement.fill(&packages);
    }
    // If nobody waits for it any more, what it made is removed when its result is dropped.
    let filled = tokio::task::spawn_blocking(move || placement.fill(&packages)).await;
    filled.map_err(|error| ExecError::Io { doing: "copy verified files".into(), source: error.into() })?
}

fn framed(message: &impl serde::Serialize) -> Result<Vec<u8>, ExecError> {
    wire::frame(message).map_err(ExecError::io("tell the launcher what to start"))
}
