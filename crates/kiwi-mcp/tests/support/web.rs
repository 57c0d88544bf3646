//! Endpoints for the tests: a small server in this process that answers as a closure says.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Method, Request, Response};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What an endpoint was asked.
pub struct Asked {
    pub method: Method,
    pub path: String,
    pub query: BTreeMap<String, String>,
    pub headers: HeaderMap,
    pub text: String,
    pub message: Value,
}

impl Asked {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// The method of JSON-RPC.
    pub fn what(&self) -> &str {
        self.message["method"].as_str().unwrap_or_default()
    }

    /// Fields of a form.
    pub fn form(&self) -> BTreeMap<String, String> {
        fields(&self.text)
    }
}

fn fields(text: &str) -> BTreeMap<String, String> {
    let decode = |text: &str| text.replace("%3A", ":").replace("%2F", "/").replace('+', " ");
    text.split('&').filter_map(|pair| pair.split_once('=')).map(|(k, v)| (decode(k), decode(v))).collect()
}

pub fn json(status: u16, body: &Value) -> Response<Body> {
    Response::builder()
        .status(status)
        .header("content-type", "application/json")
        .body(Body::from(body.to_string()))
        .unwrap()
}

pub fn status(status: u16) -> Response<Body> {
    Response::builder().status(status).body(Body::empty()).unwrap()
}

/// Events, each a message.
pub fn events(messages: &[Value]) -> Response<Body> {
    let lines =
        messages.iter().flat_map(|message| ["data: ".to_owned(), message.to_string(), "\n\n".to_owned()]);
    let text: String = lines.collect();
    Response::builder().header("content-type", "text/event-stream").body(Body::from(text)).unwrap()
}

pub fn result(asked: &Asked, result: &Value) -> Value {
    serde_json::json!({"jsonrpc": "2.0", "id": asked.message["id"], "result": result})
}

pub fn initialized(asked: &Asked, session: &str) -> Response<Body> {
    let about = serde_json::json!({
        "protocolVersion": "2025-11-25", "serverInfo": {"name": "web", "version": "1"}, "capabilities": {"tools": {}},
    });
    let mut answer = json(200, &result(asked, &about));
    answer.headers_mut().insert("mcp-session-id", session.parse().unwrap());
    answer
}

/// Starts an endpoint on a free port of the loopback; its address.
pub async fn start<F, A>(answer: F) -> String
where
    F: Fn(Asked) -> A + Send + Sync + 'static,
    A: Future<Output = Response<Body>> + Send + 'static,
{
    start_for_a_while(answer).await.0
}

/// The same, with a handle to end it: it takes no new connections then.
pub async fn start_for_a_while<F, A>(answer: F) -> (String, tokio::task::AbortHandle)
where
    F: Fn(Asked) -> A + Send + Sync + 'static,
    A: Future<Output = Response<Body>> + Send + 'static,
{
    let answer = Arc::new(answer);
    let handle = move |request: Request<Body>| {
        let answer = Arc::clone(&answer);
        async move {
            let (parts, body) = request.into_parts();
            let text = String::from_utf8(to_bytes(body, 64 << 20).await.unwrap().to_vec()).unwrap();
            let message = serde_json::from_str(&text).unwrap_or_default();
            let asked = Asked {
                method: parts.method,
                path: parts.uri.path().to_owned(),
                query: fields(parts.uri.query().unwrap_or_default()),
                headers: parts.headers,
                text,
                message,
            };
            answer(asked).await
        }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let task = tokio::spawn(async move { axum::serve(listener, Router::new().fallback(handle)).await });
    (url, task.abort_handle())
}
