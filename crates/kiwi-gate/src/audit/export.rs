//! The log in the forms that others read.

use kiwi_model::Digest;
use serde_json::{Value, json};

use super::calls::{self, AuditCall, CallState};
use super::read::AuditLine;

/// What kind of statement an exported call makes.
const PREDICATE: &str = "urn:kiwi:predicate:call:v1";

/// A form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportFormat {
    /// The lines as they are.
    Jsonl,
    /// A table of the lines.
    Csv,
    /// One OTLP trace request: a span for each call.
    Otel,
    /// One in-toto statement for each call, a line each.
    InToto,
}

impl ExportFormat {
    /// The lines in this form.
    pub fn write(self, lines: &[AuditLine]) -> String {
        match self {
            Self::Jsonl => lines.iter().map(|line| line.text.clone() + "\n").collect(),
            Self::Csv => csv(lines),
            Self::Otel => format!("{}\n", otel(&calls::of(lines))),
            Self::InToto => calls::of(lines).iter().map(|call| statement(call).to_string() + "\n").collect(),
        }
    }
}

const COLUMNS: [&str; 22] = [
    "file",
    "seq",
    "at",
    "session",
    "call",
    "caller",
    "event",
    "tool",
    "version",
    "integrity",
    "chain_hash",
    "lockfile",
    "params_hash",
    "answer",
    "approved_by",
    "rules_version",
    "profile",
    "ok",
    "kind",
    "duration_us",
    "output_hash",
    "hash",
];

fn csv(lines: &[AuditLine]) -> String {
    let mut out = COLUMNS.join(",") + "\r\n";
    for AuditLine { file, line, .. } in lines {
        let record = &line.record;
        let text = |value: Option<&String>| value.cloned().unwrap_or_default();
        let digest = |value: Option<Digest>| value.map(|digest| digest.to_string()).unwrap_or_default();
        let (decision, result) = (record.decision.as_ref(), record.result.as_ref());
        let cells = [
            file.clone(),
            line.seq.to_string(),
            record.at.clone(),
            record.session.clone(),
            text(record.call.as_ref()),
            record.caller.clone(),
            record.event.as_str().to_owned(),
            record.tool.clone(),
            record.version.as_ref().map(ToString::to_string).unwrap_or_default(),
            digest(record.integrity),
            digest(record.chain_hash),
            record.lockfile.as_ref().map(|lock| lock.key.clone()).unwrap_or_default(),
            digest(record.params_hash),
            text(decision.map(|decision| &decision.answer)),
            text(decision.and_then(|decision| decision.approved_by.as_ref())),
            digest(record.rules_version),
            text(record.permission.as_ref().map(|permission| &permission.profile)),
            result.map(|result| result.ok.to_string()).unwrap_or_default(),
            result.and_then(|result| result.kind).map(|kind| kind.to_string()).unwrap_or_default(),
            result.map(|result| result.duration_us.to_string()).unwrap_or_default(),
            digest(result.and_then(|result| result.output_hash)),
            line.hash.to_string(),
        ];
        out.push_str(&cells.map(quoted).join(","));
        out.push_str("\r\n");
    }
    out
}

/// As RFC 4180 has it.
fn quoted(cell: String) -> String {
    if cell.contains(['"', ',', '\n', '\r']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell }
}

fn otel(calls: &[AuditCall]) -> Value {
    let spans: Vec<Value> = calls.iter().map(span).collect();
    json!({"resourceSpans": [{
        "resource": {"attributes": [attribute("service.name", "kiwi")]},
        "scopeSpans": [{
            "scope": {"name": "kiwi.audit", "version": env!("CARGO_PKG_VERSION")},
            "spans": spans,
        }],
    }]})
}

