//! A call and its client, from the start to the answer.
//!
//! A request of the client carries its call on; one that speaks, asks back or is given up goes on by itself. What it asks
//! is answered at once where the client can be asked, or becomes the answer to the request, and the call waits until the
//! client comes back.

use kiwi_gate::{Outcome, Pending, Request};
use kiwi_mcp::{Asked, Refusal};
use kiwi_model::{ErrorKind, Fault};
use rmcp::model::{
    ClientResult, CustomRequest, InputRequest, InputRequests, InputRequiredResult, InputResponses,
    LoggingLevel, LoggingMessageNotificationParam, ProgressNotificationParam, ServerRequest,
};
use rmcp::service::{RequestContext, ServiceError};
use rmcp::{ErrorData, RoleServer};
use serde_json::{Value, json};
use std::sync::{Arc, PoisonError};

use crate::client::Client;
use crate::course::Course;
use crate::parked::Running;
use crate::people::{PutOff, asker};
use crate::server::Server;
use crate::voice::{Round, Said, Voice};

/// A request that may have been made before, and asked back.
pub(crate) struct Asking<'a> {
    /// The request's surroundings.
    pub context: &'a RequestContext<RoleServer>,
    /// What it is about: everything that must be the same when it is made again.
    pub about: Value,
    /// Answers that came with it.
    pub responses: Option<InputResponses>,
    /// The name of the call it belongs to.
    pub state: Option<String>,
}

/// How far a request came.
#[allow(clippy::large_enum_variant, reason = "it is moved once")]
pub(crate) enum Step {
    /// To the end.
    Done(Outcome),
    /// To a question.
    Asks(InputRequiredResult),
}

impl Server {
    /// Makes a call, or goes on with one that waits for this request.
    pub(crate) async fn call(
        self: &Arc<Self>,
        client: &Client,
        request: impl FnOnce() -> Result<Request, Fault>,
        mut asking: Asking<'_>,
    ) -> Result<Result<Step, Fault>, ErrorData> {
        let responses = asking.responses.take().unwrap_or_default();
        let running = match asking.state.take() {
            None => match request() {
                Ok(request) => self.start(client, request, asking.about),
                Err(fault) => return Ok(Err(fault)),
            },
            Some(state) => {
                let running = self.parked.take(&state, &asking.about, client.session);
                running.ok_or_else(|| {
                    ErrorData::invalid_params("no call of yours waits under this requestState", None)
                })?
            }
        };
        self.follow(client, running, responses, asking.context).await.map(Ok)
    }

    /// Starts a call on its own.
    fn start(self: &Arc<Self>, client: &Client, mut request: Request, about: Value) -> Running {
        let (voice, ear) = Voice::new(client.capabilities.clone(), client.log_level.map(level_name));
        let voice = Arc::new(voice);
        let put_off = PutOff::default();
        request.relay = Arc::clone(&voice) as Arc<_>;
        request.watch = Arc::clone(&voice) as Arc<_>;
        if client.can_ask_a_person() {
            let by = client.caller.as_str();
            request.on_ask = Some(asker(&self.kernel, &voice, by, &put_off, &request.cancel));
        }
        let cancel = request.cancel.clone();
        let going = self.going.begin(cancel.clone());
        let kernel = Arc::clone(&self.kernel);
        let done = Course::new(async move {
            let mut outcome = kernel.call(request).await;
            if let Some(pending) = put_off.lock().unwrap_or_else(PoisonError::into_inner).take()
                && outcome.error.is_some()
            {
                outcome = waits(outcome, &pending);
            }
            drop(going);
            outcome
        });
        Running { done, ear, round: None, about, session: client.session, cancel }
    }

    /// Listens to a call until it ends, asks back, or its client has had enough.
    async fn follow(
        &self,
        client: &Client,
        mut running: Running,
        responses: InputResponses,
        context: &RequestContext<RoleServer>,
    ) -> Result<Step, ErrorData> {
        if let Some(round) = running.round.take()
            && let Err(round) = answer(round, &responses)
        {
            return Ok(self.park(running, round).await);
        }
        loop {
            tokio::select! {
                biased;
                () = context.ct.cancelled() => {
                    running.cancel.fire();
                    return Err(ErrorData::internal_error("the request was cancelled", None));
                }
                // While the client is spoken to, the call goes on.
                Some(said) = running.ear.said.recv() => {
                    running.done.let_go();
                    Box::pin(pass_on(client, context, said)).await;
                }
                Some(round) = running.ear.rounds.recv() => {
                    running.done.let_go();
                    let round = match answer(round, &responses) {
                        Ok(()) => continue,
                        Err(round) => round,
                    };
                    if client.is_modern {
                        return Ok(self.park(running, round).await);
                    }
                    tokio::select! {
                        () = Box::pin(ask(context, round)) => {}
                        () = context.ct.cancelled() => {}
                    }
                }
                done = &mut running.done => {
                    while let Ok(said) = running.ear.said.try_recv() {
                        Box::pin(pass_on(client, context, said)).await;
                    }
                    let lost = || ErrorData::internal_error("the call was lost", None);
                    return done.map(Step::Done).map_err(|_| lost());
                }
            }
        }
    }

