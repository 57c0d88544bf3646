//! Tools that ask back: in the answer where the client knows that, else by a request of their own.

use kiwi_model::Digest;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest,
    GetPromptRequestParams, GetPromptResponse, GetPromptResult, InputRequests, InputRequiredResult,
    InputResponses, ProtocolVersion, ServerRequest,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Map, Value, json};

use crate::{made, result};

/// What is asked at once, by name.
type Round = Vec<(&'static str, Value)>;

fn person(message: &str, properties: Value, required: Value) -> Value {
    json!({"method": "elicitation/create", "params": {"mode": "form", "message": message,
        "requestedSchema": {"type": "object", "properties": properties, "required": required}}})
}

fn model(text: &str, tokens: u32) -> Value {
    json!({"method": "sampling/createMessage", "params": {"maxTokens": tokens,
        "messages": [{"role": "user", "content": {"type": "text", "text": text}}]}})
}

fn name_of_a_person() -> Value {
    person("What is your name?", json!({"name": {"type": "string"}}), json!(["name"]))
}

fn confirm() -> Value {
    person("Please confirm", json!({"ok": {"type": "boolean"}}), json!(["ok"]))
}

fn roots() -> Value {
    json!({"method": "roots/list", "params": {}})
}

/// What a tool asks, round by round.
fn rounds(name: &str, arguments: &Map<String, Value>) -> Option<Vec<Round>> {
    let given = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or_default();
    Some(match name {
        "test_sampling" => vec![vec![("answer", model(given("prompt"), 100))]],
        "test_elicitation" => {
            let fields = json!({"username": {"type": "string", "description": "User's response"},
                "email": {"type": "string", "description": "User's email address"}});
            vec![vec![("answer", person(given("message"), fields, json!(["username", "email"])))]]
        }
        "test_elicitation_sep1034_defaults" => {
            let fields = json!({
                "name": {"type": "string", "default": "John Doe"}, "age": {"type": "integer", "default": 30},
                "score": {"type": "number", "default": 95.5},
                "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
                "verified": {"type": "boolean", "default": true}});
            vec![vec![("answer", person("Please check these values", fields, json!([])))]]
        }
        "test_elicitation_sep1330_enums" => {
            let titled = |word: &str| {
                json!([{"const": "value1", "title": format!("First {word}")},
                    {"const": "value2", "title": format!("Second {word}")},
                    {"const": "value3", "title": format!("Third {word}")}])
            };
            let plain = json!(["option1", "option2", "option3"]);
            let fields = json!({
                "untitledSingle": {"type": "string", "enum": plain},
                "titledSingle": {"type": "string", "oneOf": titled("Option")},
                "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"],
                    "enumNames": ["Option One", "Option Two", "Option Three"]},
                "untitledMulti": {"type": "array", "items": {"type": "string", "enum": plain}},
                "titledMulti": {"type": "array", "items": {"anyOf": titled("Choice")}}});
            vec![vec![("answer", person("Please choose", fields, json!([])))]]
        }
        "test_input_required_result_elicitation" | "test_streaming_elicitation" => {
            vec![vec![("user_name", name_of_a_person())]]
        }
        "test_input_required_result_sampling" => {
            vec![vec![("capital_question", model("What is the capital of France?", 100))]]
        }
        "test_input_required_result_list_roots" => vec![vec![("client_roots", roots())]],
        "test_input_required_result_request_state" | "test_input_required_result_tampered_state" => {
            vec![vec![("confirm", confirm())]]
        }
        "test_input_required_result_multiple_inputs" | "test_input_required_result_capabilities" => {
            vec![vec![
                ("user_name", name_of_a_person()),
                ("greeting", model("Generate a greeting", 50)),
                ("client_roots", roots()),
            ]]
        }
        "test_input_required_result_multi_round" => vec![
            vec![(
                "step1",
                person("Step 1: What is your name?", json!({"name": {"type": "string"}}), json!(["name"])),
            )],
            vec![(
                "step2",
                person(
                    "Step 2: What is your favorite color?",
                    json!({"color": {"type": "string"}}),
                    json!(["color"]),
                ),
            )],
        ],
        "test_input_required_result_prompt" => {
            let fields = json!({"context": {"type": "string"}});
            vec![vec![(
                "user_context",
                person("What context should the prompt use?", fields, json!(["context"])),
            )]]
        }
        _ => return None,
    })
}

/// How far a request came.
enum Step {
    Asks(InputRequiredResult),
    Done(Vec<Value>),
}

