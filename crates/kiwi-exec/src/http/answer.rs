//! What comes back.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use reqwest::header::{self, HeaderMap, HeaderValue};
use serde_json::{Value, json};

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
    /// As one JSON value; bytes that are no text as `filesystem.read` gives them.
    pub fn into_value(self) -> Value {
        match self {
            Self::Json(value) => value,
            Self::Text(text) => Value::String(text),
            Self::Bytes(bytes) => {
                json!({"content": BASE64.encode(&bytes), "bytes": bytes.len(), "encoding": "base64"})
            }
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
        let declared = declared.to_ascii_lowercase();
        let mut parts = declared.split(';').map(str::trim);
        let kind = parts.next().unwrap_or_default();
        let is_json = kind == "application/json" || kind == "text/json" || kind.ends_with("+json");
        if is_json && let Ok(value) = serde_json::from_slice(&bytes) {
            return Self::Json(value);
        }
        let charset = parts.find_map(|part| part.strip_prefix("charset="));
        let is_latin = charset.is_some_and(|name| ["iso-8859-1", "latin1"].contains(&name.trim_matches('"')));
        match String::from_utf8(bytes) {
            Ok(text) => Self::Text(text),
            // Every byte of it is the character of that number.
            Err(error) if is_latin => Self::Text(error.as_bytes().iter().copied().map(char::from).collect()),
            Err(error) => Self::Bytes(error.into_bytes()),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_what_it_is_said_to_be_and_nothing_of_it_is_lost() {
        let read = |kind: &'static str, bytes: &[u8]| {
            let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static(kind))]);
            Payload::read(bytes.to_vec(), &headers).into_value()
        };
        assert_eq!(read("application/problem+json; charset=utf-8", b"{\"a\": 1}"), json!({"a": 1}));
        assert_eq!(read("application/json", b"{a"), json!("{a"));
        assert_eq!(read("text/plain", "café".as_bytes()), json!("café"));
        assert_eq!(read("text/plain; charset=\"ISO-8859-1\"", b"caf\xe9"), json!("café"));
        assert_eq!(read("text/html;charset=latin1", "café".as_bytes()), json!("café"));
        let plain = json!({"content": "iVBO/w==", "bytes": 4, "encoding": "base64"});
        assert_eq!(read("image/png", b"\x89PN\xff"), plain);
        assert_eq!(read("text/plain; charset=shift_jis", b"\x89PN\xff"), plain);
    }
}
