//! Running one process from beginning to end: the `subprocess` primitive.

use kiwi_model::Isolation;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::time::Duration;
use tokio::time::Instant;

use crate::capture::Capture;
use crate::error::ExecError;
use crate::memfd::sealed_stdin;
use crate::order::Order;
use crate::place::{Placed, Placement};
use crate::process::{Finished, Launcher, Package, Process, Stream, Watch};
use crate::refused::Refused;
use crate::running::{MARGIN, Running, Started};
use crate::sandbox::{self, Hosts, Proxy};
use crate::snapshot::random_name;
use crate::wire::{self, Launch, Opening, Raw, Report, Stage};

impl Launcher {
    /// Runs a process and waits until it, and everything it started, has ended.
    ///
    /// When `cancel` completes, or the returned future is dropped, everything is ended too. Needs a tokio runtime with
    /// its I/O and time drivers; a single thread is enough.
    pub async fn run(
        &self,
        process: Process,
        watch: &dyn Watch,
        cancel: impl Future<Output = ()>,
    ) -> Result<Finished, ExecError> {
        self.run_holding(process, None, watch, cancel).await
    }

    /// The same, with a descriptor that stays open until everything has ended, even if Kiwi itself is killed: a lock.
    pub(crate) async fn run_holding(
        &self,
        process: Process,
        held: Option<BorrowedFd<'_>>,
        watch: &dyn Watch,
        cancel: impl Future<Output = ()>,
    ) -> Result<Finished, ExecError> {
        let mut cancel = pin!(cancel);
        let hosts = Hosts::parse(&process.confinement.network.hosts)?;
        let builder = tokio::select! {
            builder = sandbox::choose(self, &process) => builder?,
            () = &mut cancel => return Err(ExecError::Cancelled),
        };
        let ahead = self.ahead.take();
        let call = ahead.as_ref().map_or_else(random_name, |started| Ok(started.call().to_owned()))?;
        let Order { mut launch, placement } = Order::draw_up(self, &process, builder, &call)?;
        let Process { cwd, stdin, timeout, output_cap, packages, isolation: level, .. } = process;

        let started = ahead.map_or_else(|| Started::start(self, call), Ok)?;
        let (mut running, pipes) = Running::adopt(self, started)?;
        let begun = async {
            let stdout = Capture::new(Stream::Stdout, pipes.stdout, output_cap)?;
            let stderr = Capture::new(Stream::Stderr, pipes.stderr, output_cap)?;
            // From here on the launcher knows the folder and removes it, whatever becomes of Kiwi. While it is still
            // being loaded, the files are put in place.
            let opening = Opening { snapshot: placement.snapshot().map(Raw::of) };
            running.tell(&framed(&opening)?, &[]).await?;
            let Placed { snapshot, sealed } = tokio::select! {
                placed = place(placement, packages) => placed?,
                () = &mut cancel => return Err(ExecError::Cancelled),
            };
            running.snapshot = snapshot;
            launch.files = sealed.len();
            let stdin = if launch.stdin { Some(sealed_stdin(&stdin)?) } else { None };
            let has_proxy = launch.sandbox.as_ref().is_some_and(|sandbox| sandbox.proxy);
            let proxy = if has_proxy { Some(Proxy::start(hosts)?) } else { None };
            let (proxy, channel) = proxy.unzip();
            let owned: Vec<OwnedFd> = stdin.into_iter().chain(sealed).chain(channel).collect();
            let descriptors: Vec<BorrowedFd<'_>> = owned.iter().map(AsFd::as_fd).chain(held).collect();
            running.tell(&framed(&launch)?, &descriptors).await?;
            Ok((stdout, stderr, proxy))
        };
        let (stdout, stderr, proxy) = match begun.await {
            Ok(begun) => begun,
            Err(error) => {
                running.abandon().await;
                return Err(error);
            }
        };

        let limits = Limits { timeout, grace: self.grace, output_cap };
        let attended = Attended { running, stdout, stderr, ending: None };
        let outcome = attended.attend(&limits, watch, cancel).await;
        drop(proxy);
        outcome.map_err(|why| why.explain(&launch, level, cwd, &limits))
    }
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

struct Limits {
    timeout: Duration,
    grace: Duration,
    output_cap: u64,
}

/// Why a process that was given to a launcher has no result.
enum Why {
    TimedOut { stdout: Vec<u8>, stderr: Vec<u8> },
    Overflowed(Stream),
    Cancelled,
    Lost,
    NotStarted { stage: Stage, errno: i32, said: Vec<u8> },
}

/// What Kiwi decided, while the tool was still running.
#[derive(Clone, Copy)]
enum Ending {
    Cancelled,
    Overflowed(Stream),
}

/// A running tool and what it has written so far.
struct Attended {
    running: Running,
    stdout: Capture,
    stderr: Capture,
    ending: Option<Ending>,
}

impl Attended {
    async fn attend(
        mut self,
        limits: &Limits,
        watch: &dyn Watch,
        mut cancel: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<Finished, Why> {
        // The launcher keeps the time. This is for a launcher that was stopped, or waits for what cannot be killed.
        let patience = limits.grace.saturating_add(MARGIN);
        let mut backstop = pin!(tokio::time::sleep(limits.timeout.saturating_add(patience)));
        let in_time = loop {
            let was_ending = self.ending.is_some();
            tokio::select! {
                () = self.stdout.flow(watch), if self.stdout.is_open() => {}
                () = self.stderr.flow(watch), if self.stderr.is_open() => {}
                has_left = self.running.listen() => if has_left { break true },
                () = &mut cancel, if !was_ending => self.ending = Some(Ending::Cancelled),
                () = &mut backstop => break false,
            }
            self.ending = self.ending.or_else(|| overflow(&self.stdout, &self.stderr));
            if self.ending.is_some() && !was_ending {
                self.running.stop();
                backstop.as_mut().reset(Instant::now() + patience);
            }
        };
        let report = if in_time {
            self.running.finish().await
        } else {
            self.running.force().await;
            Some(Report::TimedOut)
        };
        // Every writer has ended; what they wrote is in the pipes.
        self.stdout.drain(watch);
        self.stderr.drain(watch);
        let ending = self.ending.or_else(|| overflow(&self.stdout, &self.stderr));
        let (stdout, stderr) = (self.stdout.into_bytes(), self.stderr.into_bytes());
        match (report, ending) {
            // Lost, or stopped although nobody asked for it: then it could not watch the tool.
            (None, _) | (Some(Report::Cancelled), None) => Err(Why::Lost),
            (Some(Report::NotStarted { stage, errno }), _) => {
                Err(Why::NotStarted { stage, errno, said: stderr })
            }
            (Some(_), Some(Ending::Overflowed(stream))) => Err(Why::Overflowed(stream)),
            (Some(_), Some(Ending::Cancelled)) => Err(Why::Cancelled),
            (Some(Report::TimedOut), None) => Err(Why::TimedOut { stdout, stderr }),
            (Some(Report::Ended(exit)), None) => Ok(Finished { exit, stdout, stderr }),
        }
    }
}

fn overflow(stdout: &Capture, stderr: &Capture) -> Option<Ending> {
    let captures = [(stdout, Stream::Stdout), (stderr, Stream::Stderr)];
    captures
        .into_iter()
        .find(|(capture, _)| capture.has_overflowed())
        .map(|(_, stream)| Ending::Overflowed(stream))
}

impl Why {
    fn explain(self, launch: &Launch, level: Isolation, cwd: PathBuf, limits: &Limits) -> ExecError {
        match self {
            Self::TimedOut { stdout, stderr } => ExecError::Timeout { after: limits.timeout, stdout, stderr },
            Self::Overflowed(stream) => ExecError::OutputLimit { stream, limit: limits.output_cap },
            Self::Cancelled => ExecError::Cancelled,
            Self::Lost => ExecError::Lost,
            Self::NotStarted { stage, errno, said } => {
                let error = io::Error::from_raw_os_error(errno);
                Refused { stage, error, said: &said }.explain(launch, level, cwd)
            }
        }
    }
}
