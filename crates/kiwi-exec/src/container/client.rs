//! An engine's client, and the one container it is asked to run.
#![expect(clippy::disallowed_methods, reason = "the one place where a container's client is started")]

use std::ffi::OsString;
use std::io;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::life::Life;
use super::reap::{REMOVE, leftovers, list_words, owner};

/// Whom to ask about a container of this process.
#[derive(Debug, Clone)]
pub struct Client {
    pub program: OsString,
    /// The container's.
    name: String,
    life: Life,
    /// Its environment, if not this process's own.
    env: Option<Vec<(String, String)>>,
}

impl Client {
    /// For the container of a call.
    pub fn new(program: OsString, life: Life, call: &str) -> Self {
        Self { program, name: life.container(call), life, env: None }
    }

    /// The same in another environment.
    pub fn within(self, env: &[(String, String)]) -> Self {
        Self { env: Some(env.to_vec()), ..self }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        if let Some(env) = &self.env {
            command.env_clear().envs(env.iter().map(|(name, value)| (name, value)));
        }
        command
    }

    /// What runs the container, up to what is to be run. It is removed when it ends, and its name tells whose it was.
    pub fn run_command(&self) -> Command {
        let call = self.name.split('.').next().unwrap_or_default().trim_start_matches("kiwi-");
        let labels = [
            format!("kiwi.call={call}"),
            format!("kiwi.owner={}", owner()),
            format!("kiwi.pid={}", std::process::id()),
        ];
        let mut command = self.command();
        command.args(["run", "--rm", "--pull", "never", "--stop-timeout", "0", "--name", &self.name]);
        for label in &labels {
            command.args(["--label", label]);
        }
        command
    }

    /// Removes the container. One that was never seen may still come, until the deadline.
    pub fn remove(&self, deadline: Instant) {
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

    /// Begins to look for containers of this user that nobody looks after any more.
    pub fn list(&self) -> io::Result<Child> {
        let mut command = self.command();
        command.args(list_words(&owner())).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        command.spawn()
    }

    /// Removes what was found.
    pub fn reap(&self, listing: io::Result<Child>) {
        let Ok(listed) = listing.and_then(Child::wait_with_output) else { return };
        let left = leftovers(&listed.stdout, &self.life);
        if !left.is_empty() {
            let _ = self.ask(REMOVE.iter().map(|word| (*word).to_owned()).chain(left));
        }
    }

    /// What the client says to some words, on standard output and on standard error.
    fn ask(&self, words: impl IntoIterator<Item = String>) -> io::Result<(Vec<u8>, Vec<u8>)> {
        let output = self.command().args(words).stdin(Stdio::null()).output()?;
        Ok((output.stdout, output.stderr))
    }
}

fn is_unknown(complaint: &[u8]) -> bool {
    let complaint = String::from_utf8_lossy(complaint).to_lowercase();
    complaint.trim().is_empty()
        || complaint.contains("no such container")
        || complaint.contains("no container with")
}
