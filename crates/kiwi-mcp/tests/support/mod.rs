//! What the tests of the pool share: a pool, servers to connect to, and callers that remember what they heard.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "each test file uses a part of it; a test may stop at the first surprise"
)]

pub mod web;

use kiwi_exec::{Confinement, HttpClient, Launcher};
use kiwi_mcp::{
    Answer, Asked, Authorize, Capability, Connection, HttpAuth, McpError, Pool, Reach, Refusal, Relay,
    RelayFuture, Server, ServerName, Silent, Surroundings,
};
use kiwi_model::{Isolation, Space};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A pool in a folder of its own.
pub struct Bench {
    pub folder: tempfile::TempDir,
    pub pool: Arc<Pool>,
    /// How often a list was said to have changed.
    pub changes: Arc<AtomicUsize>,
}

impl Bench {
    pub fn new() -> Self {
        Self::with(|_| {})
    }

    pub fn with(adjust: impl FnOnce(&mut Surroundings)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let changes = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&changes);
        let launcher = Launcher::new(example("mcp_launcher"), folder.path().join("scratch"));
        let mut around = Surroundings {
            launcher: launcher.with_grace(Duration::from_millis(300)),
            http: Arc::new(HttpClient::new()),
            environment: vec![("PATH".into(), "/usr/bin:/bin".into()), ("BASE".into(), "base".into())],
            lookup: Arc::new(|name| (name == "SECRET").then(|| "opensesame".to_owned())),
            search_path: "/usr/bin:/bin".into(),
            project: std::fs::canonicalize(folder.path()).unwrap(),
            confinement: Confinement::default(),
            tokens: folder.path().join("tokens"),
            authorize: None,
            on_change: Arc::new(move |_, _| {
                counter.fetch_add(1, Ordering::SeqCst);
            }),
        };
        adjust(&mut around);
        Self { folder, pool: Arc::new(Pool::new(around)), changes }
    }

    pub fn changes(&self) -> usize {
        self.changes.load(Ordering::SeqCst)
    }

    /// Calls a tool of a server.
    pub async fn call(&self, server: &Server, tool: &str, arguments: Value) -> Result<Answer, McpError> {
        let connection = self.pool.connect(server).await?;
        call(&connection, tool, arguments).await
    }
}

/// Calls a tool, with nobody listening.
pub async fn call(connection: &Connection, tool: &str, arguments: Value) -> Result<Answer, McpError> {
    call_as(connection, tool, arguments, Arc::new(Silent)).await
}

/// Calls a tool.
pub async fn call_as(
    connection: &Connection,
    tool: &str,
    arguments: Value,
    relay: Arc<dyn Relay>,
) -> Result<Answer, McpError> {
    let params = json!({"name": tool, "arguments": arguments});
    connection.request("tools/call", params, relay, std::future::pending()).await
}

/// The chaotic server of the older revisions, in one of its moods.
pub fn chaos(name: &str, mode: &str) -> Server {
    script(name, "server.py", &[mode])
}

/// A server that is a script of these tests.
pub fn script(name: &str, file: &str, arguments: &[&str]) -> Server {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support").join(file);
    let mut args = vec!["-I".to_owned(), "-u".to_owned(), path.to_str().unwrap().to_owned()];
    args.extend(arguments.iter().map(|text| (*text).to_owned()));
    let reach = Reach::Stdio { command: "python3".into(), args, env: BTreeMap::new(), cwd: None };
    server(name, reach)
}

/// A server behind an address.
pub fn endpoint(name: &str, url: &str) -> Server {
    let reach = Reach::Http { url: url.to_owned(), headers: BTreeMap::new(), auth: HttpAuth::None };
    server(name, reach)
}

pub fn server(name: &str, reach: Reach) -> Server {
    Server {
        name: ServerName::parse(name).unwrap(),
        space: Space::User,
        reach,
        description: None,
        isolation: Isolation::Standard,
        idle_timeout: Duration::from_mins(5),
        start_timeout: Duration::from_secs(20),
        timeout: Duration::from_secs(20),
        schema_ttl: Duration::from_hours(1),
        trusts_annotations: false,
    }
}

/// An example program of this crate, built by `cargo test` next to the tests.
pub fn example(name: &str) -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let path = tests.parent().and_then(Path::parent).unwrap().join("examples").join(name);
    assert!(
        path.is_file(),
        "{} is missing: run `cargo test -p kiwi-mcp` or build the examples",
        path.display()
    );
    path
}

pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// A caller that remembers what it hears, and answers what it is told to.
#[derive(Default)]
pub struct Witness {
    pub progress: Mutex<Vec<Value>>,
    pub logs: Mutex<Vec<Value>>,
    pub asked: Mutex<Vec<Asked>>,
    pub answer: Option<(Capability, Value)>,
    pub pause: Duration,
}

impl Witness {
    pub fn answering(capability: Capability, answer: Value) -> Arc<Self> {
        Arc::new(Self { answer: Some((capability, answer)), ..Self::default() })
    }
}

impl Relay for Witness {
    fn capabilities(&self) -> Vec<Capability> {
        self.answer.iter().map(|(capability, _)| *capability).collect()
    }
    fn progress(&self, progress: Value) {
        self.progress.lock().unwrap().push(progress);
    }
    fn log(&self, message: Value) {
        self.logs.lock().unwrap().push(message);
    }
    fn ask(&self, questions: Vec<Asked>) -> RelayFuture<'_, Vec<Result<Value, Refusal>>> {
        let count = questions.len();
        self.asked.lock().unwrap().extend(questions);
        let refusal = Refusal { code: -32601, message: "nobody here".into(), data: None };
        let answer = self.answer.as_ref().map(|(_, answer)| answer.clone()).ok_or(refusal);
        Box::pin(async move {
            tokio::time::sleep(self.pause).await;
            vec![answer; count]
        })
    }
}

/// Somebody who is sent to an address and comes back.
pub struct Visitor<F>(pub F);

impl<F: Fn(String) -> Result<String, String> + Send + Sync> Authorize for Visitor<F> {
    fn redirect_uri(&self) -> String {
        "http://127.0.0.1:9/callback".into()
    }
    fn authorize(&self, _: &ServerName, url: String) -> RelayFuture<'_, Result<String, String>> {
        Box::pin(std::future::ready((self.0)(url)))
    }
}

/// A number of seconds to sleep that no other process sleeps.
pub fn marker() -> String {
    let random = std::collections::hash_map::RandomState::new();
    let number = std::hash::BuildHasher::hash_one(&random, std::process::id());
    format!("98765.{number}")
}

/// Processes with the marker in their command line.
pub fn marked(marker: &str) -> Vec<i32> {
    let own = std::process::id().cast_signed();
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| *pid != own)
        .filter(|pid| {
            std::fs::read(format!("/proc/{pid}/cmdline"))
                .is_ok_and(|line| String::from_utf8_lossy(&line).contains(marker))
        })
        .collect()
}

/// Waits until a condition holds.
pub async fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The error's words, and what the server said last.
#[track_caller]
pub fn unavailable(error: McpError) -> (String, String) {
    match error {
        McpError::Unavailable { problem, stderr, .. } => (problem, stderr),
        other => panic!("{other:?}"),
    }
}
