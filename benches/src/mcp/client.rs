//! The one client that asks everybody: plain JSON-RPC over pipes or over one HTTP connection, nothing in between.

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// The newest revision that everybody here speaks.
pub const REVISION: &str = "2025-11-25";
/// Longer than anybody takes to start.
const PATIENCE: Duration = Duration::from_secs(90);
/// How long somebody may take to end what it started.
const FAREWELL: Duration = Duration::from_secs(5);

/// A connection to a server.
pub enum Client {
    /// To a process, over its standard streams.
    Pipes(Pipes),
    /// To an address.
    Http(Http),
}

impl Client {
    /// Asks, and waits for the answer.
    pub fn ask(&mut self, method: &str, params: &Value) -> Result<Value> {
        let answer = match self {
            Self::Pipes(pipes) => pipes.ask(method, params)?,
            Self::Http(http) => http.ask(method, params)?,
        };
        match answer.get("result") {
            Some(result) => Ok(result.clone()),
            None => bail!("`{method}` was refused: {answer}"),
        }
    }

    /// Says hello.
    pub fn greet(&mut self) -> Result<()> {
        let info = json!({"name": "bench", "version": "1"});
        self.ask(
            "initialize",
            &json!({"protocolVersion": REVISION, "capabilities": {}, "clientInfo": info}),
        )?;
        match self {
            Self::Pipes(pipes) => pipes.tell("notifications/initialized"),
            Self::Http(http) => http.tell("notifications/initialized"),
        }
    }

    /// Calls a tool, and sees to it that it did not fail.
    pub fn call(&mut self, name: &str, arguments: &Value) -> Result<Value> {
        let result = self.ask("tools/call", &json!({"name": name, "arguments": arguments}))?;
        if result.get("isError").and_then(Value::as_bool) == Some(true) {
            bail!("`{name}` failed: {result}");
        }
        Ok(result)
    }
}

/// A process that is ended when this is dropped.
pub struct Pipes {
    child: Child,
    write: ChildStdin,
    read: BufReader<ChildStdout>,
    line: String,
    number: u64,
}

impl Pipes {
    /// Starts a process that serves over its standard streams.
    pub fn start(command: &mut Command) -> Result<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let write = child.stdin.take().context("no pipe to the server")?;
        let read = BufReader::new(child.stdout.take().context("no pipe from the server")?);
        Ok(Self { child, write, read, line: String::new(), number: 0 })
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    fn send(&mut self, message: &Value) -> Result<()> {
        let mut text = message.to_string();
        text.push('\n');
        Ok(self.write.write_all(text.as_bytes())?)
    }

    fn tell(&mut self, method: &str) -> Result<()> {
        self.send(&json!({"jsonrpc": "2.0", "method": method}))
    }

    fn receive(&mut self) -> Result<Value> {
        loop {
            self.line.clear();
            if self.read.read_line(&mut self.line)? == 0 {
                bail!("the server went away");
            }
            let message: Value = serde_json::from_str(&self.line)?;
            // Whatever else it says is not what is measured.
            if message.get("method").is_none() {
                return Ok(message);
            }
        }
    }

    fn ask(&mut self, method: &str, params: &Value) -> Result<Value> {
        self.number += 1;
        let id = self.number;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))?;
        loop {
            let message = self.receive()?;
            if message.get("id").and_then(Value::as_u64) == Some(id) {
                return Ok(message);
            }
        }
    }

    /// Keeps `width` calls on their way until `count` have been answered.
    pub fn flood(
        &mut self,
        name: &str,
        arguments: &dyn Fn(u64) -> Value,
        width: u64,
        count: u64,
    ) -> Result<Duration> {
        let begun = Instant::now();
        for sent in 0..count + width {
            if sent >= width {
                let answer = self.receive()?;
                let result =
                    answer.get("result").filter(|result| result.get("isError") != Some(&true.into()));
                if result.is_none() {
                    bail!("a call in a flood was refused: {answer}");
                }
            }
            if sent < count {
                self.number += 1;
                let id = self.number;
                let params = json!({"name": name, "arguments": arguments(sent)});
                self.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}))?;
            }
        }
        Ok(begun.elapsed())
    }
}

