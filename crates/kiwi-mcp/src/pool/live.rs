//! A connection that is up, and the task that keeps it: it notices its end, stops it when nobody uses it, and leaves
//! nothing behind.

use kiwi_exec::Serving;
use rmcp::RoleClient;
use rmcp::model::{RequestMetaObject, SubscriptionFilter};
use rmcp::service::{Peer, RunningService};
use serde_json::Value;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::net::unix::pipe::Sender;
use tokio::sync::watch;

use super::calls::Calls;
use super::failure::unavailable;
use super::follow::Followed;
use super::handler::{Handler, implementation};
use super::oauth::Access;
use crate::error::McpError;
use crate::stream::Outgoing;

/// How long the end of one half of a connection may take to be followed by the other's.
const MOMENT: Duration = Duration::from_millis(500);
/// The shortest pause between two looks whether anybody uses it.
const SHORTEST: Duration = Duration::from_millis(10);
/// How much of a process's last words an error carries.
const MOST_WORDS: usize = 4 << 10;
/// How long the library may take to let go.
const FAREWELL: Duration = Duration::from_secs(6);

/// A connection that is up.
pub(super) struct Live {
    /// Another for every start and every session.
    pub generation: u64,
    /// The server's name.
    pub server: String,
    pub peer: Peer<RoleClient>,
    /// The short way of requests, where it is a process.
    pub lane: Option<Outgoing<Sender>>,
    pub calls: Arc<Calls>,
    /// What it said about itself.
    pub about: About,
    /// How it is told who asks.
    pub access: Option<Arc<Access>>,
    /// What is followed of it.
    pub followed: Followed,
    pub since: Instant,
    /// Why it ended.
    gone: watch::Receiver<Option<McpError>>,
    /// Whether nothing is left of it.
    over: watch::Receiver<bool>,
    stop: Mutex<Option<watch::Sender<()>>>,
    retired: watch::Sender<bool>,
}

/// What a server said about itself.
pub(super) struct About {
    pub server_info: Value,
    pub instructions: Option<String>,
    pub protocol_version: String,
    pub capabilities: Value,
    /// Whether every request says who asks and what can be asked back.
    pub is_new: bool,
    /// What it says about who asks.
    pub envelope: RequestMetaObject,
}

/// Everything a connection is made of.
pub(super) struct Parts {
    pub server: String,
    pub generation: u64,
    pub service: RunningService<RoleClient, Handler>,
    pub serving: Option<Serving>,
    pub lane: Option<Outgoing<Sender>>,
    pub calls: Arc<Calls>,
    pub access: Option<Arc<Access>>,
}

/// What a connection needs to be kept.
pub(super) struct Keeper {
    server: String,
    service: RunningService<RoleClient, Handler>,
    serving: Option<Serving>,
    calls: Arc<Calls>,
    stopped: watch::Receiver<()>,
    gone: watch::Sender<Option<McpError>>,
    over: watch::Sender<bool>,
}

impl Parts {
    /// The connection, and what keeps it.
    pub fn assemble(self) -> (Arc<Live>, Keeper) {
        let Self { server, generation, service, serving, lane, calls, access } = self;
        let (gone, is_gone) = watch::channel(None);
        let (over, is_over) = watch::channel(false);
        let (stop, stopped) = watch::channel(());
        let live = Live {
            generation,
            server: server.clone(),
            peer: service.peer().clone(),
            lane,
            calls: Arc::clone(&calls),
            about: About::of(&service),
            access,
            followed: Followed::default(),
            since: Instant::now(),
            gone: is_gone,
            over: is_over,
            stop: Mutex::new(Some(stop)),
            retired: watch::Sender::new(false),
        };
        (Arc::new(live), Keeper { server, service, serving, calls, stopped, gone, over })
    }
}

impl About {
    fn of(service: &RunningService<RoleClient, Handler>) -> Self {
        let info = service.peer().peer_info();
        let is_new = info.as_ref().is_some_and(|info| !info.protocol_version.has_initialize());
        let mut envelope = RequestMetaObject::default();
        if let Some(info) = info.as_ref().filter(|_| is_new) {
            envelope.set_protocol_version(info.protocol_version.clone());
            envelope.set_client_info(implementation());
        }
        let json =
            |value: Option<serde_json::Result<Value>>| value.and_then(Result::ok).unwrap_or(Value::Null);
        Self {
            server_info: json(info.as_ref().map(|info| serde_json::to_value(&info.server_info))),
            instructions: info.as_ref().and_then(|info| info.instructions.clone()),
            protocol_version: info.as_ref().map(|info| info.protocol_version.to_string()).unwrap_or_default(),
            capabilities: json(info.as_ref().map(|info| serde_json::to_value(&info.capabilities))),
            is_new,
            envelope,
        }
    }

    /// Whether it says that it tells of changed tools.
    fn tells_of_changes(&self) -> bool {
        self.capabilities.pointer("/tools/listChanged") == Some(&Value::Bool(true))
    }
}

impl Live {
    /// Whether it can be used.
    pub fn is_usable(&self) -> bool {
        self.gone.borrow().is_none() && self.calls.touch()
    }

