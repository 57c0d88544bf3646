//! One request and its answer: the `http_client` primitive.
//!
//! Redirects and repetitions are made here and not by the library below, so that every address that is asked passes
//! the same guard.
//!
//! Read first: [`HttpRequest`] (what is asked), [`Reach`] (whom it may reach), `guard.rs` (how that is held),
//! [`Auth`] (who asks).

mod answer;
mod asked;
mod auth;
mod clients;
mod failure;
mod guard;
mod lookup;
mod reach;
mod request;
mod retry;
mod target;
mod token;
mod veil;

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use tokio::time::Instant;

pub use answer::{HttpResponse, Payload};
pub use auth::{Auth, KeyPlace, OAuth2Client};
pub use reach::{Permit, Reach};
pub use request::{Body, HttpRequest, Redirects};

use crate::error::ExecError;
use asked::Asked;
use clients::Clients;
use failure::{Failure, unreachable_because};
use guard::Guard;
use lookup::Lookup;
use retry::Patience;
use target::Target;
use token::Tokens;

/// Makes requests. Holds connections open and tokens ready between them, so keep one.
#[derive(Debug, Default)]
pub struct HttpClient {
    clients: Clients,
    tokens: Tokens,
}

impl HttpClient {
    /// A client that has not connected anywhere yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Trusts the certificates in these files and folders (PEM) beside the system's.
    #[must_use]
    pub fn trusting(mut self, certificates: impl IntoIterator<Item = PathBuf>) -> Self {
        self.clients.trusted.extend(certificates);
        self
    }

    /// Looks names up in another way than the system does. What is found is judged all the same.
    #[must_use]
    pub fn looking_up(
        mut self,
        names: impl Fn(&str) -> io::Result<Vec<IpAddr>> + Send + Sync + 'static,
    ) -> Self {
        self.clients.lookup = Lookup::new(names);
        self
    }

    /// The library's own client for connections that stay open: same guard and certificates, no time limit but the one
    /// for connecting, and no redirects. It is good for this address's host alone; another host needs another.
    #[expect(clippy::disallowed_types, reason = "this is the room that hands out connections")]
    pub fn streaming(&self, url: &str, reach: &Reach) -> Result<reqwest::Client, ExecError> {
        let target = Target::given(url)?;
        self.clients.get(Guard::new(reach, &target).route(&target)?, target.is_secure())
    }

    /// Makes a request. Any status but success is an error that carries the answer.
    pub async fn send(&self, request: HttpRequest) -> Result<HttpResponse, ExecError> {
        self.send_permitted(request, None).await
    }

    /// The same, where somebody has a say in each host that is contacted on the way.
    pub async fn send_permitted(
        &self,
        request: HttpRequest,
        permit: Option<Permit>,
    ) -> Result<HttpResponse, ExecError> {
        let asked = Asked::new(&request)?.permitted_by(permit);
        let (url, after) = (asked.shown(), request.timeout);
        tokio::time::timeout(after, self.attempts(&asked, &request))
            .await
            .unwrap_or(Err(ExecError::HttpTimeout { url, after }))
    }

    /// Tries until it succeeds, or it is pointless, or it was often enough.
    async fn attempts(&self, asked: &Asked, request: &HttpRequest) -> Result<HttpResponse, ExecError> {
        let begun = Instant::now();
        let mut patience = Patience::new(if asked.may_repeat() { request.retries } else { 0 });
        loop {
            let failure = match self.attempt(asked, request).await {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            match patience.wait(failure.wish) {
                // Waiting for nothing helps nobody: the reason is told now.
                Some(wait) if wait < request.timeout.saturating_sub(begun.elapsed()) => {
                    tokio::time::sleep(wait).await;
                }
                _ => return Err(failure.error),
            }
        }
    }

    /// One try, wherever its redirects lead.
    async fn exchange(&self, mut asked: Asked, request: &HttpRequest) -> Result<HttpResponse, Failure> {
        let guard = Guard::new(&request.reach, &asked.target);
        let mut followed = 0;
        loop {
            asked.permitted()?;
            let client = self.clients.get(guard.route(&asked.target)?, asked.target.is_secure())?;
            let answer =
                client.execute(asked.request()).await.map_err(|error| unreachable_because(&asked, &error))?;
            match (asked.next(&answer), request.redirects) {
                (Some(next), Redirects::Follow(most)) => {
                    if followed == most {
                        let url = asked.shown();
                        return Err(ExecError::TooManyRedirects { url, limit: most }.into());
                    }
                    followed += 1;
                    asked = next?;
                }
                _ => return answer::read(answer, &asked, request.max_response).await,
            }
        }
    }
}