    /// Leaves a call to wait for its client, and tells what it waits for.
    async fn park(&self, mut running: Running, round: Round) -> Step {
        let requests: InputRequests =
            round.questions.iter().filter_map(|(name, asked)| Some((name.clone(), wanted(asked)?))).collect();
        running.round = Some(round);
        match self.parked.park(running) {
            Ok(state) => Step::Asks(InputRequiredResult::new(Some(requests), Some(state))),
            Err(mut running) => {
                // Nobody can be asked: the questions go unanswered, and the call ends as it then ends.
                running.round = None;
                running.ear.rounds.close();
                while running.ear.rounds.try_recv().is_ok() {}
                match (&mut running.done).await {
                    Ok(outcome) => Step::Done(outcome),
                    Err(_) => Step::Asks(InputRequiredResult::new(Some(requests), None)),
                }
            }
        }
    }
}

/// Answers a round from what the client brought along; gives it back where something is missing or is no answer.
fn answer(round: Round, responses: &InputResponses) -> Result<(), Round> {
    let found: Option<Vec<Value>> = round
        .questions
        .iter()
        .map(|(name, asked)| responses.get(name).filter(|answer| is_answer(asked, answer)).cloned())
        .collect();
    let Some(found) = found else { return Err(round) };
    // A call that has ended meanwhile needs no answer.
    let _ = round.answers.send(found.into_iter().map(Ok).collect());
    Ok(())
}

/// Whether a value has the form of an answer to such a question.
fn is_answer(asked: &Asked, answer: &Value) -> bool {
    use kiwi_mcp::Capability::{Elicitation, Roots, Sampling};
    match asked.capability {
        Elicitation => match answer.get("action").and_then(Value::as_str) {
            Some("accept") => answer.get("content").is_none_or(Value::is_object),
            Some("decline" | "cancel") => true,
            _ => false,
        },
        Sampling => answer.get("role").is_some() && answer.get("content").is_some(),
        Roots => answer.get("roots").is_some_and(Value::is_array),
    }
}

/// A question as part of an answer.
fn wanted(asked: &Asked) -> Option<InputRequest> {
    serde_json::from_value(json!({"method": asked.capability.method(), "params": asked.params})).ok()
}

/// Asks a client of an older revision, one question after the other.
async fn ask(context: &RequestContext<RoleServer>, round: Round) {
    let mut answers = Vec::new();
    for (_, asked) in &round.questions {
        let params = Some(asked.params.clone()).filter(|params| !params.is_null());
        let request = ServerRequest::CustomRequest(CustomRequest::new(asked.capability.method(), params));
        answers.push(match context.peer.send_request(request).await {
            Ok(result) => answered(result),
            Err(error) => Err(refusal(error)),
        });
    }
    let _ = round.answers.send(answers);
}

fn answered(result: ClientResult) -> Result<Value, Refusal> {
    serde_json::to_value(result).map_err(|error| Refusal {
        code: -32603,
        message: format!("the answer cannot be read: {error}"),
        data: None,
    })
}

fn refusal(error: ServiceError) -> Refusal {
    match error {
        ServiceError::McpError(error) => {
            Refusal { code: error.code.0, message: error.message.into_owned(), data: error.data }
        }
        error => Refusal { code: -32603, message: error.to_string(), data: None },
    }
}

/// Tells a client what its call says, if it wants to hear it.
async fn pass_on(client: &Client, context: &RequestContext<RoleServer>, said: Said) {
    match said {
        Said::Progress(mut progress) => {
            let Some(token) = context.meta.get_progress_token() else { return };
            if let Value::Object(progress) = &mut progress {
                progress.insert("progressToken".into(), json!(token));
            }
            if let Ok(param) = serde_json::from_value::<ProgressNotificationParam>(progress) {
                let _ = context.peer.notify_progress(param).await;
            }
        }
        Said::Log(message) => {
            let Ok(param) = serde_json::from_value::<LoggingMessageNotificationParam>(message) else {
                return;
            };
            if client.log_level.is_some_and(|least| weight(param.level) >= weight(least)) {
                let _ = context.peer.notify_logging_message(param).await;
            }
        }
    }
}

/// A level of logging, as the protocol spells it.
fn level_name(level: LoggingLevel) -> &'static str {
    match level {
        LoggingLevel::Debug => "debug",
        LoggingLevel::Info => "info",
        LoggingLevel::Notice => "notice",
        LoggingLevel::Warning => "warning",
        LoggingLevel::Error => "error",
        LoggingLevel::Critical => "critical",
        LoggingLevel::Alert => "alert",
        LoggingLevel::Emergency => "emergency",
    }
}

/// How much a level of logging weighs.
pub(crate) fn weight(level: LoggingLevel) -> u8 {
    match level {
        LoggingLevel::Debug => 0,
        LoggingLevel::Info => 1,
        LoggingLevel::Notice => 2,
        LoggingLevel::Warning => 3,
        LoggingLevel::Error => 4,
        LoggingLevel::Critical => 5,
        LoggingLevel::Alert => 6,
        LoggingLevel::Emergency => 7,
    }
}

/// A call whose question was put off: it waits in the queue, by its id.
fn waits(outcome: Outcome, pending: &Pending) -> Outcome {
    let id = &pending.id;
    let fault = Fault::new(ErrorKind::ApprovalRequired, format!("a person has to approve this call: `{id}`"))
        .with_hint(format!("`kiwi approve {id}`, then make the same call again"))
        .with_details(json!({"id": id, "expires_at": format!("{:.0}", pending.expires_at)}));
    Outcome { status: fault.kind.status(), error: Some(fault), ..outcome }
}
