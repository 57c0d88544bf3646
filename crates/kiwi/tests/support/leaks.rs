//! Looking for a secret wherever it might have gone.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Read as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// A secret nobody has seen before, and what gives it away.
pub struct Planted {
    pub secret: String,
    traces: Vec<Vec<u8>>,
}

impl Planted {
    pub fn new() -> Self {
        let (head, tail) = (random(), random());
        // Characters that every encoding treats in its own way; both ends stay the same in most of them.
        let secret = format!("{head}/+\"\\ {tail}");
        let mut traces = vec![head.clone(), tail.clone(), hex(&head), hex(&head).to_uppercase(), hex(&tail)];
        traces.extend((0..3).filter_map(|skip| Some(base64(secret.as_bytes().get(skip..)?))));
        Self { secret, traces: traces.into_iter().map(String::into_bytes).collect() }
    }

    /// Whether there is any trace of it.
    pub fn is_in(&self, bytes: &[u8]) -> bool {
        self.traces.iter().any(|trace| bytes.windows(trace.len()).any(|it| it == trace))
    }

    /// Every file below a folder that has a trace of it.
    pub fn below(&self, folder: &Path) -> Vec<String> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() && !path.is_symlink() {
                found.extend(self.below(&path));
            } else if path.is_file() && std::fs::read(&path).is_ok_and(|bytes| self.is_in(&bytes)) {
                found.push(path.display().to_string());
            }
        }
        found
    }
}

fn random() -> String {
    let mut bytes = [0; 16];
    std::fs::File::open("/dev/urandom").unwrap().read_exact(&mut bytes).unwrap();
    bytes.iter().map(|byte| char::from(b'a' + byte % 26)).collect()
}

fn hex(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, byte| {
        write!(out, "{byte:02x}").unwrap();
        out
    })
}

/// Whole groups only: what is at the end depends on what follows.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let letter = |value: u32, shift: u32| LETTERS[(value >> shift) as usize & 63] as char;
    let group = |three: &[u8]| {
        let value = three.iter().fold(0, |value, byte| value << 8 | u32::from(*byte));
        [18, 12, 6, 0].map(|shift| letter(value, shift))
    };
    bytes.chunks_exact(3).flat_map(group).collect()
}

/// Looks at the arguments of every process, again and again.
pub struct Watcher {
    stop: Arc<AtomicBool>,
    seen: Arc<Mutex<BTreeSet<String>>>,
    thread: Option<JoinHandle<()>>,
}

impl Watcher {
    pub fn start(planted: Arc<Planted>) -> Self {
        let (stop, seen) = (Arc::new(AtomicBool::new(false)), Arc::<Mutex<BTreeSet<String>>>::default());
        let (ended, found) = (Arc::clone(&stop), Arc::clone(&seen));
        let thread = std::thread::spawn(move || {
            while !ended.load(Ordering::SeqCst) {
                for entry in std::fs::read_dir("/proc").unwrap().flatten() {
                    let Ok(line) = std::fs::read(entry.path().join("cmdline")) else { continue };
                    if planted.is_in(&line) {
                        found.lock().unwrap().insert(String::from_utf8_lossy(&line).replace('\0', " "));
                    }
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        Self { stop, seen, thread: Some(thread) }
    }

    /// The command lines that had it.
    pub fn finish(mut self) -> Vec<String> {
        self.stop.store(true, Ordering::SeqCst);
        self.thread.take().unwrap().join().unwrap();
        self.seen.lock().unwrap().iter().cloned().collect()
    }
}