impl Drop for Pipes {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

/// Ends a process and waits until it is gone. One that listens to us is let go first: it may have others to end.
pub fn end(child: &mut Child) {
    if child.stdin.take().is_some() {
        let begun = Instant::now();
        while begun.elapsed() < FAREWELL && matches!(child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    let _ = child.kill();
    let _ = child.wait();
}

fn open(address: &str) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// One connection that is kept open.
pub struct Http {
    stream: BufReader<TcpStream>,
    address: String,
    path: String,
    token: Option<String>,
    session: Option<String>,
    number: u64,
}

impl Http {
    /// Connects as soon as somebody listens.
    pub fn connect(address: &str, path: &str, token: Option<&str>) -> Result<Self> {
        let begun = Instant::now();
        let stream = loop {
            match open(address) {
                Ok(stream) => break stream,
                Err(error) if begun.elapsed() > PATIENCE => bail!("nobody listens at {address}: {error}"),
                Err(_) => std::thread::sleep(Duration::from_millis(2)),
            }
        };
        Ok(Self {
            stream: BufReader::new(stream),
            address: address.to_owned(),
            path: path.to_owned(),
            token: token.map(str::to_owned),
            session: None,
            number: 0,
        })
    }

    fn post(&mut self, message: &Value) -> Result<()> {
        let body = message.to_string();
        let mut head = format!(
            "POST {} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nMCP-Protocol-Version: {REVISION}\r\nContent-Length: {}\r\n",
            self.path,
            self.address,
            body.len()
        );
        for (name, value) in [("Authorization", &self.token), ("Mcp-Session-Id", &self.session)] {
            if let Some(value) = value {
                // Writing to a String cannot fail.
                let _ = write!(head, "{name}: {value}\r\n");
            }
        }
        head.push_str("\r\n");
        head.push_str(&body);
        Ok(self.stream.get_mut().write_all(head.as_bytes())?)
    }

    /// Reads one answer whole: its status, and its body.
    fn receive(&mut self) -> Result<(u16, String)> {
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let status = line.split(' ').nth(1).and_then(|word| word.parse().ok()).context("no status line")?;
        let (mut length, mut is_chunked) = (None, false);
        loop {
            line.clear();
            if self.stream.read_line(&mut line)? == 0 {
                bail!("the answer ends in its head");
            }
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            match (name.to_ascii_lowercase().as_str(), value.trim()) {
                ("content-length", value) => length = Some(value.parse::<usize>()?),
                ("transfer-encoding", value) => is_chunked = value.eq_ignore_ascii_case("chunked"),
                ("mcp-session-id", value) => self.session = Some(value.to_owned()),
                _ => {}
            }
        }
        let mut body = Vec::new();
        if is_chunked {
            loop {
                line.clear();
                self.stream.read_line(&mut line)?;
                let size = usize::from_str_radix(line.trim().split(';').next().unwrap_or_default(), 16)?;
                let from = body.len();
                body.resize(from + size, 0);
                self.stream.read_exact(body.get_mut(from..).unwrap_or_default())?;
                line.clear();
                self.stream.read_line(&mut line)?;
                if size == 0 {
                    break;
                }
            }
        } else {
            body.resize(length.unwrap_or(0), 0);
            self.stream.read_exact(&mut body)?;
        }
        Ok((status, String::from_utf8(body)?))
    }

    fn tell(&mut self, method: &str) -> Result<()> {
        self.post(&json!({"jsonrpc": "2.0", "method": method}))?;
        self.receive().map(drop)
    }

    fn ask(&mut self, method: &str, params: &Value) -> Result<Value> {
        self.number += 1;
        let id = self.number;
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let answered = self.post(&message).and_then(|()| self.receive());
        // Some servers close what was quiet for a few seconds, and say nothing.
        let (status, body) = if let Ok(answered) = answered {
            answered
        } else {
            self.stream = BufReader::new(open(&self.address)?);
            self.post(&message)?;
            self.receive()?
        };
        let events = body.lines().filter_map(|line| line.strip_prefix("data:"));
        let texts: Vec<&str> = if body.starts_with('{') { vec![&body] } else { events.collect() };
        let messages = texts.iter().filter_map(|text| serde_json::from_str::<Value>(text).ok());
        let answer =
            messages.into_iter().find(|message| message.get("id").and_then(Value::as_u64) == Some(id));
        answer.with_context(|| format!("status {status} without an answer: {body}"))
    }
}
