//! Requests against small servers on this machine.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a test may stop at the first surprise, and a server has to read from somewhere"
)]

mod auth;
mod guard;
mod oauth;
mod plain;
mod retry;
mod secure;
mod server;
#[path = "../support/mod.rs"]
mod support;
mod unix;

use kiwi_exec::{ExecError, HttpClient, HttpRequest, HttpResponse};
use kiwi_model::Explain;
use support::block_on;

fn send(request: HttpRequest) -> Result<HttpResponse, ExecError> {
    block_on(HttpClient::new().send(request))
}

/// Everything that anybody may ever see of an error.
fn all_texts(error: &ExecError) -> String {
    format!("{error} {error:?} {:?} {} {:?}", error.hint(), error.details(), error.fault())
}
