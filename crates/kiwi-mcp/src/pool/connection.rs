//! What a caller holds of a server.

use serde_json::Value;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::Inner;
use super::entry::Entry;
use super::exchange::{Asking, Exchanged, exchange, time_up};
use super::failure::{Trouble, unauthorized, unavailable};
use super::follow::follow;
use super::live::Live;
use super::start::whole;
use super::surroundings::Change;
use crate::answer::Answer;
use crate::error::McpError;
use crate::relay::Relay;
use crate::server::Server;

/// How often a person is asked for more access during one request.
const MOST_LOGINS: usize = 3;
/// How long a connection that is gone may take to say why.
const MOMENT: Duration = Duration::from_secs(2);

/// A connection to a server, shared with everybody who reaches it in the same way. Cheap to clone; get one anew for
/// each piece of work, because a server that ended is only started again by [`super::Pool::connect`].
#[derive(Clone)]
pub struct Connection {
    pool: Arc<Inner>,
    entry: Arc<Entry>,
    pub(super) server: Arc<Server>,
    live: Arc<Mutex<Arc<Live>>>,
}

impl Connection {
    pub(super) fn new(pool: Arc<Inner>, entry: Arc<Entry>, server: Arc<Server>, live: Arc<Live>) -> Self {
        Self { pool, entry, server, live: Arc::new(Mutex::new(live)) }
    }

    pub(super) fn live(&self) -> Arc<Live> {
        Arc::clone(&self.live.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Another number for every start of the server and every session with it: what was listed under one number need
    /// not hold under another.
    pub fn generation(&self) -> u64 {
        self.live().generation
    }

    /// What the server said it can do: `tools`, `prompts`, `resources`, `completions`, `logging`, …
    pub fn capabilities(&self) -> Value {
        self.live().about.capabilities.clone()
    }

    /// The revision of the protocol that was agreed.
    pub fn protocol_version(&self) -> String {
        self.live().about.protocol_version.clone()
    }

    /// Makes a request, in the time the server's entry gives a call.
    ///
    /// What the server says and asks meanwhile goes to `relay`. When `cancelled` completes, or the returned future is
    /// dropped, the server is told and nobody waits for it.
    pub async fn request(
        &self,
        method: &str,
        params: Value,
        relay: Arc<dyn Relay>,
        cancelled: impl Future<Output = ()>,
    ) -> Result<Answer, McpError> {
        if let Some(followed) = follow(&self.live(), method, &params).await {
            return followed.map(Answer);
        }
        let exchanged = self.request_within(method, &params, &relay, self.server.timeout, cancelled).await?;
        Ok(Answer(exchanged.result))
    }

    /// The same, in another time.
    pub(super) async fn request_within(
        &self,
        method: &str,
        params: &Value,
        relay: &Arc<dyn Relay>,
        limit: Duration,
        cancelled: impl Future<Output = ()>,
    ) -> Result<Exchanged, McpError> {
        let name = self.server.name.as_str();
        let mut cancelled = std::pin::pin!(cancelled);
        let (mut is_renewed, mut logins) = (false, 0);
        loop {
            let live = self.live();
            let Some(flight) = live.calls.begin(Arc::clone(relay)) else {
                return Err(why_gone(&live).await);
            };
            let asking = Asking { live: &live, flight: &flight, method, relay };
            let outcome = tokio::select! {
                biased;
                outcome = Box::pin(exchange(asking, params)) => outcome,
                () = &mut cancelled => Err(Trouble::Failed(McpError::Cancelled)),
                () = time_up(&flight, limit) => {
                    let seconds = whole(limit);
                    Err(Trouble::Failed(McpError::Timeout { server: name.to_owned(), seconds }))
                }
            };
            drop(flight);
            let again = match outcome {
                Ok(exchanged) => return Ok(exchanged),
                Err(Trouble::Failed(error)) => return Err(error),
                Err(Trouble::Gone) => return Err(why_gone(&live).await),
                // Whoever comes next begins anew, and rests if that fails too.
                Err(Trouble::Unreachable(error)) => {
                    self.retire(&live);
                    return Err(error);
                }
                Err(Trouble::SessionExpired) if is_renewed => {
                    return Err(unavailable(name, "forgets its sessions as soon as they begin"));
                }
                // The endpoint said that it knows no such session, so it has done nothing.
                Err(Trouble::SessionExpired) => {
                    is_renewed = true;
                    Again::Renew
                }
                Err(Trouble::Challenged(challenge)) => match &live.access {
                    Some(access) if logins < MOST_LOGINS => {
                        logins += 1;
                        Again::LogIn(Arc::clone(access), challenge)
                    }
                    _ => return Err(unauthorized(name, challenge)),
                },
            };
            // Rare, and large: it must not make every call's future so.
            let prepared = Box::pin(async {
                match &again {
                    Again::Renew => self.renew(&live).await,
                    Again::LogIn(access, challenge) => access.log_in(challenge).await,
                }
            });
            tokio::select! {
                prepared = prepared => prepared?,
                () = &mut cancelled => return Err(McpError::Cancelled),
            }
        }
    }

    /// Lets nobody begin anything on a connection; others may still get their answers on it.
    fn retire(&self, old: &Live) {
        old.retire();
        self.entry.forget(old.generation);
    }

    /// A new session in place of one that the endpoint has forgotten.
    async fn renew(&self, old: &Live) -> Result<(), McpError> {
        self.retire(old);
        let new = self.entry.live(&self.pool, &self.server).await?;
        *self.live.lock().unwrap_or_else(PoisonError::into_inner) = new;
        // What a new session offers may be something else.
        (self.pool.around.on_change)(&self.server.name, Change::Tools);
        Ok(())
    }
}

/// What is done before a request is made again.
enum Again {
    Renew,
    LogIn(Arc<super::oauth::Access>, String),
}

async fn why_gone(live: &Live) -> McpError {
    let why = tokio::time::timeout(MOMENT, live.gone()).await;
    why.unwrap_or_else(|_| unavailable(&live.server, "is being stopped"))
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection")
            .field("server", &self.server.name)
            .field("generation", &self.generation())
            .finish_non_exhaustive()
    }
}
