//! Running a process that stays: a server that speaks over its standard streams.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::sync::watch;

use crate::begin::{Asked, Begun, Held, Input, Ordered};
use crate::capture::{Read, read_there, read_told};
use crate::error::ExecError;
use crate::process::{Launcher, Process};
use crate::running::{MARGIN, Running};
use crate::sandbox::Proxy;
use kiwi_launcher::wire::{Exit, Report};

/// How much of what a server wrote to standard error is kept.
const TAIL: usize = 64 << 10;

/// How a process that stays has ended, for everybody who asks.
pub type ServingEnd = Result<Exit, Arc<ExecError>>;

/// A process that stays until it is stopped. Dropping this ends it, and everything it started.
#[derive(Debug)]
pub struct Serving {
    /// What it reads; to be taken. It ends for the process when this is dropped.
    pub input: Option<Sender>,
    /// What it writes to standard output; to be taken.
    pub output: Option<Receiver>,
    said: Arc<Mutex<VecDeque<u8>>>,
    grace: Duration,
    ended: watch::Receiver<Option<ServingEnd>>,
    /// Closed by dropping it: the process is to end.
    stop: Option<watch::Sender<()>>,
}

impl Launcher {
    /// Starts a process and hands out its streams. It has the same supervisor, walls and limits as one that is
    /// [`Launcher::run`], and no deadline: `timeout`, `output_cap` and `stdin` of the process do not count.
    ///
    /// What is known before it starts is an error here; why it did not start after all is told by
    /// [`Serving::ended`].
    pub async fn serve(&self, process: Process) -> Result<Serving, ExecError> {
        let process = Process { timeout: Duration::MAX, ..process };
        let refused = || ExecError::io("make a pipe for the process");
        let (theirs, ours) = io::pipe().map_err(refused())?;
        let input = Sender::from_owned_fd(ours.into()).map_err(refused())?;
        let asked = Asked { process, input: Input::Pipe(theirs.into()), held: Held::default(), ahead: None };
        let begun = self.begin(asked, pin!(std::future::pending())).await?;
        let Begun { running, pipes, proxy, order } = begun;
        let streams = receiver(pipes.stdout).and_then(|out| Ok((out, receiver(pipes.stderr)?)));
        let (output, errors) = match streams {
            Ok(streams) => streams,
            Err(error) => {
                running.abandon().await;
                return Err(error);
            }
        };
        let said = Arc::new(Mutex::new(VecDeque::new()));
        let (stop, stopped) = watch::channel(());
        let (tell, ended) = watch::channel(None);
        let kept = Kept { running, errors: Some(errors), said: Arc::clone(&said), proxy, order };
        let patience = self.grace.saturating_add(MARGIN);
        tokio::spawn(async move {
            let end = kept.attend(stopped, patience).await;
            let _ = tell.send(Some(end.map_err(Arc::new)));
        });
        let (input, output) = (Some(input), Some(output));
        Ok(Serving { input, output, said, grace: self.grace, ended, stop: Some(stop) })
    }
}

fn receiver(pipe: OwnedFd) -> Result<Receiver, ExecError> {
    Receiver::from_owned_fd(pipe).map_err(ExecError::io("watch the output of the process"))
}

impl Serving {
    /// Waits until it, and everything it started, has ended.
    pub async fn ended(&self) -> ServingEnd {
        let mut ended = self.ended.clone();
        let end = ended.wait_for(Option::is_some).await;
        // Without an end its attendant is gone: the runtime is shutting down, and the process with it.
        end.ok().and_then(|end| end.clone()).unwrap_or_else(|| Err(Arc::new(ExecError::Lost)))
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        self.ended.borrow().is_some()
    }

    /// The last it wrote to standard error.
    pub fn said(&self) -> String {
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let (front, back) = said.as_slices();
        let text = String::from_utf8_lossy(&[front, back].concat()).into_owned();
        // The first character may have lost its beginning.
        text.trim_start_matches('\u{fffd}').to_owned()
    }

