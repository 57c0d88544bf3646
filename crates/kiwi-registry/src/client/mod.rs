//! Asking a registry.
//!
//! Nothing that it says about hashes is believed: what comes is hashed here (`fetch`), and kept by its hash (`cache`).

mod cache;
mod error;
mod fetch;

pub use cache::{Cache, KeptBlob};
pub use error::ClientError;
pub use fetch::{Fetched, Fetching};

use kiwi_exec::{Auth, Body, ExecError, HttpClient, HttpRequest, HttpResponse, Payload, Reach, Redirects};
use kiwi_model::{Digest, Secret, ToolId, Version, VersionReq};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::Duration;

use crate::protocol::{
    ATTEMPT, Blobs, Chain, Failed, Found, LockfileChange, LockfileSet, MOST_BLOB, MadeToken, Namespace,
    NewToken, Publication, Release, SharedLockfile, Status, Tokens, ToolChange, ToolInfo, Whoami, Yank,
};

/// Answers but blobs stay below this.
const MOST_ANSWER: u64 = 64 << 20;
const PATIENCE: Duration = Duration::from_secs(30);
/// A blob may take longer.
const LONG_PATIENCE: Duration = Duration::from_mins(10);
const RETRIES: u32 = 4;
const HURRY: Duration = Duration::from_secs(2);

/// A registry, and as whom it is asked.
#[derive(Debug, Clone)]
pub struct Registry {
    http: Arc<HttpClient>,
    url: String,
    token: Option<Secret>,
    patience: Duration,
    retries: u32,
}

impl Registry {
    /// The registry at an address.
    pub fn new(http: Arc<HttpClient>, url: &str, token: Option<Secret>) -> Result<Self, ClientError> {
        let url = url.trim().trim_end_matches('/');
        let is_web = |rest: &str| !rest.is_empty() && !rest.contains(['?', '#', ' ']);
        let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
        if !rest.is_some_and(is_web) {
            return Err(ClientError::Address { url: url.to_owned() });
        }
        Ok(Self { http, url: url.to_owned(), token, patience: PATIENCE, retries: RETRIES })
    }

    /// The same, over other connections.
    #[must_use]
    pub fn by(self, http: Arc<HttpClient>) -> Self {
        Self { http, ..self }
    }

    /// The same for who does not want to wait: asked once, and not for long.
    #[must_use]
    pub fn hurried(self) -> Self {
        Self { patience: HURRY, retries: 0, ..self }
    }

    /// Its address, without a slash at its end.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Whether a token goes along.
    pub fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// Who answers.
    pub async fn status(&self) -> Result<Status, ClientError> {
        self.get("status", &[]).await
    }

    /// Whose token it is.
    pub async fn whoami(&self) -> Result<Whoami, ClientError> {
        self.get("whoami", &[]).await
    }

    /// A tool and its versions.
    pub async fn tool(&self, id: &ToolId) -> Result<ToolInfo, ClientError> {
        self.get(&format!("tools/{id}"), &[]).await
    }

    /// One version, yanked or not.
    pub async fn release(&self, id: &ToolId, version: &Version) -> Result<Release, ClientError> {
        self.get(&version_path(id, version), &[]).await
    }

    /// A tool with everything it runs on.
    pub async fn resolve(&self, id: &ToolId, requirement: Option<&VersionReq>) -> Result<Chain, ClientError> {
        let query: Vec<(&str, String)> =
            requirement.map(|requirement| ("requirement", requirement.to_string())).into_iter().collect();
        self.get(&format!("resolve/{id}"), &query).await
    }

    /// Candidates for a question.
    pub async fn search(&self, text: &str, limit: usize) -> Result<Found, ClientError> {
        self.get("search", &[("q", text.to_owned()), ("limit", limit.to_string())]).await
    }

    /// Publishes a version whose files are there. Trying again with the same `attempt` does no harm.
    pub async fn publish(
        &self,
        id: &ToolId,
        version: &Version,
        publication: &Publication,
        attempt: &str,
    ) -> Result<Release, ClientError> {
        let mut request = self.request("PUT", &version_path(id, version), json(publication));
        request.headers.push((ATTEMPT.to_owned(), attempt.to_owned()));
        self.read(request).await
    }

    /// Yanks a version, or with no reason takes that back.
    pub async fn yank(
        &self,
        id: &ToolId,
        version: &Version,
        reason: Option<&str>,
    ) -> Result<Release, ClientError> {
        let path = format!("{}/yanked", version_path(id, version));
        self.send("PUT", &path, &Yank { reason: reason.map(str::to_owned) }).await
    }

    /// Changes who sees a tool.
    pub async fn change(&self, id: &ToolId, change: &ToolChange) -> Result<ToolInfo, ClientError> {
        self.send("PATCH", &format!("tools/{id}"), change).await
    }

    /// Which of these blobs the registry lacks.
    pub async fn missing(&self, digests: Vec<Digest>) -> Result<Vec<Digest>, ClientError> {
        let missing: Blobs = self.send("POST", "blobs/missing", &Blobs { digests }).await?;
        Ok(missing.digests)
    }

    /// Brings a blob there.
    pub async fn put_blob(&self, digest: &Digest, bytes: Vec<u8>) -> Result<(), ClientError> {
        let mut request = self.request("PUT", &format!("blobs/{digest}"), Body::Bytes(bytes));
        request.timeout = LONG_PATIENCE;
        self.answer(request).await.map(drop)
    }

