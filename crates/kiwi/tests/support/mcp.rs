//! Clients that speak the protocol as it is on the wire, over standard streams and over HTTP.
#![allow(clippy::disallowed_types, reason = "a test connects to the program it started")]
#![allow(
    clippy::needless_pass_by_value,
    clippy::format_push_string,
    reason = "what is written in place reads best without an ampersand"
)]

use super::TestEnvironment;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_mins(1);
pub const MODERN: &str = "2026-07-28";
pub const OLD: &str = "2025-11-25";

/// What every request of the newest revision says about its client.
pub fn meta(capabilities: Value) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": {"name": "tester", "version": "1.0.0"},
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    })
}

/// Lets agents work in the project.
pub fn trusted(env: &TestEnvironment) {
    assert_eq!(env.run(&["trust", "add"]).code, 0);
}

/// A client at the other end of the standard streams.
pub struct Pipe {
    pub child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Value>,
    next: u64,
    /// What came that was no answer.
    pub heard: Vec<Value>,
    meta: Option<Value>,
}

impl Pipe {
    fn start(env: &TestEnvironment, words: &[&str]) -> Self {
        let mut command = env.command(&[&["mcp"], words].concat());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (send, lines) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let message = serde_json::from_str(&line).unwrap_or_else(|_| panic!("not a message: {line}"));
                if send.send(message).is_err() {
                    break;
                }
            }
        });
        let stdin = child.stdin.take();
        Self { child, stdin, lines, next: 0, heard: Vec::new(), meta: None }
    }

    /// A client of an older revision, connected.
    pub fn old(env: &TestEnvironment, words: &[&str], capabilities: Value) -> Self {
        let mut pipe = Self::start(env, words);
        let client = json!({"name": "tester", "version": "1.0.0"});
        let hello = json!({"protocolVersion": OLD, "capabilities": capabilities, "clientInfo": client});
        let answer = pipe.request("initialize", hello);
        assert_eq!(answer["result"]["protocolVersion"], OLD, "{answer}");
        pipe.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        pipe
    }

    /// A client of the newest revision: there is nothing to begin with.
    pub fn modern(env: &TestEnvironment, words: &[&str], capabilities: Value) -> Self {
        let mut pipe = Self::start(env, words);
        pipe.meta = Some(meta(capabilities));
        pipe
    }

    pub fn send(&mut self, message: &Value) {
        writeln!(self.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    /// Sends a request and gives its number.
    pub fn ask(&mut self, method: &str, mut params: Value) -> u64 {
        self.next += 1;
        if let Some(meta) = &self.meta {
            let own = params["_meta"].take();
            params["_meta"] = meta.clone();
            for (name, value) in own.as_object().into_iter().flatten() {
                params["_meta"][name] = value.clone();
            }
        }
        self.send(&json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params}));
        self.next
    }

    /// The next message, whatever it is.
    pub fn hear(&mut self) -> Value {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(message) => message,
            Err(error) => panic!("nothing came: {error}; before: {:?}", self.heard),
        }
    }

    /// Whether nothing comes for a while.
    pub fn is_silent(&mut self, time: Duration) -> bool {
        matches!(self.lines.recv_timeout(time), Err(RecvTimeoutError::Timeout))
    }

    /// The answer to a request; what comes before it is kept.
    pub fn answer(&mut self, id: u64) -> Value {
        loop {
            let message = self.hear();
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
            self.heard.push(message);
        }
    }

    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params);
        self.answer(id)
    }

    /// Calls a tool and gives its result.
    #[track_caller]
    pub fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let mut answer = self.request("tools/call", json!({"name": tool, "arguments": arguments}));
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].take()
    }

    /// Goes, and gives the exit code.
    pub fn leave(mut self) -> Option<i32> {
        drop(self.stdin.take());
        self.child.wait().unwrap().code()
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `kiwi serve` on a free port.
pub struct Served {
    pub child: Child,
    pub port: u16,
}

/// What a request over HTTP came to.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Reply {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Every message in it: one as JSON, or those of a stream.
    pub fn messages(&self) -> Vec<Value> {
        if let Ok(value) = serde_json::from_str(&self.body) {
            return vec![value];
        }
        let data = self.body.lines().filter_map(|line| line.strip_prefix("data:"));
        data.filter_map(|data| serde_json::from_str(data.trim()).ok()).collect()
    }

    /// The last message: the answer.
    #[track_caller]
    pub fn message(&self) -> Value {
        self.messages().pop().unwrap_or_else(|| panic!("no message in {self:?}"))
    }
}