    /// Waits until it ends, and says why.
    pub async fn gone(&self) -> McpError {
        let mut gone = self.gone.clone();
        let why = gone.wait_for(Option::is_some).await.ok().and_then(|why| why.clone());
        why.unwrap_or_else(|| unavailable(&self.server, "was stopped"))
    }

    /// Takes no new calls, and ends when the last one in flight has.
    pub fn retire(&self) {
        self.calls.close();
        self.retired.send_replace(true);
    }

    /// Asks it to end.
    pub fn stop(&self) {
        self.calls.close();
        drop(self.stop.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// Waits until nothing is left of it.
    pub async fn over(&self) {
        let _ = self.over.clone().wait_for(|is_over| *is_over).await;
    }
}

/// How a connection ended.
pub(super) enum End {
    /// Somebody wanted it, or nobody wanted it any more.
    Stopped,
    /// By itself.
    Crashed(McpError),
}

impl Keeper {
    /// Keeps the connection until it ends. `idle` says how long it may be of no use; `went` is told that it ended, as
    /// soon as no call can begin on it any more.
    pub async fn keep(mut self, live: Arc<Live>, idle: impl Fn() -> Duration, went: impl FnOnce(&End)) {
        let listening = listen(Arc::clone(&live));
        let token = self.service.cancellation_token();
        let serving = self.serving.take();
        let end = {
            let waiting = self.service.waiting();
            tokio::pin!(waiting);
            tokio::pin!(listening);
            let (mut is_listening, mut is_done) = (true, false);
            let mut pause = idle();
            let mut retired = live.retired.subscribe();
            let end = loop {
                tokio::select! {
                    _ = self.stopped.changed() => break End::Stopped,
                    _ = &mut waiting => {
                        is_done = true;
                        let why = closed(&self.server, serving.as_ref()).await;
                        break End::Crashed(why);
                    }
                    exit = ended(serving.as_ref()) => {
                        // What it said last is still to be read.
                        is_done = tokio::time::timeout(MOMENT, &mut waiting).await.is_ok();
                        break End::Crashed(exit_of(&self.server, serving.as_ref(), exit));
                    }
                    () = tokio::time::sleep(pause) => {
                        let patience = if *retired.borrow() { Duration::ZERO } else { idle() };
                        match self.calls.close_if_idle(patience) {
                            Some(more) => pause = more.max(SHORTEST),
                            None => break End::Stopped,
                        }
                    }
                    _ = retired.changed() => pause = Duration::ZERO,
                    () = &mut listening, if is_listening => is_listening = false,
                }
            };
            self.calls.close();
            went(&end);
            let why = match &end {
                End::Stopped => unavailable(&self.server, "was stopped"),
                End::Crashed(why) => why.clone(),
            };
            let _ = self.gone.send(Some(why));
            token.cancel();
            if !is_done {
                let _ = tokio::time::timeout(FAREWELL, waiting).await;
            }
            end
        };
        if let Some(serving) = serving {
            let _ = match end {
                End::Stopped => serving.stop().await,
                End::Crashed(_) => serving.kill().await,
            };
        }
        let _ = self.over.send(true);
    }
}

/// Asks a server of the new revision to tell of changed tools, for as long as the connection is up.
async fn listen(live: Arc<Live>) {
    if !live.about.is_new || !live.about.tells_of_changes() {
        return;
    }
    let filter = SubscriptionFilter::builder().tools_list_changed().build();
    // A server that says no tells of nothing; its list is asked for again when it is too old.
    let Ok(mut subscription) = live.peer.listen(filter).await else { return };
    // News themselves are heard where they arrive; this only keeps the subscription.
    while let Ok(Some(_)) = subscription.next().await {}
}

async fn ended(serving: Option<&Serving>) -> kiwi_exec::ServingEnd {
    match serving {
        Some(serving) => serving.ended().await,
        None => std::future::pending().await,
    }
}

/// Why a connection was closed by the other side.
async fn closed(server: &str, serving: Option<&Serving>) -> McpError {
    let Some(process) = serving else { return unavailable(server, "closed the connection") };
    match tokio::time::timeout(MOMENT, process.ended()).await {
        Ok(exit) => exit_of(server, serving, exit),
        Err(_) => with_words(unavailable(server, "closed its output"), serving),
    }
}

/// What the end of a process means.
pub(super) fn exit_of(server: &str, serving: Option<&Serving>, exit: kiwi_exec::ServingEnd) -> McpError {
    let problem = match exit {
        Ok(exit) => format!("ended with {exit}"),
        Err(error) => format!("cannot be run: {error}"),
    };
    with_words(unavailable(server, problem), serving)
}

/// The same error with what the process said last.
pub(super) fn with_words(error: McpError, serving: Option<&Serving>) -> McpError {
    match (error, serving) {
        (McpError::Unavailable { server, problem, .. }, Some(serving)) => {
            McpError::Unavailable { server, problem, stderr: last(serving.said()) }
        }
        (error, _) => error,
    }
}

/// The end of a long text: an error is read by people and models.
fn last(text: String) -> String {
    let Some(surplus) = text.len().checked_sub(MOST_WORDS) else { return text };
    let start = (surplus..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    text.get(start..).unwrap_or_default().to_owned()
}
