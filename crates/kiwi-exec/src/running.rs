//! Kiwi's end of one launcher.

use rustix::net::Shutdown;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::UnixStream;

use crate::error::ExecError;
use crate::farewell;
use crate::launcher::{Door, Role};
use crate::orphans::Child;
use crate::process::Launcher;
use crate::snapshot::Snapshot;
use kiwi_launcher::wire::{self, Report};

/// How long a launcher may take beyond timeout and grace before it counts as lost.
pub const MARGIN: Duration = Duration::from_secs(2);

/// How long a launcher that waits may take to say that it takes its orders. It has nothing else to do.
const ANSWER: Duration = Duration::from_millis(500);

/// A launcher that was started and not yet waited for. Dropping it closes the socket, which ends the tool.
pub struct Running {
    call: String,
    /// How long the launcher may take once it knows that it is to end the tool.
    patience: Duration,
    child: Option<Child>,
    control: UnixStream,
    received: Vec<u8>,
    /// Removed by the launcher; kept here for the case that it cannot.
    pub folders: Vec<Snapshot>,
    /// Kiwi itself ends after this call: the last thing the launcher says is enough, its own end need not be awaited.
    is_last: bool,
}

/// The reading ends of the pipes the tool writes into.
#[derive(Debug)]
pub struct Pipes {
    pub stdout: OwnedFd,
    pub stderr: OwnedFd,
}

/// A launcher that waits for its orders. Whoever drops it closes its socket, and it leaves by itself.
#[derive(Debug)]
pub struct Started {
    call: String,
    child: Child,
    control: std::os::unix::net::UnixStream,
    pipes: Pipes,
    is_ahead: bool,
}

impl Started {
    /// Starts a launcher, which then waits for its orders.
    pub fn start(door: &Door, role: Role, call: String) -> Result<Self, ExecError> {
        let refused = || ExecError::io("start the launcher");
        let (control, theirs) = std::os::unix::net::UnixStream::pair().map_err(refused())?;
        control.set_nonblocking(true).map_err(refused())?;
        let (stdout, stdout_writer) = io::pipe().map_err(refused())?;
        let (stderr, stderr_writer) = io::pipe().map_err(refused())?;
        let child = door.open(role, [theirs.as_fd(), stdout_writer.as_fd(), stderr_writer.as_fd()]);
        let child = child.map_err(refused())?;
        let pipes = Pipes { stdout: stdout.into(), stderr: stderr.into() };
        Ok(Self { call, child, control, pipes, is_ahead: false })
    }

    /// The same, for the last call of this Kiwi.
    pub fn ahead(self) -> Self {
        Self { is_ahead: true, ..self }
    }

    /// The same for another call.
    pub fn with_call(self, call: String) -> Self {
        Self { call, ..self }
    }

    /// Where it takes its orders from. Does not block.
    pub const fn control(&self) -> &std::os::unix::net::UnixStream {
        &self.control
    }

    /// Lets it go without orders, and waits until nothing of it is left.
    pub fn leave(self, patience: Duration) {
        let _ = rustix::net::shutdown(&self.control, Shutdown::Both);
        self.child.see_off(&self.call, patience);
    }
}

impl Running {
    /// Takes over a launcher that was started.
    pub fn adopt(launcher: &Launcher, started: Started) -> Result<(Self, Pipes), ExecError> {
        let Started { call, child, control, pipes, is_ahead } = started;
        let control = UnixStream::from_std(control).map_err(ExecError::io("start the launcher"))?;
        let patience = launcher.grace.saturating_add(MARGIN);
        let running = Self {
            call,
            patience,
            child: Some(child),
            control,
            received: Vec::new(),
            folders: Vec::new(),
            is_last: is_ahead,
        };
        Ok((running, pipes))
    }

    /// The mark of the call it serves.
    pub fn call(&self) -> &str {
        &self.call
    }

    /// Whether a launcher that has waited takes its orders.
    pub async fn answers(&mut self) -> bool {
        let Ok(expected) = wire::frame(&()) else { return false };
        let answer = async {
            while self.received.len() < expected.len() {
                if self.control.readable().await.is_err() {
                    return;
                }
                match self.control.try_read_buf(&mut self.received) {
                    Ok(0) => return,
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(_) => return,
                }
            }
        };
        let is_in_time = tokio::time::timeout(ANSWER, answer).await.is_ok();
        is_in_time && std::mem::take(&mut self.received) == expected
    }

    /// Sends a message with descriptors.
    pub async fn tell(&self, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> Result<(), ExecError> {
        let mut rest = bytes;
        let mut with = descriptors;
        while !rest.is_empty() {
            let sent = self
                .control
                .async_io(Interest::WRITABLE, || Ok(wire::send(self.control.as_fd(), rest, with)?))
                .await;
            let sent = sent.map_err(|error| match error.kind() {
                io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => ExecError::Lost,
                _ => ExecError::Io { doing: "tell the launcher what to start".into(), source: error },
            })?;
            rest = rest.get(sent..).unwrap_or_default();
            with = &[];
        }
        Ok(())
    }

    /// Tells the launcher to end the tool.
    pub fn stop(&self) {
        let _ = rustix::net::shutdown(&self.control, Shutdown::Write);
    }

    /// Waits for the launcher to say something or to leave; whether it has left or has said its last, which it does when
    /// everything the tool started has ended. Can be dropped at any time.
    pub async fn listen(&mut self) -> bool {
        if self.control.readable().await.is_err() {
            return true;
        }
        match self.control.try_read_buf(&mut self.received) {
            Ok(0) => true,
            Ok(_) => matches!(wire::unframe::<Report>(&self.received), Ok(Some(_))),
            Err(error) => error.kind() != io::ErrorKind::WouldBlock,
        }
    }

    /// What the launcher said last. `None`: it is lost.
    pub async fn finish(mut self) -> Option<Report> {
        let report = wire::unframe(&self.received).ok().flatten();
        let child = self.child.take()?;
        match &report {
            // Whoever inherits it waits for it.
            Some(_) if self.is_last => {}
            Some(_) => farewell::after_the_last_word(child),
            None => self.give_up(child).await,
        }
        report
    }

    /// Ends a launcher that does not answer, and all that is left of its tool.
    pub async fn force(mut self) {
        if let Some(child) = self.child.take() {
            self.give_up(child).await;
        }
    }

    /// Ends a launcher that was not told what to start, or not all of it, and waits until nothing of it is left.
    pub async fn abandon(mut self) {
        if let Some(farewell) = self.farewell() {
            let _ = tokio::task::spawn_blocking(farewell).await;
        }
    }

    /// Closes the socket; what is given still has to be done, and waits for the launcher to leave.
    fn farewell(&mut self) -> Option<impl FnOnce() + Send + use<>> {
        let child = self.child.take()?;
        let (call, folders, patience) =
            (std::mem::take(&mut self.call), std::mem::take(&mut self.folders), self.patience);
        let _ = rustix::net::shutdown(&self.control, Shutdown::Both);
        Some(move || {
            child.see_off(&call, patience);
            drop(folders);
        })
    }

    async fn give_up(&mut self, child: Child) {
        let call = std::mem::take(&mut self.call);
        let folders = std::mem::take(&mut self.folders);
        let ended = tokio::task::spawn_blocking(move || {
            child.end_lost(&call);
            drop(folders);
        });
        let _ = ended.await;
    }
}

impl Drop for Running {
    /// Nobody waits for the result any more, but somebody has to wait for the launcher.
    fn drop(&mut self) {
        if let Some(farewell) = self.farewell() {
            farewell::beside(farewell);
        }
    }
}
