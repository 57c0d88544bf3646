//! Running one process from beginning to end: the `subprocess` primitive.

use std::pin::{Pin, pin};
use std::time::Duration;
use tokio::time::Instant;

use crate::begin::{Asked, Begun, Held, Input, Ordered};
use crate::capture::Capture;
use crate::error::ExecError;
use crate::process::{Finished, Launcher, Process, Stream, Watch};
use crate::running::{MARGIN, Running};
use kiwi_launcher::wire::{Report, Stage};

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
        self.run_holding(process, Held::default(), watch, cancel).await
    }

    /// The same, with something that is held until everything has ended.
    pub(crate) async fn run_holding(
        &self,
        process: Process,
        held: Held<'_>,
        watch: &dyn Watch,
        cancel: impl Future<Output = ()>,
    ) -> Result<Finished, ExecError> {
        let mut cancel = pin!(cancel);
        let (timeout, output_cap) = (process.timeout, process.output_cap);
        let input = Input::of(&process.stdin);
        let asked = Asked { process, input, held, ahead: Some(&self.ahead) };
        let Begun { running, pipes, proxy, order } = self.begin(asked, cancel.as_mut()).await?;
        let captures = Capture::new(Stream::Stdout, pipes.stdout, output_cap)
            .and_then(|stdout| Ok((stdout, Capture::new(Stream::Stderr, pipes.stderr, output_cap)?)));
        let (stdout, stderr) = match captures {
            Ok(captures) => captures,
            Err(error) => {
                running.abandon().await;
                return Err(error);
            }
        };

        let limits = Limits { timeout, grace: self.grace, output_cap };
        let attended = Attended { running, stdout, stderr, ending: None };
        let outcome = attended.attend(&limits, watch, cancel).await;
        drop(proxy);
        outcome.map_err(|why| why.explain(&order, &limits))
    }
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
    fn explain(self, order: &Ordered, limits: &Limits) -> ExecError {
        match self {
            Self::TimedOut { stdout, stderr } => ExecError::Timeout { after: limits.timeout, stdout, stderr },
            Self::Overflowed(stream) => ExecError::OutputLimit { stream, limit: limits.output_cap },
            Self::Cancelled => ExecError::Cancelled,
            Self::Lost => ExecError::Lost,
            Self::NotStarted { stage, errno, said } => order.refused(stage, errno, &said),
        }
    }
}
