//! Speaking with an HTTP endpoint. The protocol library keeps sessions and streams; each exchange is made here, so that
//! nothing a server sends is without bounds and nothing of a result is lost.
#![expect(clippy::disallowed_types, reason = "the client comes from kiwi-exec, judged for this one host")]

use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorData, RequestId, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, InsufficientScopeError, SseError, StreamableHttpClient,
    StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::Sse;
use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;

use super::calls::Calls;
use super::events::Events;
use super::heard::{Form, Heard, Sorted, is_answer, note};
use crate::stream::LONGEST;

const SESSION: &str = "mcp-session-id";
const LAST_EVENT: &str = "last-event-id";
const BOTH: &str = "application/json, text/event-stream";
const EVENTS: &str = "text/event-stream";
const JSON: &str = "application/json";

type Headers = HashMap<HeaderName, HeaderValue>;
type Failed = StreamableHttpError<reqwest::Error>;
type EventStream = Pin<Box<dyn futures_core::Stream<Item = Result<Sse, SseError>> + Send>>;

/// The way to one endpoint.
#[derive(Clone)]
pub(super) struct Wire {
    pub client: Client,
    pub calls: Arc<Calls>,
}

impl StreamableHttpClient for Wire {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        self.post_message_with_max_sse_event_size(
            uri,
            message,
            session_id,
            auth_header,
            custom_headers,
            LONGEST,
        )
        .await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: Headers,
        longest: usize,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        note(&self.calls, &message);
        if is_answer(&message) {
            self.calls.count_answer();
        }
        let body = serde_json::to_vec(&message)?;
        let request =
            self.client.post(uri.as_ref()).header(ACCEPT, BOTH).header(CONTENT_TYPE, JSON).body(body);
        let has_session = session_id.is_some();
        let response = dressed(request, session_id, auth_header, custom_headers).send().await?;
        let status = response.status();
        check_access(&response)?;
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == StatusCode::NOT_FOUND && has_session {
            return Err(StreamableHttpError::SessionExpired);
        }
        let session = response.headers().get(SESSION).and_then(|id| id.to_str().ok()).map(str::to_owned);
        let kind = kind(&response);
        if !status.is_success() {
            return self.refused(&message, has_session, session, response).await;
        }
        let request = match &message {
            ClientJsonRpcMessage::Request(request) => Some(request),
            _ => None,
        };
        if kind.starts_with(EVENTS) {
            let events = Events::new(response, Arc::clone(&self.calls), longest);
            return Ok(StreamableHttpPostResponse::Sse(Box::pin(events), session));
        }
        let Some(request) = request else {
            // Nothing is expected; some servers say something all the same.
            return Ok(StreamableHttpPostResponse::Accepted);
        };
        if !kind.starts_with(JSON) {
            return Err(StreamableHttpError::UnexpectedContentType(Some(kind)));
        }
        let body = read(response).await?;
        let answer = self.answer(&body, &request.id, form(&request.request))?;
        Ok(StreamableHttpPostResponse::Json(answer, session))
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<(), Failed> {
        let request = self.client.delete(uri.as_ref());
        let response = dressed(request, Some(session_id), auth_header, custom_headers).send().await?;
        match response.status() {
            // A server need not be able to, and may have forgotten it already.
            StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_FOUND => Ok(()),
            _ => response.error_for_status().map(|_| ()).map_err(StreamableHttpError::Client),
        }
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<EventStream, Failed> {
        self.get_stream_with_max_sse_event_size(
            uri,
            session_id,
            last_event_id,
            auth_header,
            custom_headers,
            LONGEST,
        )
        .await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: Headers,
        longest: usize,
    ) -> Result<EventStream, Failed> {
        let mut request = self.client.get(uri.as_ref()).header(ACCEPT, EVENTS);
        if let Some(last) = last_event_id {
            request = request.header(LAST_EVENT, last);
        }
        let response = dressed(request, session_id, auth_header, custom_headers).send().await?;
        if response.status() == StatusCode::METHOD_NOT_ALLOWED {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        check_access(&response)?;
        if let Some(error) = overloaded(&response) {
            return Err(error.into());
        }
        let response = response.error_for_status()?;
        let kind = kind(&response);
        if !kind.starts_with(EVENTS) {
            return Err(StreamableHttpError::UnexpectedContentType(Some(kind)));
        }
        Ok(Box::pin(Events::new(response, Arc::clone(&self.calls), longest)))
    }
}

impl Wire {
    /// The answer in a body.
    fn answer(&self, body: &[u8], id: &RequestId, form: Form) -> Result<ServerJsonRpcMessage, Failed> {
        let unexpected = |text: &'static str| StreamableHttpError::UnexpectedServerResponse(text.into());
        let heard: Vec<Heard> = match body.iter().find(|byte| !byte.is_ascii_whitespace()) {
            Some(b'[') => serde_json::from_slice(body)?,
            _ => vec![serde_json::from_slice(body)?],
        };
        let mut answer = None;
        for message in heard {
            let is_answer = message.answers().as_ref() == Some(id);
            if form == Form::Typed
                && let Some(result) = message.result()
            {
                self.calls.keep(id, result.clone());
            }
            match message.sort(&self.calls, |_| form) {
                Sorted::Pass(message) if is_answer => answer = Some(*message),
                // Only an answer can come this way.
                Sorted::Pass(_) | Sorted::Done => {}
            }
        }
        answer.ok_or_else(|| unexpected("the body holds no answer to the request"))
    }

    /// What a status other than success means.
    async fn refused(
        &self,
        message: &ClientJsonRpcMessage,
        has_session: bool,
        session: Option<String>,
        response: Response,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let status = response.status();
        let overloaded = overloaded(&response);
        let is_json = kind(&response).starts_with(JSON);
        if let Some(error) = overloaded
            && (!is_json || status == StatusCode::TOO_MANY_REQUESTS)
        {
            return Err(error.into());
        }
        let body = read(response).await.unwrap_or_default();
        let error = serde_json::from_slice::<ServerJsonRpcMessage>(&body).ok().and_then(|said| match said {
            ServerJsonRpcMessage::Error(error) => Some(error),
            _ => None,
        });
        let is_access = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        if let ClientJsonRpcMessage::Request(request) = message
            && !is_access
        {
            // An older server refuses the question which revisions it speaks, and often cannot say to what it says no.
            let is_probe = matches!(request.request, ClientRequest::DiscoverRequest(_));
            if is_probe && !has_session && status.is_client_error() {
                let text = || format!("HTTP {status}");
                let error =
                    error.map_or_else(|| ErrorData::invalid_request(text(), None), |error| error.error);
                let answer = ServerJsonRpcMessage::error(error, Some(request.id.clone()));
                return Ok(StreamableHttpPostResponse::Json(answer, None));
            }
            if let Some(mut error) = error {
                error.id = Some(error.id.unwrap_or_else(|| request.id.clone()));
                return Ok(StreamableHttpPostResponse::Json(ServerJsonRpcMessage::Error(error), session));
            }
        }
        if status.is_server_error() {
            return Err(HttpStatusError::new(status.as_u16(), None).into());
        }
        let body: String = String::from_utf8_lossy(&body).chars().take(300).collect();
        Err(StreamableHttpError::UnexpectedServerResponse(format!("HTTP {status}: {body}").into()))
    }
}

/// A request with everything that says whose it is.
fn dressed(
    mut request: RequestBuilder,
    session: Option<Arc<str>>,
    token: Option<String>,
    headers: Headers,
) -> RequestBuilder {
    for (name, value) in headers {
        request = request.header(name, value);
    }
    if let Some(session) = session {
        request = request.header(SESSION, session.as_ref());
    }
    match token {
        Some(token) => request.bearer_auth(token),
        None => request,
    }
}

/// Refuses an answer that asks who we are.
fn check_access(response: &Response) -> Result<(), Failed> {
    let status = response.status();
    if !matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        return Ok(());
    }
    let challenge = response.headers().get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok());
    match (status, challenge) {
        (StatusCode::UNAUTHORIZED, challenge) => {
            let challenge = challenge.unwrap_or("Bearer").to_owned();
            Err(StreamableHttpError::AuthRequired(AuthRequiredError::new(challenge)))
        }
        (_, Some(challenge)) => {
            let scope = scope(challenge);
            let error = InsufficientScopeError::new(challenge.to_owned(), scope);
            Err(StreamableHttpError::InsufficientScope(error))
        }
        (_, None) => Ok(()),
    }
}

