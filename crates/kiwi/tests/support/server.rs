//! A small server on loopback that answers as it is told and remembers what it was asked.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

/// What it was asked: the first line, the headers, the body.
#[derive(Debug, Clone)]
pub struct Asked {
    pub line: String,
    pub headers: Vec<String>,
    pub body: String,
}

/// A running server; it ends with the test's process.
pub struct Server {
    pub port: u16,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Server {
    /// Answers every request with what `answer` says: a status line such as `200 OK`, and a JSON body.
    pub fn start(answer: impl Fn(&Asked) -> (&'static str, String) + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let Some(request) = read(&stream) else { continue };
                seen.lock().unwrap().push(request.clone());
                let (status, body) = answer(&request);
                let head = "content-type: application/json\r\nconnection: close\r\n";
                let _ = write!(
                    &stream,
                    "HTTP/1.1 {status}\r\n{head}content-length: {}\r\n\r\n{body}",
                    body.len()
                );
            }
        });
        Self { port, asked }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

fn read(stream: impl std::io::Read) -> Option<Asked> {
    let mut reader = BufReader::new(stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim_end().to_owned();
        if line.is_empty() {
            break;
        }
        lines.push(line);
    }
    let length = lines
        .iter()
        .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    let line = lines.remove(0);
    Some(Asked { line, headers: lines, body: String::from_utf8_lossy(&body).into_owned() })
}
