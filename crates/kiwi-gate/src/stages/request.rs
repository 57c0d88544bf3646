//! Making an HTTP request.

use kiwi_chain::{HttpBody, HttpCall};
use kiwi_exec::{Body, HttpRequest, Redirects};
use kiwi_model::{ErrorKind, Fault};
use serde_json::json;

use super::dispatch::{Dispatch, failed, refused};
use crate::stage::Reply;

/// As many as browsers follow before they call it a circle.
const MAX_REDIRECTS: usize = 10;

impl Dispatch {
    pub(super) async fn request(&self, call: HttpCall) -> Reply {
        let request = HttpRequest {
            method: call.method,
            url: call.url,
            headers: call.headers.into_iter().collect(),
            query: call.query,
            body: match call.body {
                HttpBody::Empty => Body::None,
                HttpBody::Json(value) => Body::Json(value),
                HttpBody::Text(text) => Body::Text(text),
                HttpBody::Form(fields) => Body::Form(fields),
            },
            timeout: self.timeout(call.timeout),
            max_response: self.output_cap(call.max_response),
            redirects: if call.follow_redirects { Redirects::Follow(MAX_REDIRECTS) } else { Redirects::Keep },
        };
        let answer = match self.http.send(request).await {
            Ok(answer) => answer.body.into_value(),
            Err(error) => return failed(&error),
        };
        match call.response {
            None => Reply { result: answer, ..Reply::default() },
            Some(pointer) => match answer.pointer(&pointer) {
                Some(part) => Reply { result: part.clone(), ..Reply::default() },
                None => refused(
                    Fault::new(ErrorKind::ToolFailed, format!("the answer has nothing at `{pointer}`"))
                        .with_hint("`config.response` is a JSON pointer into the answer's body")
                        .with_details(json!({"answer": answer})),
                ),
            },
        }
    }
}
