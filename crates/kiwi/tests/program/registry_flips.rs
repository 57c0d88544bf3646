//! One bit of what a registry says is changed on the way: nothing wrong ever lands.

use crate::support::TestEnvironment;
use crate::support::registry::{Person, Registry};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Stands between, and changes one bit of the bodies that come back, counted over all of them.
struct Between {
    url: String,
    /// Which bit; none for the first time, when it only counts.
    bit: Arc<Mutex<Option<usize>>>,
    seen: Arc<AtomicUsize>,
}

impl Between {
    fn start(server: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (bit, seen) = (Arc::new(Mutex::new(None)), Arc::new(AtomicUsize::new(0)));
        let (server, theirs, counted) = (server.to_owned(), Arc::clone(&bit), Arc::clone(&seen));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (server, bit, seen) = (server.clone(), Arc::clone(&theirs), Arc::clone(&counted));
                std::thread::spawn(move || pass(stream, &server, &bit, &seen));
            }
        });
        Self { url, bit, seen }
    }
}

/// One request with its answer.
fn pass(mut client: TcpStream, server: &str, bit: &Mutex<Option<usize>>, seen: &AtomicUsize) {
    let mut request = Vec::new();
    let mut byte = [0];
    while !request.ends_with(b"\r\n\r\n") {
        if client.read(&mut byte).unwrap_or(0) == 0 {
            return;
        }
        request.push(byte[0]);
    }
    let request = String::from_utf8(request).unwrap();
    let request = request.replacen("\r\n", "\r\nconnection: close\r\n", 1);
    let mut upstream = TcpStream::connect(server).unwrap();
    upstream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    let _ = upstream.read_to_end(&mut answer);
    let body = answer.windows(4).position(|four| four == b"\r\n\r\n").map_or(answer.len(), |at| at + 4);
    let bits = (answer.len() - body) * 8;
    let before = seen.fetch_add(bits, Ordering::SeqCst);
    if let Some(wanted) = *bit.lock().unwrap()
        && (before..before + bits).contains(&wanted)
    {
        let at = wanted - before;
        answer[body + at / 8] ^= 1 << (at % 8);
    }
    let _ = client.write_all(&answer);
}

#[test]
fn a_flipped_bit_never_lands() {
    let ground = TestEnvironment::new();
    let registry = Registry::start(&ground, &ground.tmp().join("registry.db").display().to_string());
    let a = Person::new(&registry, "publisher", "publish");
    a.env.write(
        "tools/two/tool.yaml",
        "tool_id: two\nversion: \"1.0.0\"\ntool_type: bash\ndescription: Two files\nentrypoint: run.sh\n",
    );
    a.env.write("tools/two/run.sh", "echo two\n");
    let integrity = a.json(&["publish", "two"], 0)["integrity"].as_str().unwrap().to_owned();
    let between = Between::start(registry.address());
    let install = || {
        let mut b = Person::new(&registry, "reader", "read");
        b.url.clone_from(&between.url);
        between.seen.store(0, Ordering::SeqCst);
        let ran = b.run(&["install", "two", "--json"]);
        (b, ran)
    };
    let (b, ran) = install();
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert_eq!(b.env.run(&["run", "two"]).stdout, "two\n");
    let bits = between.seen.load(Ordering::SeqCst);
    let rounds = crate::support::rounds(600);
    let (mut refused, mut harmless) = (0, 0);
    for round in 0..rounds {
        *between.bit.lock().unwrap() = Some(bits * round / rounds + round % 8);
        let (b, ran) = install();
        let package = b.env.project().join(".ai/packages/two/1.0.0");
        if ran.code == 0 {
            // It was said in other words, or about something else: what landed is what was published.
            let record = b.env.project().join(".ai/packages/.records/two@1.0.0.json");
            assert!(std::fs::read_to_string(record).unwrap().contains(&integrity), "bit of round {round}");
            assert_eq!(std::fs::read(package.join("run.sh")).unwrap(), b"echo two\n");
            assert_eq!(b.env.run(&["verify", "two"]).code, 0);
            harmless += 1;
        } else {
            assert!(!package.exists(), "round {round} left something behind: {}", ran.stderr);
            refused += 1;
        }
    }
    assert!(refused > rounds / 4, "{refused} refused, {harmless} harmless");
}
