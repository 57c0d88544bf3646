//! A request in the library's words, which can be made again, here or elsewhere.

use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, StatusCode};

use super::auth::Credential;
use super::reach::Permit;
use super::request::{Body, HttpRequest};
use super::target::{Target, encode};
use crate::error::ExecError;

/// Headers that mean the same to everybody. All others stay with the service they were written for.
const FOR_ANYBODY: [HeaderName; 8] = [
    header::ACCEPT,
    header::ACCEPT_LANGUAGE,
    header::CACHE_CONTROL,
    header::CONTENT_LANGUAGE,
    header::CONTENT_TYPE,
    header::IF_MODIFIED_SINCE,
    header::RANGE,
    header::USER_AGENT,
];

#[derive(Clone)]
pub(super) struct Asked {
    method: Method,
    pub target: Target,
    headers: HeaderMap,
    body: Option<Vec<u8>>,
    credential: Option<Credential>,
    permit: Option<Permit>,
}

impl Asked {
    pub fn new(request: &HttpRequest) -> Result<Self, ExecError> {
        let method = request.method.to_ascii_uppercase();
        let method =
            Method::from_bytes(method.as_bytes())
                .ok()
                .filter(|method| *method != Method::CONNECT)
                .ok_or_else(|| ExecError::BadRequest { what: "method", value: request.method.clone() })?;
        let mut target = Target::given(&request.url)?;
        if !request.query.is_empty() {
            target.url.query_pairs_mut().extend_pairs(&request.query);
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
            Body::Form(fields) => {
                (Some(encode(fields).into_bytes()), Some("application/x-www-form-urlencoded"))
            }
            Body::Bytes(bytes) => (Some(bytes.clone()), Some("application/octet-stream")),
        };
        if let Some(kind) = kind {
            headers.entry(header::CONTENT_TYPE).or_insert(HeaderValue::from_static(kind));
        }
        Ok(Self { method, target, headers, body, credential: None, permit: None })
    }

    /// The same, where somebody has a say in whom it is put to, wherever it is led.
    pub fn permitted_by(self, permit: Option<Permit>) -> Self {
        Self { permit, ..self }
    }

    /// Whether it may be put to the one it is for now.
    pub fn permitted(&self) -> Result<(), ExecError> {
        let Some(permit) = &self.permit else { return Ok(()) };
        permit(&self.target.place()).map_err(|fault| ExecError::Unpermitted { fault: Box::new(fault) })
    }

    /// The same, by somebody.
    pub fn by(&self, credential: Option<Credential>) -> Self {
        Self { credential, ..self.clone() }
    }

    /// Whether making it twice is the same as making it once.
    pub fn may_repeat(&self) -> bool {
        self.method.is_idempotent()
    }

    pub fn request(&self) -> reqwest::Request {
        let mut request = reqwest::Request::new(self.method.clone(), self.target.url.clone());
        request.headers_mut().clone_from(&self.headers);
        *request.body_mut() = self.body.clone().map(Into::into);
        if let Some(credential) = &self.credential {
            credential.apply(&mut request);
        }
        request
    }

    /// The address as messages show it. That a key was sent is told; the key is not.
    pub fn shown(&self) -> String {
        match self.credential.as_ref().and_then(Credential::query_name) {
            Some(name) => format!("{}?{name}=***", self.target.shown()),
            None => self.target.shown(),
        }
    }

    /// What to ask next, when the answer sends us elsewhere.
    pub fn next(&self, answer: &reqwest::Response) -> Option<Result<Self, ExecError>> {
        let keeps_method = match answer.status() {
            StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT => true,
            StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => self.method != Method::POST,
            StatusCode::SEE_OTHER => self.method == Method::HEAD,
            _ => return None,
        };
        let location = answer.headers().get(header::LOCATION)?;
        let target = self.target.join(&String::from_utf8_lossy(location.as_bytes()));
        Some(target.map(|target| self.at(target, keeps_method)))
    }

    fn at(&self, target: Target, keeps_method: bool) -> Self {
        let mut next = Self { target, ..self.clone() };
        if !next.target.is_beside(&self.target) {
            // Secrets are for the one they were meant for.
            next.credential = None;
            next.headers = kept(&self.headers);
        }
        if !keeps_method {
            next.method = Method::GET;
            next.body = None;
            for about_the_body in [header::CONTENT_TYPE, header::CONTENT_LENGTH, header::CONTENT_ENCODING] {
                next.headers.remove(about_the_body);
            }
        }
        next
    }
}

fn kept(headers: &HeaderMap) -> HeaderMap {
    let pairs = headers.iter().filter(|(name, _)| FOR_ANYBODY.contains(name));
    pairs.map(|(name, value)| (name.clone(), value.clone())).collect()
}
