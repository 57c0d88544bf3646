//! What every request passes: whose name it calls, from which page, with which token, how long and how slow it is.

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{
    AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HOST, ORIGIN, RETRY_AFTER, WWW_AUTHENTICATE,
};
use axum::http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use axum::middleware::Next;
use kiwi_model::Digest;
use rmcp::model::ErrorCode;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use serde_json::json;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::bearer::Bearer;
use super::busy::{Busy, keeping};
use super::names::Names;
use super::{HttpOptions, connections};
use crate::unread::Unread;

/// Sessions of older revisions at once; each ends by itself when nothing comes for a while.
const MOST_SESSIONS: usize = 1024;
/// From this revision on there are none.
const NO_SESSIONS: &str = "2026-07-28";
const JSON: &str = "application/json";
const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// Who asks, as far as the connection tells: by token, or by address.
#[derive(Debug, Clone)]
pub(crate) struct Identity(pub String);

/// The rules of the door.
pub(crate) struct Guard {
    names: Names,
    bearer: Option<Bearer>,
    at: SocketAddr,
    most_bytes: usize,
    most_requests: usize,
    patience: Duration,
    busy: Busy,
    is_closed: AtomicBool,
    /// Sessions of older revisions, which live on between requests.
    pub(super) meta_sessions: Arc<LocalSessionManager>,
    pub(super) direct_sessions: Arc<LocalSessionManager>,
}

impl Guard {
    pub fn new(options: &HttpOptions, names: Names, at: SocketAddr) -> Self {
        Self {
            names,
            bearer: options.bearer.clone(),
            at,
            most_bytes: options.most_bytes,
            most_requests: options.most_requests,
            patience: options.patience,
            busy: Busy::default(),
            is_closed: AtomicBool::new(false),
            meta_sessions: Arc::default(),
            direct_sessions: Arc::default(),
        }
    }

    /// Whether one more session would be too many. A request that belongs to one, or needs none, begins none.
    async fn is_full(&self, headers: &HeaderMap) -> bool {
        let is_modern = text(headers, "mcp-protocol-version").is_some_and(|it| it.as_str() >= NO_SESSIONS);
        if headers.contains_key("mcp-session-id") || is_modern {
            return false;
        }
        let open =
            self.meta_sessions.sessions.read().await.len() + self.direct_sessions.sessions.read().await.len();
        open >= MOST_SESSIONS
    }

    /// Lets nobody in any more.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
    }

    /// Resolves once nobody is inside.
    pub async fn idle(&self) {
        self.busy.none().await;
    }

    /// What tells a client how to get in.
    pub fn metadata(&self, request: &Request) -> Response<Body> {
        let below =
            request.uri().path().strip_prefix(WELL_KNOWN).filter(|path| !path.is_empty()).unwrap_or("/mcp");
        let body = json!({
            "resource": format!("{}{below}", self.base(request.headers())),
            "resource_name": "Kiwi",
            "authorization_servers": [],
            "bearer_methods_supported": ["header"],
        });
        let mut response = Response::new(Body::from(body.to_string()));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        response
    }

    fn base(&self, headers: &HeaderMap) -> String {
        match text(headers, HOST.as_str()) {
            Some(host) => format!("http://{host}"),
            None => format!("http://{}", self.at),
        }
    }

    /// Who it is, or why it does not come in.
    fn admit(&self, request: &Request) -> Result<Identity, Box<Response<Body>>> {
        let headers = request.headers();
        let host =
            text(headers, HOST.as_str()).or_else(|| request.uri().authority().map(ToString::to_string));
        match host {
            None => {
                return Err(Box::new(plain(
                    StatusCode::BAD_REQUEST,
                    "the request does not say whom it calls (Host)",
                )));
            }
            Some(host) if !self.names.is_host(&host) => {
                return Err(Box::new(plain(StatusCode::FORBIDDEN, "this Host is not served here")));
            }
            Some(_) => {}
        }
        if headers.contains_key(ORIGIN)
            && !text(headers, ORIGIN.as_str()).is_some_and(|it| self.names.is_origin(&it))
        {
            return Err(Box::new(plain(StatusCode::FORBIDDEN, "pages from this Origin may not call")));
        }
        let remote = request.extensions().get::<connections::Remote>().map(|it| it.0.ip().to_string());
        let remote = remote.unwrap_or_default();
        let Some(bearer) = &self.bearer else { return Ok(Identity(remote)) };
        if request.uri().path().starts_with(WELL_KNOWN) {
            return Ok(Identity(remote));
        }
        let token = text(headers, AUTHORIZATION.as_str()).and_then(|value| {
            let (scheme, token) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| token.trim().to_owned())
        });
        match token {
            Some(token) if bearer.is(&token) => Ok(Identity(Digest::of(token.as_bytes()).hex())),
            given => Err(Box::new(self.challenge(request, given.is_some()))),
        }
    }

    fn challenge(&self, request: &Request, was_wrong: bool) -> Response<Body> {
        let mut response = plain(StatusCode::UNAUTHORIZED, "a bearer token is needed");
        let error = if was_wrong { "error=\"invalid_token\", " } else { "" };
        let metadata = format!("{}{WELL_KNOWN}{}", self.base(request.headers()), request.uri().path());
        let value = format!("Bearer {error}resource_metadata=\"{metadata}\"");
        if let Ok(value) = HeaderValue::from_str(&value) {
            response.headers_mut().insert(WWW_AUTHENTICATE, value);
        }
        response
    }
}