    /// Ends it: its input is closed, then it has the launcher's grace to leave by itself, then it is asked and at last
    /// made to. Whoever took its input has dropped it before.
    pub async fn stop(mut self) -> ServingEnd {
        drop(self.input.take());
        // Nobody reads any more: a server that waits for its reader must not wait for ever.
        drop(self.output.take());
        if let Ok(end) = tokio::time::timeout(self.grace, self.ended()).await {
            return end;
        }
        self.kill().await
    }

    /// Ends it without waiting for it to see that its input is closed.
    pub async fn kill(mut self) -> ServingEnd {
        drop(self.stop.take());
        self.ended().await
    }
}

/// A process that stays, as its attendant has it.
struct Kept {
    running: Running,
    errors: Option<Receiver>,
    said: Arc<Mutex<VecDeque<u8>>>,
    proxy: Option<Proxy>,
    order: Ordered,
}

impl Kept {
    async fn attend(
        mut self,
        mut stopped: watch::Receiver<()>,
        patience: Duration,
    ) -> Result<Exit, ExecError> {
        let mut deadline = pin!(tokio::time::sleep(Duration::ZERO));
        let mut is_stopped = false;
        let mut buffer = Vec::new();
        let in_time = loop {
            tokio::select! {
                () = flow(&mut self.errors, &mut buffer, &self.said), if self.errors.is_some() => {}
                has_left = self.running.listen() => if has_left { break true },
                _ = stopped.changed(), if !is_stopped => {
                    is_stopped = true;
                    self.running.stop();
                    deadline.as_mut().reset(tokio::time::Instant::now() + patience);
                }
                // A launcher that was stopped, or waits for what cannot be killed.
                () = &mut deadline, if is_stopped => break false,
            }
        };
        let report = if in_time {
            self.running.finish().await
        } else {
            self.running.force().await;
            Some(Report::Cancelled)
        };
        drain(&mut self.errors, &mut buffer, &self.said);
        drop(self.proxy);
        match report {
            Some(Report::Ended(exit)) => Ok(exit),
            Some(Report::Cancelled | Report::TimedOut) if is_stopped => Err(ExecError::Cancelled),
            Some(Report::NotStarted { stage, errno }) => {
                let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
                let said: Vec<u8> = said.iter().copied().collect();
                Err(self.order.refused(stage, errno, &said))
            }
            None | Some(Report::Cancelled | Report::TimedOut) => Err(ExecError::Lost),
        }
    }
}

/// Waits for what comes on standard error and keeps the last of it. Can be dropped at any time.
async fn flow(pipe: &mut Option<Receiver>, buffer: &mut Vec<u8>, said: &Mutex<VecDeque<u8>>) {
    if let Some(open) = pipe.as_ref()
        && open.readable().await.is_err()
    {
        *pipe = None;
    }
    take(read_told, pipe, buffer, said);
}

/// Takes what is there, whether or not there will be more.
fn drain(pipe: &mut Option<Receiver>, buffer: &mut Vec<u8>, said: &Mutex<VecDeque<u8>>) {
    // A writer that outlived everything could go on for ever.
    for _ in 0..64 {
        if !take(read_there, pipe, buffer, said) {
            return;
        }
    }
}

/// One read; whether there may be more at once.
fn take(read: Read, pipe: &mut Option<Receiver>, buffer: &mut Vec<u8>, said: &Mutex<VecDeque<u8>>) -> bool {
    let Some(open) = pipe.as_ref() else { return false };
    match read(open, buffer) {
        Ok(0) => *pipe = None,
        Ok(count) => {
            let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
            said.extend(buffer.get(..count).unwrap_or_default());
            let surplus = said.len().saturating_sub(TAIL);
            drop(said.drain(..surplus));
            return true;
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
        Err(_) => *pipe = None,
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[tokio::test]
    async fn last_words_are_kept_whether_or_not_the_runtime_was_told_of_them() {
        let (reader, mut writer) = io::pipe().unwrap();
        let mut pipe = Some(Receiver::from_owned_fd(reader.into()).unwrap());
        writer.write_all(b"no such option").unwrap();
        let said = Mutex::default();
        drain(&mut pipe, &mut Vec::new(), &said);
        assert_eq!(said.into_inner().unwrap(), b"no such option");
    }
}
