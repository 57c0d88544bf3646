//! Stages: what happens between a plan and its effect, each one a value that wraps the next.

use kiwi_chain::Plan;
use kiwi_model::{Fault, Isolation};
use kiwi_space::Profile;

use serde_json::{Map, Value};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::admission::Admitted;
use crate::agreement::Planned;
use crate::permission::PermissionContext;
use crate::request::Request;

/// A planned call on its way through the stages.
pub struct Call<'a> {
    /// What was asked.
    pub request: &'a Request,
    /// What it means, and what was agreed about it.
    pub planned: &'a Planned,
    /// Parameters, completed with defaults and checked.
    pub params: Map<String, Value>,
    /// The caller's profile.
    pub profile: &'a Profile,
    /// What the gate said, once it has.
    pub(crate) admitted: Option<Admitted>,
    /// What was written down about it so far.
    pub(crate) trail: &'a Trail,
}

/// Whether a call has left a record.
#[derive(Debug, Default)]
pub(crate) struct Trail(AtomicBool);

impl Trail {
    /// It has.
    pub fn note(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it has.
    pub fn has_record(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl<'a> Call<'a> {
    /// What it means.
    pub fn plan(&self) -> &'a Plan {
        &self.planned.plan
    }

    /// What its caller may touch, to be asked again where it is about to happen.
    pub(crate) fn context(&self) -> Arc<PermissionContext> {
        self.admitted.as_ref().map(|admitted| Arc::clone(&admitted.context)).unwrap_or_default()
    }

    /// The level it runs at: the strictest of what the chain says, what the caller asks for and what its profile
    /// demands.
    pub fn isolation(&self) -> Isolation {
        let wanted = self.request.isolation.unwrap_or(Isolation::Trusted);
        self.plan().isolation().max(wanted).max(self.profile.isolation)
    }
}

/// What the effect gave.
#[derive(Debug, Clone, Default)]
pub struct Reply {
    /// The result.
    pub result: Value,
    /// An upstream server's answer as it gave it, where one was asked.
    pub content: Option<Value>,
    /// What was printed beside it.
    pub stderr: String,
    /// Why it failed, if it did: an effect that fails still has output.
    pub failure: Option<Fault>,
    /// Worth saying.
    pub warnings: Vec<String>,
    /// That the session goes round in circles, where it does.
    pub loop_notice: Option<Value>,
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

impl<S: Stage> Stage for std::sync::Arc<S> {
    fn run<'a>(&'a self, call: Call<'a>, next: Next<'a>) -> StageFuture<'a> {
        self.as_ref().run(call, next)
    }
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