    /// The bytes of a blob, of at most so many bytes. They are not looked at here.
    pub async fn blob(&self, digest: &Digest, size: u64) -> Result<Vec<u8>, ClientError> {
        let mut request = self.request("GET", &format!("blobs/{digest}"), Body::None);
        request.timeout = LONG_PATIENCE;
        request.max_response = size.min(MOST_BLOB);
        Ok(self.answer(request).await?.body.into_bytes())
    }

    /// The lockfiles of a set.
    pub async fn lockfiles(&self, set: &str) -> Result<LockfileSet, ClientError> {
        self.get(&format!("lockfiles/{}", encoded(set)), &[]).await
    }

    /// Shares a lockfile.
    pub async fn put_lockfile(
        &self,
        set: &str,
        key: &str,
        change: &LockfileChange,
    ) -> Result<SharedLockfile, ClientError> {
        self.send("PUT", &format!("lockfiles/{}/{}", encoded(set), encoded(key)), change).await
    }

    /// Every token there is.
    pub async fn tokens(&self) -> Result<Tokens, ClientError> {
        self.get("tokens", &[]).await
    }

    /// Makes a token.
    pub async fn make_token(&self, new: &NewToken) -> Result<MadeToken, ClientError> {
        self.send("POST", "tokens", new).await
    }

    /// Ends a token.
    pub async fn end_token(&self, id: &str) -> Result<(), ClientError> {
        self.answer(self.request("DELETE", &format!("tokens/{}", encoded(id)), Body::None)).await.map(drop)
    }

    /// A namespace and its owners.
    pub async fn namespace(&self, name: &str) -> Result<Namespace, ClientError> {
        self.get(&format!("namespaces/{}", encoded(name)), &[]).await
    }

    /// Takes a namespace that nobody has.
    pub async fn claim(&self, name: &str) -> Result<Namespace, ClientError> {
        self.read(self.request("PUT", &format!("namespaces/{}", encoded(name)), Body::None)).await
    }

    /// Adds an owner.
    pub async fn add_owner(&self, name: &str, user: &str) -> Result<Namespace, ClientError> {
        self.read(self.request("PUT", &owner(name, user), Body::None)).await
    }

    /// Removes an owner.
    pub async fn remove_owner(&self, name: &str, user: &str) -> Result<Namespace, ClientError> {
        self.read(self.request("DELETE", &owner(name, user), Body::None)).await
    }

    async fn get<T: DeserializeOwned>(&self, path: &str, query: &[(&str, String)]) -> Result<T, ClientError> {
        let mut request = self.request("GET", path, Body::None);
        request.query = query.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        self.read(request).await
    }

    async fn send<T: DeserializeOwned>(
        &self,
        method: &str,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        self.read(self.request(method, path, json(body))).await
    }

    async fn read<T: DeserializeOwned>(&self, request: HttpRequest) -> Result<T, ClientError> {
        let url = request.url.clone();
        let answer = self.answer(request).await?;
        let nonsense = |why: String| ClientError::Nonsense { url, why };
        match answer.body {
            Payload::Json(value) => {
                serde_json::from_value(value).map_err(|error| nonsense(without_types(&error)))
            }
            _ => Err(nonsense("it answers with something that is no JSON".to_owned())),
        }
    }

    async fn answer(&self, request: HttpRequest) -> Result<HttpResponse, ClientError> {
        let url = request.url.clone();
        match self.http.send(request).await {
            Ok(answer) => Ok(answer),
            Err(ExecError::HttpStatus { status, body, url: shown }) => {
                match serde_json::from_value::<Failed>(body.clone()) {
                    Ok(failed) => Err(ClientError::Refused(Box::new(failed.error))),
                    // A proxy in between says so in its own words.
                    Err(_) if status >= 500 => {
                        Err(ClientError::Unreachable(ExecError::HttpStatus { status, body, url: shown }))
                    }
                    Err(_) => {
                        Err(ClientError::Nonsense { url, why: format!("it answers with status {status}") })
                    }
                }
            }
            Err(error) => Err(error.into()),
        }
    }

    fn request(&self, method: &str, path: &str, body: Body) -> HttpRequest {
        HttpRequest {
            method: method.to_owned(),
            url: format!("{}/v1/{path}", self.url),
            headers: Vec::new(),
            query: Vec::new(),
            body,
            auth: self.token.clone().map(|token| Auth::Bearer { token }),
            // Its user names it, and may run it on this machine.
            reach: Reach { is_named: true, allow_hosts: None },
            timeout: self.patience,
            max_response: MOST_ANSWER,
            redirects: Redirects::Keep,
            retries: self.retries,
        }
    }
}

/// What is wrong with an answer. What it should have been is a word of this program's source.
fn without_types(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split_once(", expected ").map_or(text.as_str(), |(problem, _)| problem).to_owned()
}

fn version_path(id: &ToolId, version: &Version) -> String {
    format!("tools/{id}/versions/{}", encoded(&version.to_string()))
}

fn owner(namespace: &str, user: &str) -> String {
    format!("namespaces/{}/owners/{}", encoded(namespace), encoded(user))
}

fn json(body: &impl Serialize) -> Body {
    Body::Json(serde_json::to_value(body).unwrap_or_default())
}

/// What a part of a path may hold as it is; the rest would end it, or mean something else.
const PLAIN: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b'@').remove(b':');

fn encoded(part: &str) -> PercentEncode<'_> {
    utf8_percent_encode(part, PLAIN)
}