/// Lets a request in, or tells it why not.
pub(crate) async fn pass(
    State(guard): State<Arc<Guard>>,
    mut request: Request,
    next: Next,
) -> Response<Body> {
    let identity = match guard.admit(&request) {
        Ok(identity) => identity,
        Err(refusal) => return *refusal,
    };
    request.extensions_mut().insert(identity);
    if request.method() != Method::POST {
        // A stream that only listens is held by its connection, and counts as one.
        return next.run(request).await;
    }
    if guard.is_closed.load(Ordering::Acquire)
        || guard.busy.count() >= guard.most_requests
        || guard.is_full(request.headers()).await
    {
        let mut response = plain(StatusCode::SERVICE_UNAVAILABLE, "too much is going on; try again");
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        return response;
    }
    let busy = guard.busy.one();
    let announced = text(request.headers(), CONTENT_LENGTH.as_str()).and_then(|it| it.parse::<usize>().ok());
    if announced.is_some_and(|bytes| bytes > guard.most_bytes) {
        return too_long(guard.most_bytes);
    }
    let (parts, body) = request.into_parts();
    let is_json = text(&parts.headers, CONTENT_TYPE.as_str()).is_some_and(|it| it.starts_with(JSON));
    let body = match tokio::time::timeout(guard.patience, to_bytes(body, guard.most_bytes)).await {
        Err(_) => return closing(plain(StatusCode::REQUEST_TIMEOUT, "the request took too long to arrive")),
        Ok(Err(error)) if is_length(&error) => return too_long(guard.most_bytes),
        Ok(Err(_)) => return closing(plain(StatusCode::BAD_REQUEST, "the request did not arrive whole")),
        Ok(Ok(body)) => body,
    };
    let response = next.run(Request::from_parts(parts, Body::from(body.clone()))).await;
    let unread = match response.status() {
        // The library says so of what it cannot read, too.
        StatusCode::UNSUPPORTED_MEDIA_TYPE if is_json => Unread::of(&body),
        StatusCode::ACCEPTED => Unread::of_notification(&body),
        _ => None,
    };
    keeping(unread.map_or(response, |unread| no_message(&unread)), busy)
}

/// The answer to what is no message. It belongs to its request by itself and needs no id. A request whose parameters alone are
/// wrong is answered as any other.
fn no_message(unread: &Unread) -> Response<Body> {
    if unread.code == ErrorCode::INVALID_PARAMS {
        return json_of(StatusCode::OK, &unread.answer());
    }
    let mut answer = unread.answer();
    if let Some(id) = answer.get_mut("id") {
        *id = serde_json::Value::Null;
    }
    json_of(StatusCode::BAD_REQUEST, &answer)
}

/// Whether a body was refused for its length.
fn is_length(error: &axum::Error) -> bool {
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        if error.to_string().contains("length limit") {
            return true;
        }
        source = error.source();
    }
    error.to_string().contains("length limit")
}

fn too_long(most: usize) -> Response<Body> {
    closing(plain(StatusCode::PAYLOAD_TOO_LARGE, &format!("a request may have {most} bytes")))
}

/// What was not read to its end cannot be followed by another request.
fn closing(mut response: Response<Body>) -> Response<Body> {
    response.headers_mut().insert(axum::http::header::CONNECTION, HeaderValue::from_static("close"));
    response
}

fn plain(status: StatusCode, message: &str) -> Response<Body> {
    json_of(status, &json!({"error": {"message": message}}))
}

fn json_of(status: StatusCode, body: &serde_json::Value) -> Response<Body> {
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
    response
}

/// The one value of a header; one that is given twice, or is no text, is none.
fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?.to_str().ok()?;
    values.next().is_none().then(|| first.to_owned())
}
