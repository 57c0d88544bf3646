//! A server that answers as a test says, and tells what it was asked.

use kiwi_exec::{Body, HttpRequest, Reach, Redirects};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

pub struct Server {
    pub port: u16,
    pub asked: Receiver<String>,
}

/// Head and body of a request, and how many came before it; the answer, byte for byte.
pub trait Answers: Fn(&str, usize) -> String + Send + Sync + 'static {}
impl<F: Fn(&str, usize) -> String + Send + Sync + 'static> Answers for F {}

impl Server {
    pub fn new(answers: impl Answers) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let desk = Desk::new(answers);
        let asked = desk.1;
        let desk = desk.0;
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let desk = desk.clone();
                std::thread::spawn(move || desk.serve(stream));
            }
        });
        Self { port, asked }
    }

    /// Always the same text.
    pub fn saying(body: &'static str) -> Self {
        Self::new(move |_, _| reply("200 OK", "", body))
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub fn request(&self, method: &str, path: &str) -> HttpRequest {
        request(method, &self.url(path))
    }

    /// What it was asked until now.
    pub fn seen(&self) -> Vec<String> {
        // The answer can be here before the server has told what it answered.
        std::thread::sleep(Duration::from_millis(50));
        self.asked.try_iter().collect()
    }
}

/// A request for an address that the manifest names.
pub fn request(method: &str, url: &str) -> HttpRequest {
    HttpRequest {
        method: method.into(),
        url: url.into(),
        headers: Vec::new(),
        query: Vec::new(),
        body: Body::None,
        auth: None,
        reach: Reach { is_named: true, allow_hosts: None },
        timeout: Duration::from_secs(10),
        max_response: 1 << 20,
        redirects: Redirects::Follow(5),
        retries: 0,
    }
}

pub fn listing(hosts: &[&str]) -> Vec<kiwi_exec::HostPattern> {
    hosts.iter().map(|host| host.parse().unwrap()).collect()
}

pub fn reply(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\nconnection: close\r\n{headers}content-length: {}\r\n\r\n{body}", body.len())
}

pub fn json(status: &str, body: &str) -> String {
    reply(status, "content-type: application/json; charset=utf-8\r\n", body)
}

pub fn redirect(to: &str) -> String {
    reply("302 Found", &format!("location: {to}\r\n"), "")
}

/// The value of a header of a request.
pub fn header<'a>(asked: &'a str, name: &str) -> Option<&'a str> {
    asked.lines().take_while(|line| !line.is_empty()).find_map(|line| {
        let (own, value) = line.split_once(": ")?;
        own.eq_ignore_ascii_case(name).then_some(value)
    })
}

/// Answers on whatever stream there is.
#[derive(Clone)]
pub struct Desk {
    answers: Arc<dyn Answers>,
    count: Arc<AtomicUsize>,
    tell: Sender<String>,
}

impl Desk {
    pub fn new(answers: impl Answers) -> (Self, Receiver<String>) {
        let (tell, asked) = channel();
        (Self { answers: Arc::new(answers), count: Arc::default(), tell }, asked)
    }

    pub fn serve(&self, mut stream: impl Read + Write) {
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") {
            match stream.read(&mut byte) {
                Ok(1) if byte[0] < 0x80 && (byte[0] >= b' ' || !head.is_empty()) => head.push(byte[0]),
                // A handshake is no request. Whoever checks whether somebody is there, or finds no trust, leaves early.
                _ => return,
            }
        }
        let mut asked = String::from_utf8_lossy(&head).into_owned();
        let length = header(&asked, "content-length").map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        stream.read_exact(&mut body).unwrap();
        asked.push_str(&String::from_utf8(body).unwrap());
        let answer = (self.answers)(&asked, self.count.fetch_add(1, Ordering::SeqCst));
        let _ = self.tell.send(asked);
        let _ = stream.write_all(answer.as_bytes()).and_then(|()| stream.flush());
    }
}
