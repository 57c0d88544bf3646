//! From the protocol library's errors to facts about a server.

use rmcp::model::ErrorData;
use rmcp::service::{ClientInitializeError, ServiceError};
use rmcp::transport::DynamicTransportError;
use rmcp::transport::streamable_http_client::StreamableHttpError;
use std::error::Error;

use crate::error::McpError;

/// The errors of an HTTP endpoint.
pub(super) type HttpFailure = StreamableHttpError<reqwest::Error>;

/// What went wrong with one request.
pub(super) enum Trouble {
    /// The endpoint does not know our session any more; it has done nothing.
    SessionExpired,
    /// The endpoint wants to know who asks; what it said about that.
    Challenged(String),
    /// The connection is gone.
    Gone,
    /// The endpoint cannot even be connected to.
    Unreachable(McpError),
    /// Anything else.
    Failed(McpError),
}

/// A server that cannot be had, and why, as the end of a sentence.
pub(super) fn unavailable(server: &str, problem: impl Into<String>) -> McpError {
    McpError::Unavailable { server: server.to_owned(), problem: problem.into(), stderr: String::new() }
}

/// What the failure of a request means.
pub(super) fn of_request(server: &str, error: ServiceError) -> Trouble {
    match error {
        ServiceError::McpError(error) => Trouble::Failed(of_protocol(server, error)),
        ServiceError::TransportClosed => Trouble::Gone,
        ServiceError::TransportSend(error) => of_transport(server, &error),
        ServiceError::Cancelled { .. } => Trouble::Failed(McpError::Cancelled),
        other => Trouble::Failed(unavailable(server, format!("cannot be spoken to: {other}"))),
    }
}

/// An error that the server answered with.
pub(super) fn of_protocol(server: &str, error: ErrorData) -> McpError {
    McpError::Protocol {
        server: server.to_owned(),
        code: error.code.0,
        message: error.message.into_owned(),
        data: error.data,
    }
}

fn of_transport(server: &str, error: &DynamicTransportError) -> Trouble {
    let Some(failure) = error.error.downcast_ref::<HttpFailure>() else {
        // A pipe whose reader is gone.
        return Trouble::Gone;
    };
    match failure {
        StreamableHttpError::SessionExpired => Trouble::SessionExpired,
        StreamableHttpError::AuthRequired(_) | StreamableHttpError::InsufficientScope(_) => {
            Trouble::Challenged(failure.auth_challenge().unwrap_or_default().to_owned())
        }
        StreamableHttpError::TransportChannelClosed => Trouble::Gone,
        StreamableHttpError::Auth(error) => Trouble::Failed(unauthorized(server, error.to_string())),
        StreamableHttpError::Client(error) if error.is_connect() => {
            Trouble::Unreachable(unavailable(server, in_words(failure)))
        }
        other => Trouble::Failed(unavailable(server, in_words(other))),
    }
}

/// What the failure of a beginning means.
pub(super) fn of_start(server: &str, error: &ClientInitializeError) -> Trouble {
    let wrong = |text: String| Trouble::Failed(unavailable(server, text));
    match error {
        ClientInitializeError::TransportError { error, .. } => match of_transport(server, error) {
            Trouble::SessionExpired => wrong("forgot the session before it began".into()),
            Trouble::Unreachable(error) => Trouble::Failed(error),
            other => other,
        },
        ClientInitializeError::ConnectionClosed(_) => Trouble::Gone,
        ClientInitializeError::JsonRpcError(error) => Trouble::Failed(of_protocol(server, error.clone())),
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => of_start(server, fallback),
        ClientInitializeError::NoCompatibleProtocolVersion { server_supported, .. } => {
            let theirs: Vec<String> = server_supported.iter().map(ToString::to_string).collect();
            wrong(format!("speaks no revision of the protocol that is known here ({})", theirs.join(", ")))
        }
        ClientInitializeError::ExpectedInitResult(_) | ClientInitializeError::ExpectedInitResponse(_) => {
            wrong("answered the greeting with something else".into())
        }
        other => wrong(format!("cannot be greeted: {other}")),
    }
}

/// Nobody can say who asks.
pub(super) fn unauthorized(server: &str, problem: impl Into<String>) -> McpError {
    McpError::Unauthorized { server: server.to_owned(), problem: problem.into() }
}

fn in_words(failure: &HttpFailure) -> String {
    match failure {
        StreamableHttpError::Client(error) if error.is_connect() => {
            format!("cannot be reached: {}", innermost(error))
        }
        StreamableHttpError::Client(error) => format!("broke off: {}", innermost(error)),
        StreamableHttpError::HttpStatus(error) => match &error.retry_after {
            Some(after) => {
                format!("answered HTTP {}, and wants to be asked again after {after}", error.status)
            }
            None => format!("answered HTTP {}", error.status),
        },
        StreamableHttpError::UnexpectedContentType(kind) => {
            format!("answered with `{}` in place of JSON", kind.as_deref().unwrap_or_default())
        }
        StreamableHttpError::UnexpectedServerResponse(text) => {
            format!("answered what nobody understands: {text}")
        }
        other => format!("cannot be spoken to: {other}"),
    }
}

fn innermost(error: &dyn Error) -> String {
    let mut deepest = error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    deepest.to_string()
}
