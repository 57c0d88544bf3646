//! What the suites share: registries of their own on both engines, packages, and a client that can be as rude as it likes.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "each suite uses a part of it; a test may stop at the first surprise"
)]

pub mod package;

pub use package::Package;

use kiwi_model::Secret;
use kiwi_registry::{Limits, Server, ServerOptions};
use serde_json::Value;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// The token of every registry here.
pub const ADMIN: &str = "an-admin-token-of-the-tests";

/// Which engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    Sqlite,
    Postgres,
}

/// The address of the PostgreSQL that the tests are given.
pub fn postgres() -> String {
    std::env::var("KIWI_TEST_POSTGRES").expect(
        "KIWI_TEST_POSTGRES names a PostgreSQL: `cargo xtask postgres cargo nextest run -p kiwi-registry`",
    )
}

/// A database of its own, and the folder it keeps files in.
pub struct Ground {
    pub folder: tempfile::TempDir,
    pub database: String,
}

impl Ground {
    pub async fn new(engine: Engine) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let folder = tempfile::tempdir().unwrap();
        let database = match engine {
            Engine::Sqlite => folder.path().join("registry.sqlite").to_str().unwrap().to_owned(),
            Engine::Postgres => {
                let count = COUNT.fetch_add(1, Ordering::Relaxed);
                let name = format!(
                    "kiwi_{}_{count}_{}",
                    std::process::id(),
                    jiff::Timestamp::now().as_microsecond()
                );
                let base = postgres();
                let pool =
                    sqlx::postgres::PgPoolOptions::new().max_connections(1).connect(&base).await.unwrap();
                let create = sqlx::AssertSqlSafe(format!("CREATE DATABASE {name}"));
                sqlx::raw_sql(create).execute(&pool).await.unwrap();
                pool.close().await;
                let (front, _) = base.rsplit_once('/').unwrap();
                format!("{front}/{name}")
            }
        };
        Self { folder, database }
    }

    pub fn options(&self) -> ServerOptions {
        let mut options = ServerOptions::new(&self.database);
        options.admin_token = Some(Secret::new(ADMIN));
        options.limits = Limits { requests_per_second: 100_000, burst: 100_000, ..Limits::default() };
        options
    }

    /// Starts one more server on the same database.
    pub async fn serve(&self, options: ServerOptions) -> Client {
        let server = Server::open(options).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(server.serve(listener, std::future::pending()));
        Client { address, token: Some(ADMIN.to_owned()) }
    }
}

/// A registry with one server.
pub struct Registry {
    pub ground: Ground,
    pub admin: Client,
}

impl Registry {
    pub async fn new(engine: Engine) -> Self {
        let ground = Ground::new(engine).await;
        let admin = ground.serve(ground.options()).await;
        Self { ground, admin }
    }

    /// A client with a token of its own.
    pub async fn user(&self, name: &str, scopes: &[&str]) -> Client {
        let body = serde_json::json!({"user": name, "scopes": scopes});
        let made = self.admin.json("POST", "/v1/tokens", &body).await.expect_status(201);
        Client { address: self.admin.address, token: Some(made["token"].as_str().unwrap().to_owned()) }
    }

    /// Somebody who publishes.
    pub async fn publisher(&self, name: &str) -> Client {
        self.user(name, &["read", "publish"]).await
    }

    /// Somebody without a token.
    pub fn nobody(&self) -> Client {
        Client { address: self.admin.address, token: None }
    }
}

/// Runs a test on a runtime with several threads.
pub fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

/// The same tests on both engines.
#[macro_export]
macro_rules! on_both {
    ($($name:ident),* $(,)?) => {
        mod sqlite {
            $(#[test] fn $name() { $crate::support::block_on(super::$name($crate::support::Engine::Sqlite)); })*
        }
        mod postgres {
            $(#[test] fn $name() { $crate::support::block_on(super::$name($crate::support::Engine::Postgres)); })*
        }
    };
}

/// An answer.
#[derive(Debug, Clone)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Reply {
    pub fn value(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.body)))
    }

    #[track_caller]
    pub fn expect_status(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", String::from_utf8_lossy(&self.body));
        if self.body.is_empty() { Value::Null } else { self.value() }
    }

    /// A failure of this status and kind, in the form of all failures.
    #[track_caller]
    pub fn expect_fault(&self, status: u16, kind: &str) -> Value {
        let value = self.expect_status(status);
        assert_eq!(value["error"]["kind"], kind, "{value}");
        assert!(value["error"]["message"].as_str().is_some_and(|it| !it.is_empty()), "{value}");
        value["error"].clone()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// A client.
#[derive(Debug, Clone)]
pub struct Client {
    pub address: SocketAddr,
    pub token: Option<String>,
}

impl Client {
    pub async fn get(&self, path: &str) -> Reply {
        self.send("GET", path, &[], b"").await
    }

    pub async fn json(&self, method: &str, path: &str, body: &Value) -> Reply {
        self.send(method, path, &[("content-type", "application/json")], body.to_string().as_bytes()).await
    }

    pub async fn put_blob(&self, bytes: &[u8]) -> Reply {
        let path = format!("/v1/blobs/{}", kiwi_model::Digest::of(bytes));
        self.send("PUT", &path, &[("content-type", "application/octet-stream")], bytes).await
    }

    /// Uploads what is missing, and publishes.
    pub async fn publish(&self, package: &Package) -> Reply {
        self.upload(package).await;
        self.json("PUT", &package.path(), &package.publication()).await
    }

    /// Uploads what is missing.
    pub async fn upload(&self, package: &Package) {
        for (_, bytes, _) in &package.files {
            self.put_blob(bytes).await.expect_status(204);
        }
    }

    pub async fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Reply {
        let mut head = format!("{method} {path} HTTP/1.1\r\nhost: registry\r\nconnection: close\r\n");
        if let Some(token) = &self.token {
            let _ = write!(head, "authorization: Bearer {token}\r\n");
        }
        if !body.is_empty() || method == "PUT" || method == "POST" {
            let _ = write!(head, "content-length: {}\r\n", body.len());
        }
        for (name, value) in headers {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        head.push_str("\r\n");
        self.raw(&[head.as_bytes(), body].concat()).await
    }

    /// Sends bytes as they are, and reads one answer to its end.
    pub async fn raw(&self, bytes: &[u8]) -> Reply {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let (mut from, mut to) = stream.into_split();
        let bytes = bytes.to_vec();
        // A server may answer before it has read all, and not read the rest.
        let writing = tokio::spawn(async move {
            let _ = to.write_all(&bytes).await;
            to
        });
        let mut answer = Vec::new();
        let _ = from.read_to_end(&mut answer).await;
        drop(writing);
        read(&answer)
    }
}

fn read(answer: &[u8]) -> Reply {
    let at = answer.windows(4).position(|it| it == b"\r\n\r\n");
    let Some(at) = at else { panic!("no answer: {}", String::from_utf8_lossy(answer)) };
    let head = String::from_utf8(answer[..at].to_vec()).unwrap();
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let headers = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    Reply { status, headers, body: answer[at + 4..].to_vec() }
}
