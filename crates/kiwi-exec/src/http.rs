//! One request and its answer: the `http_client` primitive.
//!
//! Redirects are followed here and not by the library below, so that every address that is asked passes the same place.
#![expect(clippy::disallowed_types, reason = "this is the one place that opens connections")]

use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, StatusCode, Url};
use serde_json::Value;
use std::error::Error;
use std::sync::{Once, OnceLock};
use std::time::Duration;

use crate::error::ExecError;

/// A request.
#[derive(Debug, Clone)]
pub struct HttpRequest {
    /// `GET`, `POST`, ….
    pub method: String,
    /// The address: `http` or `https`.
    pub url: String,
    /// Headers; a name may come more than once.
    pub headers: Vec<(String, String)>,
    /// Added to the address's own query.
    pub query: Vec<(String, String)>,
    /// What is sent.
    pub body: Body,
    /// How long everything together may take, redirects and the answer's body included.
    pub timeout: Duration,
    /// How many bytes the answer's body may have.
    pub max_response: u64,
    /// What to do when sent elsewhere.
    pub redirects: Redirects,
}

/// What a request sends.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Body {
    /// Nothing.
    #[default]
    None,
    /// A JSON value.
    Json(Value),
    /// Plain text.
    Text(String),
    /// Fields of a form.
    Form(Vec<(String, String)>),
}

/// What to do when the answer says that the thing is elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redirects {
    /// Take the answer as it is.
    Keep,
    /// Go there, so many times.
    Follow(usize),
}

/// An answer with a status of success.
#[derive(Debug, Clone, PartialEq)]
pub struct HttpResponse {
    /// The status code, 200 to 299.
    pub status: u16,
    /// Headers in the order they came, names in lowercase.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Payload,
}

/// The body of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Payload {
    /// JSON, because the content type says so and it is.
    Json(Value),
    /// Other text.
    Text(String),
    /// Neither.
    Bytes(Vec<u8>),
}

