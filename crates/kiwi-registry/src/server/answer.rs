//! Answers: JSON with a tag by which it is known again, failures as the protocol tells them.

use axum::body::{Body, Bytes};
use axum::http::header::{
    ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, ETAG, IF_NONE_MATCH, RETRY_AFTER, VARY, WWW_AUTHENTICATE,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use kiwi_model::{Digest, Explain as _, Fault};
use serde::Serialize;

use crate::error::RegistryError;
use crate::protocol::Failed;

pub(super) type Answer = Response<Body>;

/// An answer in JSON.
pub(super) fn json(status: StatusCode, value: &impl Serialize) -> Result<Answer, RegistryError> {
    let body = serde_json::to_vec(value).map_err(RegistryError::broken)?;
    Ok(text(status, "application/json", body))
}

/// An answer of any kind.
pub(super) fn text(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut response = Response::new(Body::from(body.into()));
    *response.status_mut() = status;
    set(&mut response, CONTENT_TYPE, kind);
    set(&mut response, CACHE_CONTROL, "no-store");
    response
}

/// An answer without a body.
pub(super) fn nothing() -> Answer {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

/// Sets a header whose value can be one.
pub(super) fn set(response: &mut Answer, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}

/// Who may keep an answer, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    /// Anybody, and asks whether it is still so: it may be yanked, or become private.
    Checked,
    /// For ever: it is named by its content.
    Forever,
}

/// JSON that the client may have already. What a token had a say in is nobody else's.
pub(super) fn tagged(
    headers: &HeaderMap,
    is_private: bool,
    value: &impl Serialize,
) -> Result<Answer, RegistryError> {
    let body = serde_json::to_vec(value).map_err(RegistryError::broken)?;
    let tag = format!("\"{}\"", Digest::of(&body).hex());
    let mut response =
        if has(headers, &tag) { unchanged() } else { text(StatusCode::OK, "application/json", body) };
    keep(&mut response, &tag, is_private, Keep::Checked);
    Ok(response)
}

/// That the client has it already.
pub(super) fn unchanged() -> Answer {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NOT_MODIFIED;
    response
}

/// Says how an answer may be kept.
pub(super) fn keep(response: &mut Answer, tag: &str, is_private: bool, keep: Keep) {
    set(response, ETAG, tag);
    set(response, VARY, "authorization");
    let who = if is_private { "private" } else { "public" };
    let how = match keep {
        Keep::Checked => "no-cache",
        Keep::Forever => "max-age=31536000, immutable",
    };
    set(response, CACHE_CONTROL, &format!("{who}, {how}"));
}

/// Whether the client says that it has what is tagged so.
pub(super) fn has(headers: &HeaderMap, tag: &str) -> bool {
    let given = headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let mut tags = given.flat_map(|list| list.split(','));
    tags.any(|one| one.trim() == "*" || one.trim().trim_start_matches("W/") == tag)
}

/// What a failure is in HTTP.
pub(super) fn status(error: &RegistryError) -> StatusCode {
    match error {
        RegistryError::Away { .. } => StatusCode::SERVICE_UNAVAILABLE,
        RegistryError::Broken { .. }
        | RegistryError::Later { .. }
        | RegistryError::Altered { .. }
        | RegistryError::Files { .. }
        | RegistryError::Options { .. }
        | RegistryError::NoRandomness => StatusCode::INTERNAL_SERVER_ERROR,
        RegistryError::NoToken | RegistryError::BadToken => StatusCode::UNAUTHORIZED,
        RegistryError::NoScope { .. } | RegistryError::NotOwner { .. } | RegistryError::Reserved { .. } => {
            StatusCode::FORBIDDEN
        }
        RegistryError::Unknown { .. }
        | RegistryError::NoVersion { .. }
        | RegistryError::Yanked { .. }
        | RegistryError::NoRoute => StatusCode::NOT_FOUND,
        RegistryError::Taken { .. }
        | RegistryError::LockfileChanged { .. }
        | RegistryError::LastOwner { .. } => StatusCode::CONFLICT,
        RegistryError::Cycle { .. }
        | RegistryError::TooDeep { .. }
        | RegistryError::MissingBlobs { .. }
        | RegistryError::WrongSize { .. }
        | RegistryError::BadFiles { .. }
        | RegistryError::BadManifest { .. }
        | RegistryError::Mismatch { .. }
        | RegistryError::BadSignature { .. }
        | RegistryError::Unfit { .. } => StatusCode::UNPROCESSABLE_ENTITY,
        RegistryError::BadRequest { .. } => StatusCode::BAD_REQUEST,
        RegistryError::Method { .. } => StatusCode::METHOD_NOT_ALLOWED,
        RegistryError::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
        RegistryError::MediaType { .. } => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        RegistryError::TooSlow => StatusCode::REQUEST_TIMEOUT,
        RegistryError::TooMany { .. } => StatusCode::TOO_MANY_REQUESTS,
    }
}

/// A failure as it is sent. What went wrong inside is nobody's business outside.
pub(super) fn failed(error: &RegistryError) -> Answer {
    let status = status(error);
    let fault = match status {
        StatusCode::INTERNAL_SERVER_ERROR => Fault::new(error.kind(), "the registry failed"),
        StatusCode::SERVICE_UNAVAILABLE => {
            Fault::new(error.kind(), "the registry's database does not answer")
                .with_hint("try again in a moment")
        }
        _ => error.fault(),
    };
    let body = serde_json::to_vec(&Failed { error: fault }).unwrap_or_default();
    let mut response = text(status, "application/json", body);
    match error {
        RegistryError::NoToken => set(&mut response, WWW_AUTHENTICATE, "Bearer"),
        RegistryError::BadToken => set(&mut response, WWW_AUTHENTICATE, "Bearer error=\"invalid_token\""),
        RegistryError::Method { allowed } => set(&mut response, ALLOW, allowed),
        RegistryError::TooMany { retry_after } => set(&mut response, RETRY_AFTER, &retry_after.to_string()),
        RegistryError::Away { .. } => set(&mut response, RETRY_AFTER, "1"),
        // What was not read to its end cannot be followed by another request.
        RegistryError::TooLarge { .. } | RegistryError::TooSlow => set(&mut response, CONNECTION, "close"),
        _ => {}
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_known_again_in_every_spelling() {
        let check = |given: &str, expected: bool| {
            let mut headers = HeaderMap::new();
            headers.insert(IF_NONE_MATCH, HeaderValue::from_str(given).unwrap());
            assert_eq!(has(&headers, "\"a\""), expected, "{given}");
        };
        check("\"a\"", true);
        check("W/\"a\"", true);
        check("\"b\", \"a\"", true);
        check("*", true);
        check("\"b\"", false);
        check("a", false);
        assert!(!has(&HeaderMap::new(), "\"a\""));
    }

    #[test]
    fn what_fails_inside_is_not_told_outside() {
        let answer = failed(&RegistryError::broken("password=hush"));
        assert_eq!(answer.status(), StatusCode::INTERNAL_SERVER_ERROR);
        let fault = Fault::new(kiwi_model::ErrorKind::Internal, "the registry failed");
        assert!(!serde_json::to_string(&Failed { error: fault }).unwrap().contains("hush"));
    }
}
