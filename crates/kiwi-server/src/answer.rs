//! What a client is told: structured content for programs, a short text for models, and what went wrong with what to do.

use kiwi_gate::{Outcome, Session};
use kiwi_model::Fault;
use rmcp::ErrorData;
use rmcp::model::{CallToolResult, ContentBlock, ErrorCode};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::outputs::{Outputs, PAGE};

/// As much of a result as its text shows.
const MOST_OF_A_TEXT: usize = 4 << 10;

/// A plain answer.
pub(crate) fn told(structured: Value, text: impl Into<String>) -> CallToolResult {
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    result.structured_content = Some(structured);
    result
}

/// A failure the caller can act on.
pub(crate) fn failed(fault: &Fault) -> CallToolResult {
    refused(fault, Map::new())
}

fn refused(fault: &Fault, mut structured: Map<String, Value>) -> CallToolResult {
    structured.insert("status".into(), json!(fault.kind.status()));
    structured.insert("kind".into(), json!(fault.kind));
    structured.insert("message".into(), json!(fault.message));
    structured.insert("hint".into(), json!(fault.hint));
    structured.insert("details".into(), fault.details.clone());
    let mut text = format!("{}: {}", fault.kind.as_str(), fault.message);
    if let Some(hint) = &fault.hint {
        text.push_str("\nhint: ");
        text.push_str(hint);
    }
    let mut result = CallToolResult::error(vec![ContentBlock::text(text)]);
    result.structured_content = Some(Value::Object(structured));
    result
}

/// What a call through `execute` came to. Its result is cut where it is long.
pub(crate) fn executed(outputs: &Outputs, session: Session, outcome: Outcome) -> CallToolResult {
    let content = outcome.content.as_ref().and_then(blocks);
    let Outcome { status, tool, result, stderr, error, warnings, loop_notice, chain_hash, timing_us, .. } =
        outcome;
    let mut structured = Map::new();
    structured.insert("status".into(), json!(status));
    structured.insert("tool".into(), json!(tool));
    structured.insert("chain_hash".into(), json!(chain_hash));
    let mut text = shown(&result);
    if text.len() > PAGE {
        let cut = outputs.keep(session, text);
        structured.insert("result".into(), Value::String(cut.page.clone()));
        structured.insert("output".into(), cut.rest);
        text = cut.page;
    } else {
        structured.insert("result".into(), result);
    }
    if !stderr.is_empty() {
        let (stderr, rest) = if stderr.len() > PAGE {
            let cut = outputs.keep(session, stderr);
            (cut.page, Some(cut.rest))
        } else {
            (stderr, None)
        };
        structured.insert("stderr".into(), Value::String(stderr));
        rest.map(|rest| structured.insert("stderr_output".into(), rest));
    }
    if !warnings.is_empty() {
        structured.insert("warnings".into(), json!(warnings));
    }
    loop_notice.map(|notice| structured.insert("loop".into(), notice));
    structured.insert("session".into(), json!(session.to_string()));
    structured.insert("timing_us".into(), json!(timing_us));
    if let Some(fault) = error {
        return refused(&fault, structured);
    }
    let text = brief(&text, structured.get("output"));
    let mut answer = told(Value::Object(structured), text);
    if let Some(content) = content {
        answer.content = content;
    }
    answer
}

/// What a call under the tool's own name came to. An upstream server's answer is passed on as it is.
pub(crate) fn native(mut outcome: Outcome) -> Result<CallToolResult, ErrorData> {
    if let Some(error) = outcome.error.as_ref().and_then(protocol_error) {
        return Err(error);
    }
    if let Some(content) = outcome.content.take()
        && let Ok(result) = whole::<CallToolResult>(content)
    {
        return Ok(result);
    }
    if let Some(fault) = &outcome.error {
        let mut structured = Map::new();
        structured.insert("result".into(), outcome.result.clone());
        structured.insert("stderr".into(), json!(outcome.stderr));
        let mut result = refused(fault, structured);
        let said = shown(&outcome.result);
        if !said.trim().is_empty() {
            result.content.insert(0, ContentBlock::text(said));
        }
        return Ok(result);
    }
    let mut result = CallToolResult::success(vec![ContentBlock::text(shown(&outcome.result))]);
    if outcome.result.is_object() {
        result.structured_content = Some(outcome.result);
    }
    Ok(result)
}

/// An upstream server's own refusal, in its own words: its code is part of the protocol.
pub(crate) fn protocol_error(fault: &Fault) -> Option<ErrorData> {
    fault.details.get("server")?;
    let code = i32::try_from(fault.details.get("code")?.as_i64()?).ok()?;
    let data = fault.details.get("data").cloned().filter(|data| !data.is_null());
    Some(ErrorData::new(ErrorCode(code), fault.message.clone(), data))
}

/// A failure of a request that is no call of a tool.
pub(crate) fn error(fault: &Fault) -> ErrorData {
    use kiwi_model::ErrorKind;
    if let Some(error) = protocol_error(fault) {
        return error;
    }
    let data = Some(json!({"kind": fault.kind, "hint": fault.hint, "details": fault.details}));
    match fault.kind {
        ErrorKind::InvalidParams | ErrorKind::NotFound | ErrorKind::Usage | ErrorKind::Ambiguous => {
            ErrorData::invalid_params(fault.message.clone(), data)
        }
        ErrorKind::Internal => ErrorData::internal_error(fault.message.clone(), data),
        _ => ErrorData::invalid_request(fault.message.clone(), data),
    }
}

/// A result made of JSON, which says that it is whole; the protocol library leaves that out where a client is older.
pub(crate) fn whole<T: DeserializeOwned>(mut value: Value) -> Result<T, serde_json::Error> {
    if let Value::Object(map) = &mut value {
        map.insert("resultType".into(), "complete".into());
    }
    serde_json::from_value(value)
}

/// The content of an upstream server's answer.
fn blocks(answer: &Value) -> Option<Vec<ContentBlock>> {
    serde_json::from_value(answer.get("content")?.clone()).ok()
}

fn shown(result: &Value) -> String {
    match result {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        value => serde_json::to_string(value).unwrap_or_default(),
    }
}

/// The beginning of a text, and where the rest is.
fn brief(text: &str, output: Option<&Value>) -> String {
    let mut end = MOST_OF_A_TEXT.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let mut brief = text.get(..end).unwrap_or_default().to_owned();
    if let Some(next) = output.and_then(|output| output.get("handle")).and_then(Value::as_str) {
        brief.push_str("\n… load(item_type=\"output\", item_id=\"");
        brief.push_str(next);
        brief.push_str("\") pages through all of it");
    } else if end < text.len() {
        brief.push_str("\n… the structured content has all of it");
    }
    brief
}