fn span(call: &AuditCall) -> Value {
    let record = &call.line().record;
    let last = call.exit.as_ref().map_or(record, |exit| &exit.line.record);
    let session: String = record.session.chars().filter(char::is_ascii_hexdigit).collect();
    let trace = if session.len() == 32 {
        session.to_lowercase()
    } else {
        first(Digest::of(record.session.as_bytes()), 32)
    };
    let mut attributes = vec![
        attribute("kiwi.call", &call.id()),
        attribute("kiwi.session", &record.session),
        attribute("kiwi.caller", &record.caller),
        attribute("kiwi.tool", &record.tool),
        attribute("kiwi.state", call.state().as_str()),
        attribute("kiwi.record", &call.line().hash.to_string()),
    ];
    let mut add =
        |name: &str, value: Option<String>| attributes.extend(value.map(|value| attribute(name, &value)));
    add("kiwi.version", record.version.as_ref().map(ToString::to_string));
    add("kiwi.integrity", record.integrity.map(|digest| digest.to_string()));
    add("kiwi.chain_hash", record.chain_hash.map(|digest| digest.to_string()));
    add("kiwi.params_hash", record.params_hash.map(|digest| digest.to_string()));
    add("kiwi.rules_version", record.rules_version.map(|digest| digest.to_string()));
    add("kiwi.decision", record.decision.as_ref().map(|decision| decision.answer.clone()));
    add("kiwi.approved_by", record.decision.as_ref().and_then(|decision| decision.approved_by.clone()));
    add("kiwi.profile", record.permission.as_ref().map(|permission| permission.profile.clone()));
    add("error.type", last.result.as_ref().and_then(|result| result.kind).map(|kind| kind.to_string()));
    // Unset, ok, error.
    let code = match call.state() {
        CallState::Unknown => 0,
        CallState::Succeeded => 1,
        CallState::Failed | CallState::Denied | CallState::Unplanned => 2,
    };
    json!({
        "traceId": trace, "spanId": first(call.line().hash, 16), "name": record.tool, "kind": 1,
        "startTimeUnixNano": nanoseconds(&record.at), "endTimeUnixNano": nanoseconds(&last.at),
        "attributes": attributes, "status": {"code": code},
    })
}

fn attribute(name: &str, value: &str) -> Value {
    json!({"key": name, "value": {"stringValue": value}})
}

fn first(digest: Digest, digits: usize) -> String {
    digest.hex().chars().take(digits).collect()
}

/// 64-bit numbers are text in OTLP's JSON.
fn nanoseconds(at: &str) -> String {
    at.parse::<jiff::Timestamp>().map_or(0, jiff::Timestamp::as_nanosecond).max(0).to_string()
}

fn statement(call: &AuditCall) -> Value {
    let record = &call.line().record;
    // A call that was never resolved has no tool to speak of: then the record itself is what the statement is about.
    let subject = match record.integrity {
        Some(integrity) => json!({"name": record.tool, "digest": {"sha256": integrity.hex()}}),
        None => {
            json!({"name": format!("record of {}", record.tool), "digest": {"sha256": call.line().hash.hex()}})
        }
    };
    let exit = call.exit.as_ref().map(|exit| &exit.line);
    let last = exit.map_or(record, |exit| &exit.record);
    json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [subject],
        "predicateType": PREDICATE,
        "predicate": {
            "call": call.id(), "session": record.session, "caller": record.caller, "state": call.state(),
            "tool": {
                "id": record.tool, "version": record.version, "integrity": record.integrity,
                "chain_hash": record.chain_hash, "chain": record.chain,
            },
            "params_hash": record.params_hash,
            "lockfile": record.lockfile,
            "rules_version": record.rules_version,
            "decision": record.decision,
            "approver": record.decision.as_ref().and_then(|decision| decision.approved_by.as_ref()),
            "permission": record.permission,
            "started_at": record.at,
            "finished_at": exit.map(|exit| &exit.record.at),
            "result": last.result,
            "records": {"file": call.first.file, "first": call.line().hash, "exit": exit.map(|exit| exit.hash)},
        },
    })
}