impl Payload {
    /// As one JSON value; bytes that are no text lose what cannot be shown.
    pub fn into_value(self) -> Value {
        match self {
            Self::Json(value) => value,
            Self::Text(text) => Value::String(text),
            Self::Bytes(bytes) => Value::String(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }

    fn read(bytes: Vec<u8>, headers: &HeaderMap) -> Self {
        let declared =
            headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let kind = declared.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let is_json = kind == "application/json" || kind == "text/json" || kind.ends_with("+json");
        if is_json && let Ok(value) = serde_json::from_slice(&bytes) {
            return Self::Json(value);
        }
        String::from_utf8(bytes).map_or_else(|error| Self::Bytes(error.into_bytes()), Self::Text)
    }
}

/// Makes requests. Holds connections open between them, so keep one.
#[derive(Debug, Default)]
pub struct HttpClient {
    /// Made at the first `https` request: reading the system's certificates takes time, and there may be none.
    secure: OnceLock<reqwest::Client>,
    plain: OnceLock<reqwest::Client>,
}

impl HttpClient {
    /// A client that has not connected anywhere yet.
    pub const fn new() -> Self {
        Self { secure: OnceLock::new(), plain: OnceLock::new() }
    }

    /// Makes a request. Any status but success is an error that carries the answer.
    pub async fn send(&self, request: HttpRequest) -> Result<HttpResponse, ExecError> {
        let prepared = Prepared::new(&request)?;
        let url = shown(&prepared.url);
        let timeout = request.timeout;
        let exchange = self.exchange(prepared, request.max_response, request.redirects);
        tokio::time::timeout(timeout, exchange)
            .await
            .unwrap_or(Err(ExecError::HttpTimeout { url, after: timeout }))
    }

    async fn exchange(
        &self,
        mut asked: Prepared,
        limit: u64,
        redirects: Redirects,
    ) -> Result<HttpResponse, ExecError> {
        let mut followed = 0;
        loop {
            let client = self.client(asked.url.scheme() == "https")?;
            let answer = client
                .execute(asked.request())
                .await
                .map_err(|error| unreachable_because(&asked.url, &error))?;
            match (asked.next(&answer), redirects) {
                (Some(next), Redirects::Follow(most)) => {
                    if followed == most {
                        return Err(ExecError::TooManyRedirects { url: shown(&asked.url), limit: most });
                    }
                    followed += 1;
                    asked = next?;
                }
                _ => return read(answer, &asked.url, limit).await,
            }
        }
    }

    fn client(&self, is_secure: bool) -> Result<&reqwest::Client, ExecError> {
        let slot = if is_secure { &self.secure } else { &self.plain };
        if let Some(client) = slot.get() {
            return Ok(client);
        }
        choose_cryptography();
        let builder = reqwest::Client::builder()
            .user_agent(concat!("kiwi/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .no_proxy();
        let builder = if is_secure { builder } else { builder.tls_certs_only([]) };
        let client = builder.build().map_err(|error| {
            ExecError::io("prepare for HTTP requests")(std::io::Error::other(innermost(&error)))
        })?;
        Ok(slot.get_or_init(|| client))
    }
}

fn choose_cryptography() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // An error only says that somebody else chose already.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}

/// A request in the library's words, which can be made again elsewhere.
struct Prepared {
    method: Method,
    url: Url,
    headers: HeaderMap,
    body: Option<Vec<u8>>,
}

impl Prepared {
    fn new(request: &HttpRequest) -> Result<Self, ExecError> {
        let method = request.method.to_ascii_uppercase();
        let method =
            Method::from_bytes(method.as_bytes())
                .ok()
                .filter(|method| *method != Method::CONNECT)
                .ok_or_else(|| ExecError::BadRequest { what: "method", value: request.method.clone() })?;
        let mut url = parse(&request.url)?;
        if !request.query.is_empty() {
            url.query_pairs_mut().extend_pairs(&request.query);
        }
        let mut headers = HeaderMap::new();
        for (name, value) in &request.headers {
            let pair = HeaderName::try_from(name).ok().zip(HeaderValue::try_from(value).ok());
            let (name, value) =
                pair.ok_or_else(|| ExecError::BadRequest { what: "header", value: name.clone() })?;
            headers.append(name, value);
        }
        let (body, kind) = match &request.body {
            Body::None => (None, None),
            Body::Json(value) => (Some(value.to_string().into_bytes()), Some("application/json")),
            Body::Text(text) => (Some(text.clone().into_bytes()), Some("text/plain; charset=utf-8")),
            Body::Form(fields) => (Some(encode(fields)), Some("application/x-www-form-urlencoded")),
        };
        if let Some(kind) = kind {
            headers.entry(header::CONTENT_TYPE).or_insert(HeaderValue::from_static(kind));
        }
        Ok(Self { method, url, headers, body })
    }

    fn request(&self) -> reqwest::Request {
        let mut request = reqwest::Request::new(self.method.clone(), self.url.clone());
        request.headers_mut().clone_from(&self.headers);
        *request.body_mut() = self.body.clone().map(Into::into);
        request
    }

    /// What to ask next, when the answer sends us elsewhere.
    fn next(&self, answer: &reqwest::Response) -> Option<Result<Self, ExecError>> {
        let status = answer.status();
        let keeps_method = match status {
            StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT => true,
            StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => self.method != Method::POST,
            StatusCode::SEE_OTHER => self.method == Method::HEAD,
            _ => return None,
        };
        let location = answer.headers().get(header::LOCATION)?;
        Some(self.at(&String::from_utf8_lossy(location.as_bytes()), keeps_method))
    }

    fn at(&self, location: &str, keeps_method: bool) -> Result<Self, ExecError> {
        let url = self.url.join(location).map_err(|error| bad_url(location, error.to_string()))?;
        let url = parse(url.as_str())?;
        let mut headers = self.headers.clone();
        if url.origin() != self.url.origin() {
            // Secrets are for the one they were meant for.
            for secret in [header::AUTHORIZATION, header::COOKIE, header::PROXY_AUTHORIZATION] {
                headers.remove(secret);
            }
        }
        if keeps_method {
            return Ok(Self { method: self.method.clone(), url, headers, body: self.body.clone() });
        }
        for about_the_body in [header::CONTENT_TYPE, header::CONTENT_LENGTH, header::CONTENT_ENCODING] {
            headers.remove(about_the_body);
        }
        Ok(Self { method: Method::GET, url, headers, body: None })
    }
}

async fn read(mut answer: reqwest::Response, url: &Url, limit: u64) -> Result<HttpResponse, ExecError> {
    let too_large = || ExecError::ResponseLimit { url: shown(url), limit };
    if answer.content_length().is_some_and(|length| length > limit) {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(|error| unreachable_because(url, &error))? {
        if (bytes.len() + chunk.len()) as u64 > limit {
            return Err(too_large());
        }
        bytes.extend_from_slice(&chunk);
    }
    let status = answer.status();
    let body = Payload::read(bytes, answer.headers());
    if !status.is_success() {
        return Err(ExecError::HttpStatus {
            url: shown(url),
            status: status.as_u16(),
            body: body.into_value(),
        });
    }
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let headers = answer.headers().iter().map(|(name, value)| (name.to_string(), text(value))).collect();
    Ok(HttpResponse { status: status.as_u16(), headers, body })
}

fn parse(text: &str) -> Result<Url, ExecError> {
    let url = Url::parse(text).map_err(|error| bad_url(text, error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(bad_url(text, format!("`{}` is neither http nor https", url.scheme())));
    }
    // Addresses are logged and shown; what stands in them is no secret any more.
    if !url.username().is_empty() || url.password().is_some() {
        return Err(bad_url(&shown(&url), "it holds a user name or a password".into()));
    }
    Ok(url)
}

fn bad_url(url: &str, why: String) -> ExecError {
    ExecError::BadUrl { url: url.to_owned(), why }
}

fn encode(fields: &[(String, String)]) -> Vec<u8> {
    // A form is encoded as a query is.
    let encoded = Url::parse_with_params("http://form", fields);
    encoded.ok().and_then(|url| url.query().map(|query| query.as_bytes().to_vec())).unwrap_or_default()
}

/// The address as messages show it: what may hold a secret is left out.
fn shown(url: &Url) -> String {
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}://{}{port}{}", url.scheme(), url.host_str().unwrap_or_default(), url.path())
}

fn unreachable_because(url: &Url, error: &reqwest::Error) -> ExecError {
    ExecError::Unreachable { url: shown(url), why: innermost(error) }
}

/// What was really wrong; the errors around it only say that something was.
fn innermost(error: &dyn Error) -> String {
    let mut deepest = error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    deepest.to_string()
}
