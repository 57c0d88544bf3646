//! Stages: what happens between a plan and its effect, each one a value that wraps the next.

use kiwi_chain::Plan;
use kiwi_model::{Fault, Isolation};

use serde_json::{Map, Value};
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use crate::agreement::Planned;
use crate::request::Request;

/// A planned call on its way through the stages.
pub struct Call<'a> {
    /// What was asked.
    pub request: &'a Request,
    /// What it means, and what was agreed about it.
    pub planned: &'a Planned,
    /// Parameters, completed with defaults and checked.
    pub params: Map<String, Value>,
}

impl<'a> Call<'a> {
    /// What it means.
    pub fn plan(&self) -> &'a Plan {
        &self.planned.plan
    }

    /// The level it runs at: the stricter of what the chain says and what the caller asks for.
    pub fn isolation(&self) -> Isolation {
        self.plan().isolation().max(self.request.isolation.unwrap_or(Isolation::Trusted))
    }
}

/// What the effect gave.
#[derive(Debug, Clone, Default)]
pub struct Reply {
    /// The result.
    pub result: Value,
    /// What was printed beside it.
    pub stderr: String,
    /// Why it failed, if it did: an effect that fails still has output.
    pub failure: Option<Fault>,
    /// Worth saying.
    pub warnings: Vec<String>,
    /// How long the effect took.
    pub took: Duration,
}

/// The future of a stage.
pub type StageFuture<'a> = Pin<Box<dyn Future<Output = Result<Reply, Fault>> + Send + 'a>>;

/// One step. It may refuse (`Err`), or call `next` and look at what comes back. `Err` means nothing happened.
pub trait Stage: Send + Sync {
    /// Runs the step and, through `next`, everything behind it.
    fn run<'a>(&'a self, call: Call<'a>, next: Next<'a>) -> StageFuture<'a>;
}

/// The stages behind the current one.
#[derive(Clone, Copy)]
pub struct Next<'a> {
    stages: &'a [Box<dyn Stage>],
}

impl<'a> Next<'a> {
    pub(crate) fn new(stages: &'a [Box<dyn Stage>]) -> Self {
        Self { stages }
    }

    /// Goes on with the next stage.
    pub fn run(self, call: Call<'a>) -> StageFuture<'a> {
        if let Some((stage, stages)) = self.stages.split_first() {
            stage.run(call, Next { stages })
        } else {
            let fault = Fault::new(kiwi_model::ErrorKind::Internal, "the call ran past its last stage");
            Box::pin(std::future::ready(Err(fault)))
        }
    }
}
