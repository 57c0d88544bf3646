//! `kiwi registry serve`, and people who use it.
#![allow(clippy::disallowed_types, reason = "a test asks over a connection of its own")]

use super::{Ran, TestEnvironment, ran};
use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

pub const ADMIN: &str = "the-admin-token-of-these-tests";

/// A running registry.
pub struct Registry {
    child: Child,
    pub url: String,
}

impl Registry {
    /// Starts one; `listen` is an address.
    pub fn start_at(env: &TestEnvironment, database: &str, listen: &str) -> Self {
        Self::start_with(env, database, listen, ADMIN)
    }

    /// The same with another token for admins.
    pub fn start_with(env: &TestEnvironment, database: &str, listen: &str, admin: &str) -> Self {
        let words = ["registry", "serve", "--json", "--database", database, "--listen", listen];
        let mut command = env.command(&words);
        command.env("KIWI_ADMIN_TOKEN", admin);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let told: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("registry said `{line}`"));
        Self { child, url: told["url"].as_str().unwrap().to_owned() }
    }

    pub fn start(env: &TestEnvironment, database: &str) -> Self {
        Self::start_at(env, database, "127.0.0.1:0")
    }

    /// Its address without the scheme.
    pub fn address(&self) -> &str {
        self.url.strip_prefix("http://").unwrap()
    }

    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Asks it to end and gives the exit code.
    pub fn stop(mut self) -> Option<i32> {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        self.child.wait().unwrap().code()
    }

    /// A token for a user.
    pub fn token(&self, env: &TestEnvironment, user: &str, scope: &str) -> String {
        let mut command =
            env.command(&["registry", "token", "create", "--user", user, "--scope", scope, "--json"]);
        let made = ran(&command.env("KIWI_REGISTRY", &self.url).env("KIWI_TOKEN", ADMIN).output().unwrap());
        assert_eq!(made.code, 0, "{}{}", made.stdout, made.stderr);
        serde_json::from_str::<Value>(&made.stdout).unwrap()["token"].as_str().unwrap().to_owned()
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Somebody with a home and a project of their own, and a token.
pub struct Person {
    pub env: TestEnvironment,
    pub url: String,
    pub token: String,
}

impl Person {
    pub fn new(registry: &Registry, name: &str, scope: &str) -> Self {
        let env = TestEnvironment::new();
        let token = registry.token(&env, name, scope);
        Self { env, url: registry.url.clone(), token }
    }

    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = self.env.command(words);
        command.env("KIWI_REGISTRY", &self.url).env("KIWI_TOKEN", &self.token);
        command
    }

    pub fn run(&self, words: &[&str]) -> Ran {
        ran(&self.command(words).output().unwrap())
    }

    /// Runs with `--json`, expects this exit code, and returns the one object.
    #[track_caller]
    pub fn json(&self, words: &[&str], code: i32) -> Value {
        let ran = self.run(&[words, &["--json"]].concat());
        assert_eq!(ran.code, code, "{words:?}\n{}\n{}", ran.stdout, ran.stderr);
        serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {}", ran.stdout))
    }
}

/// A PostgreSQL database of a test's own; the server makes it.
pub fn postgres(name: &str) -> String {
    let base = std::env::var("KIWI_TEST_POSTGRES")
        .expect("KIWI_TEST_POSTGRES names a PostgreSQL: `cargo xtask test` starts one");
    let (front, rest) = base.rsplit_once('/').unwrap();
    let query = rest.split_once('?').map(|(_, query)| format!("?{query}")).unwrap_or_default();
    format!("{front}/kiwi_{name}_{}{query}", std::process::id())
}

impl Registry {
    /// What it answers to anybody.
    pub fn get(&self, path: &str) -> Value {
        use std::io::{Read as _, Write as _};
        let mut stream = std::net::TcpStream::connect(self.address()).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n", self.address());
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (_, body) = text.split_once("\r\n\r\n").unwrap();
        serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {text}"))
    }
}
