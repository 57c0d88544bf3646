//! An answer that comes soon goes out in one piece.
//!
//! In a session of an older revision every request is answered by a stream of events, and the protocol library begins it
//! before the call has begun: its client is woken once for nothing and once for the answer. Here the beginning waits a
//! moment. If the answer is what is said first, it is the answer, whole; a call that takes longer, says something or asks
//! something is answered by its stream, of which nothing is lost.

use axum::body::{Body, Bytes, HttpBody};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, Response};
use hyper::body::{Frame, SizeHint};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

/// Who has said nothing by then is heard piece by piece.
const SOON: Duration = Duration::from_millis(50);

/// The same answer, in one piece if it is one and comes soon.
pub async fn in_one_piece(response: Response<Body>) -> Response<Body> {
    gathered(response, SOON).await
}

async fn gathered(response: Response<Body>, patience: Duration) -> Response<Body> {
    let is_stream = |kind: &HeaderValue| kind.as_bytes().starts_with(b"text/event-stream");
    if !response.headers().get(CONTENT_TYPE).is_some_and(is_stream) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let mut begun = Begun { said: VecDeque::new(), body, is_over: false };
    match tokio::time::timeout(patience, begun.answer()).await {
        Ok(Some(answer)) => {
            parts.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            Response::from_parts(parts, Body::from(answer))
        }
        Ok(None) | Err(_) => Response::from_parts(parts, Body::new(begun)),
    }
}

/// A stream of which something was heard already.
struct Begun {
    said: VecDeque<Result<Frame<Bytes>, axum::Error>>,
    body: Body,
    is_over: bool,
}

impl Begun {
    /// The answer, if nothing is said before it. What is heard here is said again.
    async fn answer(&mut self) -> Option<Bytes> {
        loop {
            let Some(frame) = poll_fn(|context| Pin::new(&mut self.body).poll_frame(context)).await else {
                self.is_over = true;
                return None;
            };
            let heard = frame.as_ref().ok().and_then(Frame::data_ref).map_or(Heard::More, hear);
            self.said.push_back(frame);
            match heard {
                Heard::Nothing => {}
                Heard::Answer(answer) => return Some(answer),
                Heard::More => return None,
            }
        }
    }
}

