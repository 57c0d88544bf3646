//! The calls in flight on one connection: whose progress, whose log lines, whose questions.

use rmcp::model::{ErrorData, ProgressToken, RequestId};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, oneshot};

use super::surroundings::Change;
use crate::relay::{Refusal, Relay};

/// How many questions of a server may wait for an answer at one time.
const MOST_QUESTIONS: usize = 32;
/// Is told what has changed.
pub(super) type Changed = Arc<dyn Fn(Change<'_>) + Send + Sync>;

/// How many requests of a server may be without an answer of ours before it is not listened to any more.
const MOST_UNANSWERED: usize = 256;
/// News of changed lists are collected for so long.
const COLLECT: Duration = Duration::from_millis(50);

/// The numbers of requests that do not go through the library; it counts its own from zero.
const OWN: std::ops::Range<i64> = 1 << 30..i64::MAX;

/// What a server answers.
pub(super) type Answered = Result<Value, ErrorData>;

/// Marks a request on its way through the protocol library, so that the transport knows whose it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CallKey(u64);

/// All calls in flight on one connection.
pub(super) struct Calls {
    inner: Mutex<Inner>,
    /// Requests of the server that are not answered yet.
    unanswered: AtomicUsize,
    /// Told whenever one of them is answered.
    answered: Notify,
    changed: Changed,
    is_change_told: Arc<AtomicBool>,
}

struct Inner {
    next: u64,
    /// The number of the next request that does not go through the library.
    next_id: i64,
    calls: BTreeMap<CallKey, Call>,
    questions: usize,
    is_closing: bool,
    last_used: Instant,
}

struct Call {
    relay: Arc<dyn Relay>,
    id: Option<RequestId>,
    token: Option<ProgressToken>,
    /// The result as the server gave it, where the library's form of it may have lost something.
    raw: Option<Value>,
    /// Who waits for the answer, where it does not go through the library.
    answer: Option<oneshot::Sender<Answered>>,
    /// When the questions that wait for an answer began, and how many they are.
    asking: Option<(Instant, usize)>,
    /// How long earlier questions took.
    asked: Duration,
}

impl Calls {
    /// No calls yet; `changed` is told of changed lists.
    pub fn new(changed: Changed) -> Self {
        let inner = Inner {
            next: 0,
            next_id: OWN.start,
            calls: BTreeMap::new(),
            questions: 0,
            is_closing: false,
            last_used: Instant::now(),
        };
        Self {
            inner: Mutex::new(inner),
            unanswered: AtomicUsize::new(0),
            answered: Notify::new(),
            changed,
            is_change_told: Arc::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new call; none when the connection is being closed.
    pub fn begin(self: &Arc<Self>, relay: Arc<dyn Relay>) -> Option<InFlight> {
        let mut inner = self.lock();
        if inner.is_closing {
            return None;
        }
        let key = CallKey(inner.next);
        inner.next += 1;
        let call = Call {
            relay,
            id: None,
            token: None,
            raw: None,
            answer: None,
            asking: None,
            asked: Duration::ZERO,
        };
        inner.calls.insert(key, call);
        Some(InFlight { calls: Arc::clone(self), key })
    }

    /// Notes that the connection is wanted; whether it can be had.
    pub fn touch(&self) -> bool {
        let mut inner = self.lock();
        inner.last_used = Instant::now();
        !inner.is_closing
    }

    /// No call can begin any more.
    pub fn close(&self) {
        self.lock().is_closing = true;
    }

    /// Closes when nothing was in flight for so long; otherwise says how long to wait before it can be so.
    pub fn close_if_idle(&self, timeout: Duration) -> Option<Duration> {
        let mut inner = self.lock();
        let idle = inner.last_used.elapsed();
        if !inner.calls.is_empty() {
            return Some(timeout);
        }
        if idle < timeout {
            return Some(timeout.saturating_sub(idle));
        }
        inner.is_closing = true;
        None
    }

    /// How many calls are in flight.
    pub fn count(&self) -> usize {
        self.lock().calls.len()
    }

    /// Notes under which number and token a call goes to the server, before it goes.
    pub fn bind(&self, key: CallKey, id: RequestId, token: Option<ProgressToken>) {
        if let Some(call) = self.lock().calls.get_mut(&key) {
            (call.id, call.token) = (Some(id), token);
        }
    }

    /// Gives an answer to who waits for it; gives it back where it is an answer to the library.
    pub fn answer(&self, id: &RequestId, answered: Answered) -> Option<Answered> {
        let RequestId::Number(number) = id else { return Some(answered) };
        if !OWN.contains(number) {
            return Some(answered);
        }
        let waiting = {
            let mut inner = self.lock();
            let call = inner.calls.values_mut().find(|call| call.id.as_ref() == Some(id));
            call.and_then(|call| call.answer.take())
        };
        if let Some(waiting) = waiting {
            // Who has left in this moment does not want it.
            let _ = waiting.send(answered);
        }
        None
    }

    /// Keeps a result as the server gave it.
    pub fn keep(&self, id: &RequestId, result: Value) {
        let mut inner = self.lock();
        if let Some(call) = inner.calls.values_mut().find(|call| call.id.as_ref() == Some(id)) {
            call.raw = Some(result);
        }
    }

    /// The number of the only call in flight.
    pub fn only_id(&self) -> Option<RequestId> {
        let inner = self.lock();
        match inner.calls.len() {
            1 => inner.calls.values().next().and_then(|call| call.id.clone()),
            _ => None,
        }
    }

    /// A notification of the server; whether it was for us. What is heard here costs no task and no queue.
    pub fn hear(&self, method: &str, params: &mut Option<Value>) -> bool {
        match method {
            "notifications/progress" => self.progress(params.take()),
            "notifications/message" => self.log(params.take()),
            "notifications/tools/list_changed" => self.change(),
            "notifications/resources/updated" => {
                let uri = params.as_ref().and_then(|params| params.get("uri")?.as_str());
                if let Some(uri) = uri {
                    (self.changed)(Change::Resource(uri));
                }
            }
            // The library wants these: its own questions and subscriptions depend on them.
            "notifications/cancelled" | "notifications/subscriptions/acknowledged" => return false,
            _ => {}
        }
        true
    }

    fn progress(&self, params: Option<Value>) {
        let Some(mut params) = params else { return };
        let Some(fields) = params.as_object_mut() else { return };
        let Some(token) = fields.remove("progressToken") else { return };
        let Ok(token) = serde_json::from_value::<ProgressToken>(token) else { return };
        fields.remove("_meta");
        let relay = {
            let inner = self.lock();
            let call = inner.calls.values().find(|call| call.token.as_ref() == Some(&token));
            call.map(|call| Arc::clone(&call.relay))
        };
        if let Some(relay) = relay {
            relay.progress(params);
        }
    }

    fn log(&self, params: Option<Value>) {
        let Some(mut params) = params else { return };
        let Some(fields) = params.as_object_mut() else { return };
        fields.remove("_meta");
        let relays: Vec<_> = self.lock().calls.values().map(|call| Arc::clone(&call.relay)).collect();
        for relay in relays {
            relay.log(params.clone());
        }
    }

    /// Tells of a change, once for all the news of the next moment.
    fn change(&self) {
        if self.is_change_told.swap(true, Ordering::AcqRel) {
            return;
        }
        let (changed, is_told) = (Arc::clone(&self.changed), Arc::clone(&self.is_change_told));
        tokio::spawn(async move {
            tokio::time::sleep(COLLECT).await;
            is_told.store(false, Ordering::Release);
            changed(Change::Tools);
        });
    }

    /// A request of the server has come.
    pub fn count_request(&self) {
        self.unanswered.fetch_add(1, Ordering::AcqRel);
    }

    /// Whether another request of the server can be taken.
    pub fn has_room(&self) -> bool {
        self.unanswered.load(Ordering::Acquire) < MOST_UNANSWERED
    }

    /// Waits until another request of the server can be taken: who asks faster than it listens is not listened to.
    pub async fn room(&self) {
        loop {
            let mut answered = std::pin::pin!(self.answered.notified());
            answered.as_mut().enable();
            if self.has_room() {
                return;
            }
            answered.await;
        }
    }

    /// A request of the server was answered.
    pub fn count_answer(&self) {
        let one_less = |count: usize| Some(count.saturating_sub(1));
        let _ = self.unanswered.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_less);
        self.answered.notify_waiters();
    }

    /// Who is to answer a question: the call it came with where that is known, else the only one there is.
    pub fn asked(self: &Arc<Self>, with: Option<&RequestId>) -> Result<Question, Refusal> {
        let refuse = |code, message: &str| Refusal { code, message: message.into(), data: None };
        let inner = self.lock();
        if inner.questions >= MOST_QUESTIONS {
            return Err(refuse(-32000, "too many questions wait for an answer"));
        }
        let key = match with {
            Some(id) => {
                let found = inner.calls.iter().find(|(_, call)| call.id.as_ref() == Some(id));
                found.map(|(key, _)| *key).ok_or_else(|| refuse(-32602, "the call it belongs to is over"))?
            }
            None if inner.calls.len() > 1 => {
                return Err(refuse(
                    -32602,
                    "several calls are in flight, and nobody knows whose question it is",
                ));
            }
            None => {
                let only = inner.calls.keys().next().copied();
                only.ok_or_else(|| refuse(-32601, "no call is in flight that could answer it"))?
            }
        };
        drop(inner);
        self.question(key).ok_or_else(|| refuse(-32602, "the call is over"))
    }

    fn question(self: &Arc<Self>, key: CallKey) -> Option<Question> {
        let mut inner = self.lock();
        let call = inner.calls.get_mut(&key)?;
        let (since, count) = call.asking.unwrap_or((Instant::now(), 0));
        call.asking = Some((since, count + 1));
        let relay = Arc::clone(&call.relay);
        inner.questions += 1;
        drop(inner);
        Some(Question { calls: Arc::clone(self), key, relay })
    }
}

/// A call in flight. Dropping it ends it.
pub(super) struct InFlight {
    calls: Arc<Calls>,
    key: CallKey,
}

impl InFlight {
    pub fn key(&self) -> CallKey {
        self.key
    }

    /// The number of its next request, which is its token too, and where the answer comes. It does not go through the
    /// library.
    pub fn expect(&self) -> Option<(i64, oneshot::Receiver<Answered>)> {
        let (answer, answered) = oneshot::channel();
        let mut inner = self.calls.lock();
        let number = inner.next_id;
        inner.next_id += 1;
        let call = inner.calls.get_mut(&self.key)?;
        let id = RequestId::Number(number);
        call.token = Some(ProgressToken(id.clone()));
        call.id = Some(id);
        call.answer = Some(answer);
        Some((number, answered))
    }

    /// Its caller is asked something; that time is the caller's, until this is dropped.
    pub fn question(&self) -> Option<Question> {
        self.calls.question(self.key)
    }

    /// The result as the server gave it, if it was kept.
    pub fn take_raw(&self) -> Option<Value> {
        self.calls.lock().calls.get_mut(&self.key).and_then(|call| call.raw.take())
    }

    /// How long the server waited for answers of the caller, and whether it does now. That time is not its own.
    pub fn asked(&self) -> (Duration, bool) {
        let inner = self.calls.lock();
        inner.calls.get(&self.key).map_or((Duration::ZERO, false), |call| {
            let now = call.asking.map_or(Duration::ZERO, |(since, _)| since.elapsed());
            (call.asked + now, call.asking.is_some())
        })
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let mut inner = self.calls.lock();
        inner.calls.remove(&self.key);
        inner.last_used = Instant::now();
    }
}

/// A question that waits for its answer. Dropping it ends the waiting.
pub(super) struct Question {
    calls: Arc<Calls>,
    key: CallKey,
    pub relay: Arc<dyn Relay>,
}

impl Drop for Question {
    fn drop(&mut self) {
        let mut inner = self.calls.lock();
        inner.questions = inner.questions.saturating_sub(1);
        let Some(call) = inner.calls.get_mut(&self.key) else { return };
        call.asking = match call.asking {
            Some((since, count)) if count > 1 => Some((since, count - 1)),
            Some((since, _)) => {
                call.asked += since.elapsed();
                None
            }
            None => None,
        };
    }
}