impl Served {
    pub fn start(env: &TestEnvironment, words: &[&str]) -> Self {
        let mut command = env.command(&[&["serve", "--port", "0", "--json"], words].concat());
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let told: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}"));
        let port = u16::try_from(told["port"].as_u64().unwrap()).unwrap();
        Self { child, port }
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Sends what is given, and reads to the end.
    pub fn raw(&self, text: &str) -> Reply {
        let mut stream = self.connect();
        stream.write_all(text.as_bytes()).unwrap();
        read(&mut stream)
    }

    /// A request with these headers beside the usual ones; those given win.
    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        let host = format!("127.0.0.1:{}", self.port);
        let length = body.len().to_string();
        let usual = [
            ("host", host.as_str()),
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
            ("content-length", &length),
            ("connection", "close"),
        ];
        let mut text = format!("{method} {path} HTTP/1.1\r\n");
        for (name, value) in usual.iter().filter(|(name, _)| !headers.iter().any(|(given, _)| given == name))
        {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        self.raw(&format!("{text}\r\n{body}"))
    }

    /// A request of the newest revision.
    pub fn modern(&self, path: &str, method: &str, mut params: Value, headers: &[(&str, &str)]) -> Reply {
        if params.get("_meta").is_none() {
            params["_meta"] = meta(json!({}));
        }
        let name = params["name"].as_str().or_else(|| params["uri"].as_str()).map(str::to_owned);
        let mut all = vec![("mcp-protocol-version", MODERN), ("mcp-method", method)];
        if let Some(name) = &name {
            all.push(("mcp-name", name));
        }
        all.retain(|(name, _)| !headers.iter().any(|(given, _)| given == name));
        all.extend(headers);
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        self.send("POST", path, &all, &body.to_string())
    }

    /// Asks it to end and gives the exit code.
    pub fn stop(mut self) -> Option<i32> {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        self.child.wait().unwrap().code()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads an answer to its end.
pub fn read(stream: &mut TcpStream) -> Reply {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let mut lines = head.lines();
    let status =
        lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|it| it.parse().ok()).unwrap_or(0);
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let is_chunked = headers.iter().any(|(name, value)| name == "transfer-encoding" && value == "chunked");
    Reply { status, headers, body: if is_chunked { unchunked(body) } else { body.to_owned() } }
}

fn unchunked(mut body: &str) -> String {
    let mut whole = String::new();
    while let Some((length, rest)) = body.split_once("\r\n") {
        let length = usize::from_str_radix(length.trim(), 16).unwrap_or(0);
        if length == 0 || rest.len() < length {
            break;
        }
        let (chunk, behind) = rest.split_at(length);
        whole.push_str(chunk);
        body = behind.trim_start_matches("\r\n");
    }
    whole
}

/// The folder with real clients, servers and suites that `cargo xtask test` makes.
#[track_caller]
pub fn components() -> PathBuf {
    match std::env::var_os("KIWI_TEST_MCP") {
        Some(folder) => folder.into(),
        None => panic!(
            "this suite needs MCP clients, servers and suites, which `cargo xtask test` sets up; alone it runs by \
             `cargo xtask mcp cargo test -p kiwi --test NAME`"
        ),
    }
}