impl HttpBody for Begun {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        match self.said.pop_front() {
            Some(frame) => Poll::Ready(Some(frame)),
            None if self.is_over => Poll::Ready(None),
            None => Pin::new(&mut self.body).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.said.is_empty() && (self.is_over || self.body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

/// What a piece of a stream is.
enum Heard {
    /// Where the stream is, or that it is still there.
    Nothing,
    /// The answer to the request.
    Answer(Bytes),
    /// Anything else.
    More,
}

fn hear(piece: &Bytes) -> Heard {
    let Some(lines) = piece.strip_suffix(b"\n\n") else { return Heard::More };
    let mut message: &[u8] = b"";
    for line in lines.split(|byte| *byte == b'\n') {
        match line.strip_prefix(b"data:") {
            Some(data) if message.is_empty() => message = data.trim_ascii(),
            None if [&b"id:"[..], b"retry:", b":"].iter().any(|field| line.starts_with(field)) => {}
            _ => return Heard::More,
        }
    }
    if message.is_empty() {
        return Heard::Nothing;
    }
    match serde_json::from_slice(message) {
        Ok(Form { method: None, result, error }) if result.is_some() || error.is_some() => {
            Heard::Answer(piece.slice_ref(message))
        }
        _ => Heard::More,
    }
}

/// What tells an answer from everything else.
#[derive(Deserialize)]
struct Form {
    method: Option<IgnoredAny>,
    result: Option<IgnoredAny>,
    error: Option<IgnoredAny>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::to_bytes;
    use tokio::sync::mpsc;

    /// Whoever waits so long has not understood.
    const EVER: Duration = Duration::from_hours(1);
    const BEGINNING: &str = "data: \nid: 0/7\nretry: 3000\n\n";
    const ANSWER: &str = "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"n\":1}}\nid: 1/7\n\n";

    /// Says what it is sent.
    struct Spoken(mpsc::UnboundedReceiver<Result<String, std::io::Error>>);

    impl HttpBody for Spoken {
        type Data = Bytes;
        type Error = std::io::Error;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
            self.0.poll_recv(context).map(|said| said.map(|said| said.map(|said| Frame::data(said.into()))))
        }
    }

    type Speaker = mpsc::UnboundedSender<Result<String, std::io::Error>>;

    fn stream(said: &[&str]) -> (Speaker, Response<Body>) {
        let (speaker, heard) = mpsc::unbounded_channel();
        for said in said {
            speaker.send(Ok((*said).to_owned())).expect("heard");
        }
        let mut response = Response::new(Body::new(Spoken(heard)));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        response.headers_mut().insert("mcp-session-id", HeaderValue::from_static("7"));
        (speaker, response)
    }

    fn kind(response: &Response<Body>) -> &str {
        response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default()
    }

    async fn text(response: Response<Body>) -> String {
        let bytes = to_bytes(response.into_body(), usize::MAX).await.expect("a body");
        String::from_utf8(bytes.into()).expect("text")
    }

    #[tokio::test]
    async fn an_answer_that_comes_first_is_given_whole() {
        for said in [&[BEGINNING, ANSWER][..], &[ANSWER], &[": \n\n", BEGINNING, ANSWER]] {
            // Nobody waits for an end after it.
            let (_speaker, response) = stream(said);
            let response = gathered(response, EVER).await;
            assert_eq!(
                (kind(&response), &response.headers()["mcp-session-id"]),
                ("application/json", &"7".parse().unwrap())
            );
            assert!(response.body().size_hint().exact().is_some());
            assert_eq!(text(response).await, r#"{"jsonrpc":"2.0","id":1,"result":{"n":1}}"#);
        }
        let refusal = "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-1,\"message\":\"no\"}}\n\n";
        assert_eq!(kind(&gathered(stream(&[refusal]).1, EVER).await), "application/json");
    }

    #[tokio::test]
    async fn whatever_else_is_said_first_is_said_at_once_and_in_its_order() {
        let progress = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{}}\n\n";
        let question = "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"roots/list\"}\n\n";
        let (several, half) = ("data: {\ndata: }\n\n", "data: {\"result\":1}\n");
        for first in [progress, question, several, half, "event: x\ndata: {\"result\":1}\n\n", "data: no\n\n"]
        {
            let (speaker, response) = stream(&[BEGINNING, first, ANSWER]);
            let response = gathered(response, EVER).await;
            assert_eq!(kind(&response), "text/event-stream");
            drop(speaker);
            assert_eq!(text(response).await, format!("{BEGINNING}{first}{ANSWER}"));
        }
    }

    #[tokio::test]
    async fn who_takes_longer_is_heard_piece_by_piece() {
        for first in [&[][..], &[BEGINNING]] {
            let (speaker, response) = stream(first);
            let response = gathered(response, Duration::from_millis(1)).await;
            assert_eq!(kind(&response), "text/event-stream");
            speaker.send(Ok(ANSWER.to_owned())).expect("heard");
            drop(speaker);
            assert_eq!(text(response).await, format!("{}{ANSWER}", first.concat()));
        }
    }

    #[tokio::test]
    async fn an_end_without_an_answer_and_a_failure_are_passed_on() {
        let (speaker, response) = stream(&[BEGINNING]);
        drop(speaker);
        let response = gathered(response, EVER).await;
        assert_eq!(kind(&response), "text/event-stream");
        assert_eq!(text(response).await, BEGINNING);
        let (speaker, response) = stream(&[BEGINNING]);
        speaker.send(Err(std::io::Error::other("broken"))).expect("heard");
        let response = gathered(response, EVER).await;
        assert!(to_bytes(response.into_body(), usize::MAX).await.is_err());
        let plain = Response::new(Body::from(ANSWER));
        assert_eq!(text(gathered(plain, EVER).await).await, ANSWER);
    }
}