/// The state that only this program writes: which round comes, and a seal.
fn state(name: &str, round: usize) -> String {
    let seal = Digest::of(format!("upstream {} {name} {round}", std::process::id()).as_bytes());
    format!("{round}.{}", seal.hex())
}

async fn go_on(
    name: &str,
    mut rounds: Vec<Round>,
    responses: Option<InputResponses>,
    given: Option<String>,
    context: &RequestContext<RoleServer>,
) -> Result<Step, ErrorData> {
    let declared = context.client_capabilities().unwrap_or_default();
    let can = |request: &Value| match request["method"].as_str() {
        Some("sampling/createMessage") => declared.sampling.is_some(),
        Some("elicitation/create") => declared.elicitation.is_some(),
        _ => declared.roots.is_some(),
    };
    if name == "test_input_required_result_capabilities" {
        for round in &mut rounds {
            round.retain(|(_, request)| can(request));
        }
    }
    if let Some((_, request)) = rounds.iter().flatten().find(|(_, request)| !can(request)) {
        let message = format!("the client cannot answer {}", request["method"]);
        return Err(ErrorData::invalid_request(message, None));
    }
    let is_modern = context
        .protocol_version()
        .is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str());
    if !is_modern {
        let mut answers = Vec::new();
        for (_, request) in rounds.iter().flatten() {
            let method = request["method"].as_str().unwrap_or_default();
            let asked =
                ServerRequest::CustomRequest(CustomRequest::new(method, Some(request["params"].clone())));
            let answer = context.peer.send_request(asked).await;
            let answer = answer.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
            answers.push(serde_json::to_value(answer).unwrap_or_default());
        }
        return Ok(Step::Done(answers));
    }
    let at = match given {
        None => 0,
        Some(given) => (0..rounds.len())
            .find(|round| state(name, *round) == given)
            .ok_or_else(|| ErrorData::invalid_params("the request state was not written here", None))?,
    };
    let responses = responses.unwrap_or_default();
    let is_answered = |(key, _): &(&str, Value)| responses.get(*key).is_some_and(Value::is_object);
    let now = if rounds[at].iter().all(is_answered) && !responses.is_empty() { at + 1 } else { at };
    let Some(round) = rounds.get(now) else {
        return Ok(Step::Done(responses.into_values().collect()));
    };
    let requests: InputRequests =
        round.iter().map(|(key, request)| ((*key).to_owned(), made(request.clone()))).collect();
    Ok(Step::Asks(InputRequiredResult::new(Some(requests), Some(state(name, now)))))
}

/// Calls a tool that asks.
pub async fn call(
    request: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let arguments = request.arguments.unwrap_or_default();
    let Some(rounds) = rounds(&request.name, &arguments) else {
        return Err(ErrorData::invalid_params(format!("there is no tool `{}`", request.name), None));
    };
    let step = go_on(&request.name, rounds, request.input_responses, request.request_state, context).await;
    Ok(match step? {
        Step::Asks(input) => input.into(),
        Step::Done(answers) => {
            let text = match (request.name.as_ref(), answers.first()) {
                ("test_sampling", Some(answer)) => format!("LLM response: {}", answer["content"]["text"]),
                ("test_input_required_result_elicitation", Some(answer)) => {
                    format!("Hello, {}!", answer["content"]["name"].as_str().unwrap_or_default())
                }
                ("test_input_required_result_request_state", _) => "state-ok".to_owned(),
                ("test_elicitation", Some(answer)) => format!("User response: {answer}"),
                (_, Some(answer)) if answer.get("action").is_some() => {
                    format!(
                        "Elicitation completed: action={}, content={}",
                        answer["action"], answer["content"]
                    )
                }
                _ => format!("{answers:?}"),
            };
            CallToolResult::success(vec![ContentBlock::text(text)]).into()
        }
    })
}

/// Gives the prompt that asks.
pub async fn prompt(
    request: GetPromptRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<GetPromptResponse, ErrorData> {
    let rounds = rounds(&request.name, &Map::new()).unwrap_or_default();
    let step = go_on(&request.name, rounds, request.input_responses, request.request_state, context).await;
    Ok(match step? {
        Step::Asks(input) => input.into(),
        Step::Done(answers) => {
            let text = format!("With this context: {answers:?}");
            result::<GetPromptResult>(json!({"messages":
                [{"role": "user", "content": {"type": "text", "text": text}}]}))
            .into()
        }
    })
}
