//! A person's browser: where access to a server is given, and where the answer comes back to.

use kiwi_mcp::{Authorize, RelayFuture, ServerName};
use std::net::TcpListener;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::printer;

/// The longest first line of a request that is read.
const MOST_OF_A_LINE: usize = 16 << 10;
/// What the person sees when they come back.
const PAGE: &str = "Kiwi has what it needs. You can close this page.\n";

/// Sends a person to an address, and listens on this machine for where they are sent back to.
#[derive(Default)]
pub struct Browser {
    is_open: AtomicBool,
    listener: OnceLock<Option<TcpListener>>,
}

impl Browser {
    /// For a terminal with a person before it, or not yet.
    pub fn new(has_person: bool) -> Self {
        Self { is_open: AtomicBool::new(has_person), listener: OnceLock::new() }
    }

    /// Somebody asked for a login.
    pub fn open_for_business(&self) {
        self.is_open.store(true, Ordering::Relaxed);
    }

    fn listener(&self) -> Option<&TcpListener> {
        self.listener.get_or_init(|| TcpListener::bind("127.0.0.1:0").ok()).as_ref()
    }

    /// The whole address of the first request that brings an answer.
    async fn answer(&self) -> Result<String, String> {
        let listener = self.listener().ok_or("no port on this machine can be listened on")?;
        let text = |error: std::io::Error| error.to_string();
        let listener = listener.try_clone().map_err(text)?;
        listener.set_nonblocking(true).map_err(text)?;
        let listener = tokio::net::TcpListener::from_std(listener).map_err(text)?;
        loop {
            let (mut stream, _) = listener.accept().await.map_err(text)?;
            let mut head = Vec::new();
            let mut part = [0; 1024];
            while !head.contains(&b'\n') && head.len() < MOST_OF_A_LINE {
                match stream.read(&mut part).await {
                    Ok(0) | Err(_) => break,
                    Ok(count) => head.extend(part.iter().take(count)),
                }
            }
            let line = String::from_utf8_lossy(&head).lines().next().unwrap_or_default().to_owned();
            let path = line.split(' ').nth(1).unwrap_or_default();
            let is_answer = path.starts_with("/callback?");
            let (status, page) = if is_answer { ("200 OK", PAGE) } else { ("404 Not Found", "") };
            let reply = format!(
                "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{page}",
                page.len()
            );
            // Whoever does not wait for the page has still said what there was to say.
            let _ = stream.write_all(reply.as_bytes()).await;
            if is_answer {
                return Ok(format!("{}{}", self.origin(), path));
            }
        }
    }

    fn origin(&self) -> String {
        let address = self.listener().and_then(|listener| listener.local_addr().ok());
        address.map_or_else(|| "http://127.0.0.1".to_owned(), |address| format!("http://{address}"))
    }
}

impl Authorize for Browser {
    fn redirect_uri(&self) -> String {
        format!("{}/callback", self.origin())
    }

    fn authorize(&self, server: &ServerName, url: String) -> RelayFuture<'_, Result<String, String>> {
        let server = server.clone();
        Box::pin(async move {
            if !self.is_open.load(Ordering::Relaxed) {
                return Err("nobody is there to ask".to_owned());
            }
            printer::note(format!("open this address to give Kiwi access to `{server}`:"));
            printer::note(url.escape_debug());
            self.answer().await
        })
    }
}
