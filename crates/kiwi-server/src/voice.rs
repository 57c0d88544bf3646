//! A call's way to its client: what it says is passed on while somebody listens, what it asks waits for an answer.

use kiwi_exec::{Stream, Watch};
use kiwi_mcp::{Asked, Capability, Refusal, Relay, RelayFuture};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};

/// What may wait to be passed on; more is dropped, because a call never waits for its listener.
const MOST_SAID: usize = 256;
/// A running process is not worth a word more often.
const PAUSE: Duration = Duration::from_millis(200);
/// As much of a line as is passed on.
const MOST_OF_A_LINE: usize = 200;

/// What a call says.
#[derive(Debug)]
pub(crate) enum Said {
    /// `{progress, total?, message?}`.
    Progress(Value),
    /// `{level, logger?, data}`.
    Log(Value),
}

/// Questions that are to be answered together.
#[derive(Debug)]
pub(crate) struct Round {
    /// By the name under which a client answers.
    pub questions: Vec<(String, Asked)>,
    /// Where the answers go, in the order of the questions.
    pub answers: oneshot::Sender<Vec<Result<Value, Refusal>>>,
}

/// The other end of a [`Voice`].
pub(crate) struct Ear {
    pub said: mpsc::Receiver<Said>,
    pub rounds: mpsc::Receiver<Round>,
}

/// What a running call speaks with.
pub(crate) struct Voice {
    capabilities: Vec<Capability>,
    log_level: Option<&'static str>,
    said: mpsc::Sender<Said>,
    rounds: mpsc::Sender<Round>,
    begun: Instant,
    bytes: AtomicU64,
    last_ms: AtomicU64,
    unnamed: AtomicU64,
}

impl Voice {
    /// A voice towards a client that can do this, and the ear it speaks to.
    pub fn new(capabilities: Vec<Capability>, log_level: Option<&'static str>) -> (Self, Ear) {
        let (said, said_here) = mpsc::channel(MOST_SAID);
        let (rounds, rounds_here) = mpsc::channel(1);
        let voice = Self {
            capabilities,
            log_level,
            said,
            rounds,
            begun: Instant::now(),
            bytes: AtomicU64::new(0),
            last_ms: AtomicU64::new(0),
            unnamed: AtomicU64::new(0),
        };
        (voice, Ear { said: said_here, rounds: rounds_here })
    }

    /// Asks, each question under its name.
    pub async fn ask_named(&self, questions: Vec<(String, Asked)>) -> Vec<Result<Value, Refusal>> {
        let count = questions.len();
        let (answers, answered) = oneshot::channel();
        let asked = self.rounds.send(Round { questions, answers }).await;
        match answered.await {
            Ok(answers) if asked.is_ok() => answers,
            _ => vec![Err(gone()); count],
        }
    }
}

fn gone() -> Refusal {
    Refusal { code: -32603, message: "whoever asked has gone".to_owned(), data: None }
}

impl Relay for Voice {
    fn capabilities(&self) -> Vec<Capability> {
        self.capabilities.clone()
    }

    fn log_level(&self) -> Option<String> {
        self.log_level.map(str::to_owned)
    }

    fn progress(&self, progress: Value) {
        let _ = self.said.try_send(Said::Progress(progress));
    }

    fn log(&self, message: Value) {
        let _ = self.said.try_send(Said::Log(message));
    }

    fn ask(&self, questions: Vec<Asked>) -> RelayFuture<'_, Vec<Result<Value, Refusal>>> {
        Box::pin(async move {
            if questions.is_empty() {
                return Vec::new();
            }
            let name = |asked: &Asked| {
                asked.name.clone().unwrap_or_else(|| {
                    let number = self.unnamed.fetch_add(1, Ordering::Relaxed) + 1;
                    format!("question_{number}")
                })
            };
            let named: Vec<(String, Asked)> =
                questions.into_iter().map(|asked| (name(&asked), asked)).collect();
            self.ask_named(named).await
        })
    }
}

impl Watch for Voice {
    fn output(&self, _: Stream, bytes: &[u8]) {
        let count = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let total = self.bytes.fetch_add(count, Ordering::Relaxed).saturating_add(count);
        let now = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let last = self.last_ms.load(Ordering::Relaxed);
        let pause = u64::try_from(PAUSE.as_millis()).unwrap_or(u64::MAX);
        if now < last.saturating_add(pause) || total == 0 {
            return;
        }
        self.last_ms.store(now, Ordering::Relaxed);
        let text = String::from_utf8_lossy(bytes);
        let line: String =
            text.lines().next_back().unwrap_or_default().chars().take(MOST_OF_A_LINE).collect();
        self.progress(json!({"progress": total, "message": line}));
    }
}