/// The scope that a challenge names.
fn scope(challenge: &str) -> Option<String> {
    let (_, rest) = challenge.split_once("scope=")?;
    match rest.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"').map(|(scope, _)| scope.to_owned()),
        None => rest.split([',', ' ']).next().map(str::to_owned),
    }
}

fn overloaded(response: &Response) -> Option<HttpStatusError> {
    let status = response.status();
    if status != StatusCode::TOO_MANY_REQUESTS && !status.is_server_error() {
        return None;
    }
    let after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    Some(HttpStatusError::new(status.as_u16(), after.map(str::to_owned)))
}

fn kind(response: &Response) -> String {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.unwrap_or_default().to_ascii_lowercase()
}

/// A whole body, if it is not longer than a message may be.
async fn read(mut response: Response) -> Result<Vec<u8>, Failed> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > LONGEST {
            let text = format!("the answer is longer than {} MiB", LONGEST >> 20);
            return Err(StreamableHttpError::UnexpectedServerResponse(text.into()));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// The form in which the library needs an answer: of a list of tools it reads which headers they ask for.
fn form(request: &ClientRequest) -> Form {
    if request.method() == "tools/list" { Form::Typed } else { Form::of(request) }
}

#[cfg(test)]
mod tests {
    use super::scope;

    #[test]
    fn a_challenge_names_a_scope() {
        assert_eq!(scope(r#"Bearer scope="a b", error="x""#).as_deref(), Some("a b"));
        assert_eq!(scope("Bearer scope=a, error=x").as_deref(), Some("a"));
        assert_eq!(scope("Bearer error=x"), None);
    }
}
