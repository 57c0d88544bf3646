//! Who is asked: each a process or two, started for this run and ended with it.

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::client::{Client, Http, Pipes, end};

/// Somebody who can be asked to echo.
pub struct Subject {
    /// Who.
    pub name: &'static str,
    /// The name of the tool that echoes.
    pub tool: &'static str,
    /// How a text is put into its arguments.
    pub arguments: fn(&str) -> Value,
    /// How long it took from its start to its first answer.
    pub start: Duration,
    pub client: Client,
    way: Way,
    /// Ended with it, newest first.
    processes: Vec<Child>,
}

/// Where further connections go.
#[derive(Clone)]
enum Way {
    Pipes,
    Http { address: String, path: String, token: Option<String> },
}

/// The arguments of the upstream's own tool.
pub fn plain(text: &str) -> Value {
    json!({"message": text})
}

impl Subject {
    /// A process that serves over its standard streams.
    pub fn pipes(name: &'static str, tool: &'static str, command: &mut Command) -> Result<Self> {
        let begun = Instant::now();
        let mut client =
            Client::Pipes(Pipes::start(command).with_context(|| format!("cannot start {name}"))?);
        client.greet().with_context(|| format!("{name} does not answer"))?;
        let start = begun.elapsed();
        Ok(Self { name, tool, arguments: plain, start, client, way: Way::Pipes, processes: Vec::new() })
    }

    /// A process that serves at an address.
    pub fn http(
        name: &'static str,
        tool: &'static str,
        address: &str,
        path: &str,
        process: Child,
    ) -> Result<Self> {
        let way = Way::Http { address: address.to_owned(), path: path.to_owned(), token: None };
        Self::behind(name, tool, way, process)
    }

    /// A program that prints where it serves: one line of JSON with `address`, `path` and perhaps `token`.
    pub fn announced(name: &'static str, tool: &'static str, command: &mut Command) -> Result<Self> {
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {name}"))?;
        let mut line = String::new();
        BufReader::new(process.stdout.take().context("no pipe")?).read_line(&mut line)?;
        let said: Value = serde_json::from_str(&line).with_context(|| format!("{name} said: {line}"))?;
        let word = |key: &str| said.get(key).and_then(Value::as_str).map(str::to_owned);
        let (Some(address), Some(path)) = (word("address"), word("path")) else {
            end(&mut process);
            bail!("{name} does not say where it is: {line}");
        };
        Self::behind(name, tool, Way::Http { address, path, token: word("token") }, process)
    }

    fn behind(name: &'static str, tool: &'static str, way: Way, process: Child) -> Result<Self> {
        let begun = Instant::now();
        let mut subject = Self {
            name,
            tool,
            arguments: plain,
            start: Duration::ZERO,
            client: way.connect().with_context(|| format!("{name} cannot be reached"))?,
            way,
            processes: vec![process],
        };
        subject.start = begun.elapsed();
        Ok(subject)
    }

    /// One call: how long it took. What comes back must hold what was sent.
    pub fn call(&mut self, text: &str) -> Result<Duration> {
        let arguments = (self.arguments)(text);
        let begun = Instant::now();
        let result = self.client.call(self.tool, &arguments).with_context(|| self.name.to_owned())?;
        let took = begun.elapsed();
        if !result.to_string().contains(text) {
            bail!("{} does not echo: {result}", self.name);
        }
        Ok(took)
    }

    /// Calls a second, with so many at once.
    pub fn throughput(&mut self, width: u64, count: u64) -> Result<f64> {
        // Another text each time, as agents send them: the same again and again is a loop, and is refused.
        let say = self.arguments;
        let arguments = |number: u64| say(&super::text(usize::try_from(number).unwrap_or(0)));
        let took = match (&mut self.client, &self.way) {
            (Client::Pipes(pipes), _) => pipes.flood(self.tool, &arguments, width, count)?,
            (Client::Http(_), way) => {
                let each = count / width;
                let clients: Vec<Client> = (0..width).map(|_| way.connect()).collect::<Result<_>>()?;
                let begun = Instant::now();
                std::thread::scope(|scope| -> Result<()> {
                    let threads: Vec<_> = clients
                        .into_iter()
                        .zip(0..)
                        .map(|(mut client, number)| {
                            let (tool, arguments) = (self.tool, &arguments);
                            let mut numbers = number * each..(number + 1) * each;
                            scope.spawn(move || {
                                numbers.try_for_each(|number| client.call(tool, &arguments(number)).map(drop))
                            })
                        })
                        .collect();
                    threads
                        .into_iter()
                        .try_for_each(|thread| thread.join().unwrap_or_else(|_| bail!("a client died")))
                })?;
                begun.elapsed()
            }
        };
        #[expect(clippy::cast_precision_loss, reason = "a rate")]
        Ok(count as f64 / took.as_secs_f64())
    }

    /// What its processes hold, in MiB; the upstream behind them counts for itself.
    pub fn memory(&self) -> f64 {
        let own = match &self.client {
            Client::Pipes(pipes) => vec![pipes.id()],
            Client::Http(_) => self.processes.first().map(Child::id).into_iter().collect(),
        };
        own.into_iter().map(resident).sum()
    }
}

impl Way {
    fn connect(&self) -> Result<Client> {
        match self {
            Self::Pipes => bail!("a pipe has one end"),
            Self::Http { address, path, token } => {
                let mut client = Client::Http(Http::connect(address, path, token.as_deref())?);
                client.greet()?;
                Ok(client)
            }
        }
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        self.processes.iter_mut().rev().for_each(end);
    }
}

/// The resident memory of a process, in MiB.
fn resident(id: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib: f64 = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(f64::NAN);
    kib / 1024.0
}

/// An address on this machine that was free a moment ago.
pub fn free_address() -> Result<String> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string())
}

/// The port of an address.
pub fn port(address: &str) -> &str {
    address.rsplit(':').next().unwrap_or_default()
}

/// A project and a home with one upstream server, `up`, and limits that a benchmark does not run into.
pub fn place(folder: &Path, upstream: &Path) -> Result<(PathBuf, PathBuf)> {
    let (project, home) = (folder.join("project"), folder.join("home"));
    std::fs::create_dir_all(home.join(".ai/config"))?;
    std::fs::create_dir_all(&project)?;
    kiwi_space::scaffold(&project)?;
    let entry = format!("mcps:\n  up: {{command: {:?}, args: []}}\n", upstream.display().to_string());
    std::fs::write(home.join(".ai/config/mcp_registry.yaml"), entry)?;
    std::fs::write(home.join(".ai/config/kiwi.toml"), LIMITS)?;
    Ok((project, home))
}

/// Every stage judges as always; only the numbers are those of a client that never stops.
const LIMITS: &str = "[rates]\n\"@mcp\" = { session = 100000000, minute = 100000000 }\n";
