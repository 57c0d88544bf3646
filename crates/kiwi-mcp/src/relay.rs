//! The caller's side of a call: what a server says and asks while it works.

use serde_json::Value;
use std::future::Future;
use std::pin::Pin;

/// What a server may ask of whoever called it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Capability {
    /// To have a model write something (`sampling/createMessage`).
    Sampling,
    /// To have a person answer something (`elicitation/create`).
    Elicitation,
    /// To know which folders are worked in (`roots/list`).
    Roots,
}

impl Capability {
    /// The method by which it is asked for.
    pub const fn method(self) -> &'static str {
        match self {
            Self::Sampling => "sampling/createMessage",
            Self::Elicitation => "elicitation/create",
            Self::Roots => "roots/list",
        }
    }
}

/// One question of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// The name the server gave it, where it gave it one: clients of the newest revision see and answer by it.
    pub name: Option<String>,
    /// What kind of question.
    pub capability: Capability,
    /// Its parameters, as the protocol has them.
    pub params: Value,
}

/// Why a question was not answered.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// A code of JSON-RPC.
    pub code: i32,
    /// Why.
    pub message: String,
    /// What else there is to say.
    pub data: Option<Value>,
}

/// The future of an answer.
pub type RelayFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What a caller does with what a server says and asks while it works.
pub trait Relay: Send + Sync {
    /// What the caller can answer; nothing else is offered to the server on its behalf.
    fn capabilities(&self) -> Vec<Capability>;
    /// The least weighty line of a log that the caller wants to hear of (`debug` … `emergency`); none, if none.
    fn log_level(&self) -> Option<String> {
        None
    }
    /// How far it is: `{progress, total?, message?}`.
    fn progress(&self, progress: Value);
    /// A line of its log: `{level, logger?, data}`.
    fn log(&self, message: Value);
    /// Questions that are to be answered together, in their order.
    fn ask(&self, questions: Vec<Asked>) -> RelayFuture<'_, Vec<Result<Value, Refusal>>>;
}

/// A caller that hears nothing and answers nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Relay for Silent {
    fn capabilities(&self) -> Vec<Capability> {
        Vec::new()
    }
    fn progress(&self, _: Value) {}
    fn log(&self, _: Value) {}
    fn ask(&self, questions: Vec<Asked>) -> RelayFuture<'_, Vec<Result<Value, Refusal>>> {
        Box::pin(std::future::ready(questions.iter().map(unanswerable).collect()))
    }
}

/// Asks a caller, unless something is asked that it never said it could answer: then it hears nothing of it.
pub(crate) async fn put(relay: &dyn Relay, questions: Vec<Asked>) -> Vec<Result<Value, Refusal>> {
    let can = relay.capabilities();
    if questions.iter().all(|asked| can.contains(&asked.capability)) {
        return relay.ask(questions).await;
    }
    questions.iter().map(unanswerable).collect()
}

fn unanswerable(asked: &Asked) -> Result<Value, Refusal> {
    let message = format!("nobody here can answer `{}`", asked.capability.method());
    Err(Refusal { code: -32601, message, data: None })
}
