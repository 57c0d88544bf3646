//! The helper between the launcher and an engine's client: whatever ends it ends the container.
use rustix::process::Signal;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};

use super::EngineKind;
use super::client::Client;
use super::life::Life;
use super::log::{Log, Passing};

/// How long a container that was asked for and is not there yet is waited for: an engine goes on making it after its
/// client is gone. Together with the removal itself this stays within the launcher's grace.
const PATIENCE: Duration = Duration::from_secs(3);
/// An engine's own failure, before anything ran.
const ENGINE_FAILED: u8 = 125;
/// Killed by the kernel, as a shell would tell it.
const KILLED: u8 = 137;
/// Ended because somebody asked.
const ASKED: u8 = 143;

/// How a container came to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerEnd {
    /// The exit code of its command.
    pub code: u8,
    /// What is worth saying about it.
    pub message: Option<String>,
}

/// Runs a container and removes it: `PROGRAM CALL OPTIONS… IMAGE COMMAND…`, with this process's own standard streams.
pub fn container_main(mut words: impl Iterator<Item = OsString>) -> ContainerEnd {
    let (Some(program), Some(call)) = (words.next(), words.next()) else {
        return failed("it was started without a client and a call");
    };
    let Some(life) = Life::own() else { return failed("`/proc` cannot be read") };
    let client = Client::new(program, life, &call.to_string_lossy());
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&error.to_string()),
    };
    let end = runtime.block_on(client.run(words.collect()));
    // A client that hangs holds up nobody.
    runtime.shutdown_background();
    end.unwrap_or_else(|error| failed(&error.to_string()))
}

fn failed(why: &str) -> ContainerEnd {
    ContainerEnd { code: ENGINE_FAILED, message: Some(format!("the container cannot be run: {why}")) }
}

impl Client {
    async fn run(self, words: Vec<OsString>) -> io::Result<ContainerEnd> {
        // The launcher asks by a signal. If it cannot any more, its own end is one.
        let (mut term, mut int, mut hup) = (
            signal(SignalKind::terminate())?,
            signal(SignalKind::interrupt())?,
            signal(SignalKind::hangup())?,
        );
        rustix::process::set_parent_process_death_signal(Some(Signal::TERM))?;

        let memory = words.iter().position(|word| word == "--memory").and_then(|at| words.get(at + 1));
        let memory = memory.map(|limit| limit.to_string_lossy().into_owned());
        let (mut child, passing) = self.start(&words)?;
        let mut ended = tokio::task::spawn_blocking(move || child.wait());
        // While it starts there is time to look for what others left.
        let cleaner = self.clone();
        let reaped = tokio::task::spawn_blocking(move || cleaner.reap(cleaner.list()));
        let status = tokio::select! {
            status = &mut ended => Some(status.map_err(io::Error::other)??),
            _ = term.recv() => None,
            _ = int.recv() => None,
            _ = hup.recv() => None,
        };
        // First, and with it the folder that the log lies in: an engine that is slow to remove its container may take longer
        // than the launcher has patience.
        passing.into_iter().for_each(Passing::finish);
        let Some(status) = status else {
            self.remove(Instant::now() + PATIENCE);
            return Ok(ContainerEnd { code: ASKED, message: None });
        };
        let _ = reaped.await;
        Ok(self.judge(status, memory))
    }

    fn start(&self, words: &[OsString]) -> io::Result<(Child, Option<Passing>)> {
        let mut command = self.run_command();
        command.arg("--interactive");
        if Path::new(&self.program).file_name() != Some(EngineKind::Podman.as_str().as_ref()) {
            return Ok((command.args(words).spawn()?, None));
        }
        let log = Log::new()?;
        command.args(["--attach", "stdin", "--log-driver", "k8s-file", "--log-opt"]);
        command.arg(format!("path={}", log.path().display())).args(words);
        // It writes about memory that ran out where it is started, and would do so into the project.
        command.current_dir(log.folder());
        // All it would write there is the container's number.
        let child = command.stdout(Stdio::null()).spawn()?;
        Ok((child, Some(log.pass_on()?)))
    }

    fn judge(&self, status: ExitStatus, memory: Option<String>) -> ContainerEnd {
        let Some(code) = status.code().and_then(|code| u8::try_from(code).ok()) else {
            // Somebody killed the client, not the container.
            self.remove(Instant::now());
            let signal = status.signal().unwrap_or_default();
            let message = format!("the client of the container was ended by signal {signal}");
            return ContainerEnd { code: ASKED, message: Some(message) };
        };
        if code == ENGINE_FAILED {
            self.remove(Instant::now());
        }
        let message = memory.filter(|_| code == KILLED).map(|memory| {
            format!("the container was killed: most likely it used more than its `memory` of {memory}")
        });
        ContainerEnd { code, message }
    }
}
