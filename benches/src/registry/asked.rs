//! A real server, and a connection that stays open.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::cell::RefCell;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::Setup;

/// The token that may do everything.
pub const ADMIN: &str = "the-admin-token-of-the-benchmark";

/// A server that ends with this.
pub struct Served {
    child: Child,
    pub url: String,
    connection: RefCell<BufReader<TcpStream>>,
}

impl Served {
    pub fn start(setup: &Setup, scratch: &Path, database: &str) -> Result<Self> {
        let mut child = Command::new(&setup.kiwi)
            .args(["registry", "serve", "--json", "--listen", "127.0.0.1:0", "--rate", "1000000"])
            .args(["--database", database])
            .env("HOME", scratch)
            .env("KIWI_ADMIN_TOKEN", ADMIN)
            .current_dir(scratch)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("the server does not start")?;
        let mut line = String::new();
        let out = child.stdout.take().context("no output")?;
        BufReader::new(out).read_line(&mut line)?;
        let told: Value = serde_json::from_str(&line).with_context(|| format!("the server says `{line}`"))?;
        let url = told.get("url").and_then(Value::as_str).context("no address")?.to_owned();
        let stream = TcpStream::connect(url.trim_start_matches("http://"))?;
        stream.set_nodelay(true)?;
        Ok(Self { child, url, connection: RefCell::new(BufReader::new(stream)) })
    }

    /// Asks as an admin.
    pub fn get(&self, path: &str) -> Result<Value> {
        let mut connection = self.connection.borrow_mut();
        let request =
            format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {ADMIN}\r\n\r\n");
        connection.get_mut().write_all(request.as_bytes())?;
        let (mut status, mut length) = (String::new(), 0);
        connection.read_line(&mut status)?;
        loop {
            let mut line = String::new();
            connection.read_line(&mut line)?;
            if line.trim().is_empty() {
                break;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse()?;
            }
        }
        let mut body = vec![0; length];
        connection.read_exact(&mut body)?;
        if !status.contains(" 200 ") {
            bail!("{path}: {status} {}", String::from_utf8_lossy(&body));
        }
        Ok(serde_json::from_slice(&body)?)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
