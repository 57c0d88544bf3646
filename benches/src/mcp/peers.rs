//! What a user would pick instead, each from its own registry and in its own environment.

use anyhow::{Context, Result, bail};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use super::client::end;
use super::subject::{Subject, free_address, port};

/// The interpreters of the peers' environments, and the folder of the scripts that start them.
pub struct Peers {
    /// `mcp-proxy`.
    pub mcp_proxy: PathBuf,
    /// `fastmcp`.
    pub fastmcp: PathBuf,
    /// `mcp-contextforge-gateway`.
    pub contextforge: PathBuf,
    /// `ryeos-mcp`.
    pub ryeos: PathBuf,
    /// Scripts.
    pub scripts: PathBuf,
}

impl Peers {
    /// The one that only passes calls on.
    pub fn proxy(&self, upstream: &Path) -> Result<Subject> {
        let address = free_address()?;
        let process = Command::new(self.mcp_proxy.with_file_name("mcp-proxy"))
            .args(["--host", "127.0.0.1", "--port", port(&address), "--"])
            .arg(upstream)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("mcp-proxy does not start")?;
        Subject::http("mcp-proxy", "echo", &address, "/mcp", process)
    }

    /// Those that do more, between a client and a server at an address.
    pub fn gateways(&self, url: &str, scratch: &Path) -> Result<Vec<Subject>> {
        let address = free_address()?;
        let mut command = Command::new(&self.fastmcp);
        command.arg(self.scripts.join("fastmcp_proxy.py")).args([url, port(&address)]);
        let fastmcp = Subject::announced("fastmcp", "echo", &mut command)?;
        let (address, folder) = (free_address()?, scratch.join("contextforge"));
        std::fs::create_dir_all(&folder)?;
        let mut command = Command::new(&self.contextforge);
        command.arg(self.scripts.join("contextforge.py")).arg(&folder).args([url, port(&address)]);
        let contextforge = Subject::announced("mcp-contextforge-gateway", "up-echo", &mut command)?;
        Ok(vec![fastmcp, contextforge])
    }

    /// The one with the same four verbs.
    pub fn verbs(&self, scratch: &Path) -> Result<Verbs> {
        let mut process = Command::new(&self.ryeos)
            .arg(self.scripts.join("ryeos_run.py"))
            .arg(scratch.join("ryeos"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("ryeos-mcp does not start")?;
        let read = BufReader::new(process.stdout.take().context("no pipe from the peer")?);
        Ok(Verbs { process, read })
    }
}

/// `ryeos-mcp` behind the script that measures it.
pub struct Verbs {
    process: Child,
    read: BufReader<ChildStdout>,
}

impl Verbs {
    /// One `execute` with `dry_run` over its MCP server: how long it took.
    pub fn rehearse(&mut self) -> Result<Duration> {
        let pipe = self.process.stdin.as_mut().context("no pipe to the peer")?;
        writeln!(pipe, "rehearse bash")?;
        let mut line = String::new();
        if self.read.read_line(&mut line)? == 0 {
            bail!("the peer went away");
        }
        let micros: f64 = line.trim().parse().with_context(|| format!("the peer said: {line}"))?;
        Ok(Duration::from_secs_f64(micros / 1e6))
    }
}

impl Drop for Verbs {
    fn drop(&mut self) {
        end(&mut self.process);
    }
}
