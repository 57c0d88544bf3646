//! What comes back.

use reqwest::header::{self, HeaderMap, HeaderValue};
use serde_json::Value;

use super::asked::Asked;
use super::failure::{Failure, unreachable_because};
use super::retry::wish;
use crate::error::ExecError;

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

    /// The bytes as they came; JSON that was read is written again.
    pub fn into_bytes(self) -> Vec<u8> {
        match self {
            Self::Json(value) => value.to_string().into_bytes(),
            Self::Text(text) => text.into_bytes(),
            Self::Bytes(bytes) => bytes,
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

/// How much of an answer that is a failure is kept: it is shown, not used.
const KEPT_OF_FAILURE: u64 = 64 * 1024;

/// Reads an answer as it comes, and no further than it may go. A failure is cut there; a result is none if it is cut.
pub(super) async fn read(
    mut answer: reqwest::Response,
    asked: &Asked,
    limit: u64,
) -> Result<HttpResponse, Failure> {
    let status = answer.status();
    let may_be_cut = !status.is_success();
    let limit = if may_be_cut { limit.min(KEPT_OF_FAILURE) } else { limit };
    let too_large = || Failure::from(ExecError::ResponseLimit { url: asked.shown(), limit });
    if !may_be_cut && answer.content_length().is_some_and(|length| length > limit) {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(|error| unreachable_because(asked, &error))? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() as u64 <= limit {
            continue;
        }
        if !may_be_cut {
            return Err(too_large());
        }
        bytes.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        break;
    }
    let body = Payload::read(bytes, answer.headers());
    if may_be_cut {
        let error =
            ExecError::HttpStatus { url: asked.shown(), status: status.as_u16(), body: body.into_value() };
        return Err(Failure { error, wish: wish(status, answer.headers()) });
    }
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let headers = answer.headers().iter().map(|(name, value)| (name.to_string(), text(value))).collect();
    Ok(HttpResponse { status: status.as_u16(), headers, body })
}
