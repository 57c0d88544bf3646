//! The helper between the launcher and an engine's client: whatever ends it ends the container.
#![expect(clippy::disallowed_methods, reason = "the one place where a container's client is started")]

use rustix::process::Signal;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};

use super::EngineKind;
use super::life::Life;
use super::log::{Log, Passing};
use super::reap::{REMOVE, leftovers, list_words, owner};

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
    let name = life.container(&call.to_string_lossy());
    let client = Client { program, name, life };
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

struct Client {
    program: OsString,
    /// The container's.
    name: String,
    life: Life,
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
        let cleaner = Self { program: self.program.clone(), name: String::new(), life: self.life.clone() };
        let reaped = tokio::task::spawn_blocking(move || cleaner.reap());
        let status = tokio::select! {
            status = &mut ended => Some(status.map_err(io::Error::other)??),
            _ = term.recv() => None,
            _ = int.recv() => None,
            _ = hup.recv() => None,
        };
        if status.is_none() {
            self.remove(Instant::now() + PATIENCE);
        }
        passing.into_iter().for_each(Passing::finish);
        let Some(status) = status else { return Ok(ContainerEnd { code: ASKED, message: None }) };
        let _ = reaped.await;
        Ok(self.judge(status, memory))
    }

    fn start(&self, words: &[OsString]) -> io::Result<(Child, Option<Passing>)> {
        let call = self.name.split('.').next().unwrap_or_default().trim_start_matches("kiwi-");
        let labels = [
            format!("kiwi.call={call}"),
            format!("kiwi.owner={}", owner()),
            format!("kiwi.pid={}", std::process::id()),
        ];
        let mut command = Command::new(&self.program);
        command.args(["run", "--rm", "--interactive", "--pull", "never", "--stop-timeout", "0"]);
        command.args(["--name", &self.name]);
        for label in &labels {
            command.args(["--label", label]);
        }
        if Path::new(&self.program).file_name() != Some(EngineKind::Podman.as_str().as_ref()) {
            return Ok((command.args(words).spawn()?, None));
        }
        let log = Log::new()?;
        command.args(["--attach", "stdin", "--log-driver", "k8s-file", "--log-opt"]);
        command.arg(format!("path={}", log.path().display())).args(words);
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

    /// Removes the container. One that was never seen may still come, until the deadline.
    fn remove(&self, deadline: Instant) {
        let mut was_there = false;
        loop {
            match self.ask(REMOVE.iter().map(|word| (*word).to_owned()).chain([self.name.clone()])) {
                Ok((said, _)) if !said.is_empty() => return,
                // It is being removed by somebody else, or is not ready to be removed.
                Ok((_, complained)) if !is_unknown(&complained) => was_there = true,
                Ok(_) if was_there => return,
                Ok(_) | Err(_) => {}
            }
            if Instant::now() >= deadline {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn reap(&self) {
        let Ok((listed, _)) = self.ask(list_words(&owner())) else { return };
        let left = leftovers(&listed, &self.life);
        if !left.is_empty() {
            let _ = self.ask(REMOVE.iter().map(|word| (*word).to_owned()).chain(left));
        }
    }

    /// What the client says to some words, on standard output and on standard error.
    fn ask(&self, words: impl IntoIterator<Item = String>) -> io::Result<(Vec<u8>, Vec<u8>)> {
        let output = Command::new(&self.program).args(words).stdin(Stdio::null()).output()?;
        Ok((output.stdout, output.stderr))
    }
}

fn is_unknown(complaint: &[u8]) -> bool {
    let complaint = String::from_utf8_lossy(complaint).to_lowercase();
    complaint.trim().is_empty()
        || complaint.contains("no such container")
        || complaint.contains("no container with")
}
