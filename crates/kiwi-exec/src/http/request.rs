//! What is asked for, in Kiwi's words.

use serde_json::Value;
use std::time::Duration;

use super::auth::Auth;
use super::reach::Reach;

/// A request.
#[derive(Debug, Clone)]
pub struct HttpRequest {
    /// `GET`, `POST`, ….
    pub method: String,
    /// The address: `http://…`, `https://…`, or `unix:/path/of/socket:/path`.
    pub url: String,
    /// Headers; a name may come more than once.
    pub headers: Vec<(String, String)>,
    /// Added to the address's own query.
    pub query: Vec<(String, String)>,
    /// What is sent.
    pub body: Body,
    /// Who asks.
    pub auth: Option<Auth>,
    /// Whom it may reach.
    pub reach: Reach,
    /// How long everything together may take: redirects, repetitions and the answer's body included.
    pub timeout: Duration,
    /// How many bytes the answer's body may have.
    pub max_response: u64,
    /// What to do when sent elsewhere.
    pub redirects: Redirects,
    /// How often a request that failed in passing is made again, where making it twice does no harm.
    pub retries: u32,
}

/// What a request sends.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Body {
    /// Nothing.
    #[default]
    None,
    /// A JSON value.
    Json(Value),
    /// Plain text.
    Text(String),
    /// Fields of a form.
    Form(Vec<(String, String)>),
    /// Whatever it is.
    Bytes(Vec<u8>),
}

/// What to do when the answer says that the thing is elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redirects {
    /// Take the answer as it is.
    Keep,
    /// Go there, so many times.
    Follow(usize),
}
