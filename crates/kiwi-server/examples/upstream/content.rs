//! What is the same every time: lists, contents, prompts and resources of the suite.

use rmcp::model::{Prompt, Resource, ResourceTemplate, Tool};
use serde_json::{Map, Value, json};

use crate::made;

/// One red pixel.
const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/// A moment of silence.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=";

/// Names of tools without parameters, and what they are for.
const PLAIN: [(&str, &str); 21] = [
    ("test_simple_text", "Gives a text"),
    ("test_image_content", "Gives an image"),
    ("test_audio_content", "Gives a sound"),
    ("test_embedded_resource", "Gives a resource"),
    ("test_multiple_content_types", "Gives several things"),
    ("test_tool_with_logging", "Says what it does"),
    ("test_logging_tool", "Says what it does"),
    ("test_streaming_elicitation", "Says how far it is, then asks"),
    ("test_error_handling", "Fails"),
    ("test_tool_with_progress", "Says how far it is"),
    ("test_elicitation_sep1034_defaults", "Asks with defaults"),
    ("test_elicitation_sep1330_enums", "Asks with choices"),
    ("test_missing_capability", "Needs a client that samples"),
    ("test_input_required_result_elicitation", "Asks a person"),
    ("test_input_required_result_sampling", "Asks a model"),
    ("test_input_required_result_list_roots", "Asks for folders"),
    ("test_input_required_result_request_state", "Asks, and remembers"),
    ("test_input_required_result_multiple_inputs", "Asks three things"),
    ("test_input_required_result_multi_round", "Asks twice"),
    ("test_input_required_result_tampered_state", "Asks, and looks at what comes back"),
    ("test_input_required_result_capabilities", "Asks what the client can answer"),
];

/// Every tool.
pub fn tools() -> Vec<Tool> {
    let tool = |name: &str, description: &str, properties: Value, required: Value| {
        made(json!({"name": name, "description": description, "inputSchema":
            {"type": "object", "properties": properties, "required": required}}))
    };
    let text = |name: &str| json!({ name: {"type": "string"} });
    let mut all: Vec<Tool> = PLAIN.iter().map(|(name, it)| tool(name, it, json!({}), json!([]))).collect();
    all.push(tool("echo", "Gives back what it is given", text("message"), json!(["message"])));
    all.push(tool("slow", "Takes its time", json!({"seconds": {"type": "number"}}), json!([])));
    all.push(tool("test_sampling", "Asks a model", text("prompt"), json!(["prompt"])));
    all.push(tool("test_elicitation", "Asks a person", text("message"), json!(["message"])));
    all.push(made(json!({
        "name": "json_schema_2020_12_tool",
        "description": "Tool with JSON Schema 2020-12 features",
        "inputSchema": {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "$defs": {"address": {"$anchor": "addressDef", "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
            "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"},
                "contactMethod": {"type": "string", "enum": ["phone", "email"]},
                "phone": {"type": "string"}, "email": {"type": "string"}},
            "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
            "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
            "then": {"required": ["phone"]}, "else": {"required": ["email"]},
            "additionalProperties": false
        }
    })));
    all
}

/// The result of a tool that always gives the same.
pub fn result(name: &str) -> Option<Value> {
    let image = json!({"type": "image", "data": PNG, "mimeType": "image/png"});
    let text = |text: &str| json!({"type": "text", "text": text});
    let resource = |uri: &str, mime: &str, text: &str| json!({"type": "resource", "resource": {"uri": uri, "mimeType": mime, "text": text}});
    let content = match name {
        "test_simple_text" => json!([text("This is a simple text response for testing.")]),
        "test_image_content" => json!([image]),
        "test_audio_content" => json!([{"type": "audio", "data": WAV, "mimeType": "audio/wav"}]),
        "test_embedded_resource" => {
            json!([resource(
                "test://embedded-resource",
                "text/plain",
                "This is an embedded resource content."
            )])
        }
        "test_multiple_content_types" => json!([
            text("Multiple content types test:"),
            image,
            resource(
                "test://mixed-content-resource",
                "application/json",
                "{\"test\":\"data\",\"value\":123}"
            )
        ]),
        "json_schema_2020_12_tool" => json!([text("ok")]),
        "test_error_handling" => {
            let content = json!([text("This tool intentionally returns an error for testing")]);
            return Some(json!({"content": content, "isError": true}));
        }
        _ => return None,
    };
    Some(json!({"content": content}))
}

/// Every prompt.
pub fn prompts() -> Vec<Prompt> {
    let argument = |name: &str| json!({"name": name, "description": name, "required": true});
    [
        ("test_simple_prompt", json!([])),
        ("test_prompt_with_arguments", json!([argument("arg1"), argument("arg2")])),
        ("test_prompt_with_embedded_resource", json!([argument("resourceUri")])),
        ("test_prompt_with_image", json!([])),
        ("test_input_required_result_prompt", json!([])),
    ]
    .into_iter()
    .map(|(name, arguments)| made(json!({"name": name, "description": name, "arguments": arguments})))
    .collect()
}

/// A prompt with its arguments.
pub fn prompt(name: &str, arguments: &Map<String, Value>) -> Option<Value> {
    let given = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or_default();
    let said = |content: Value| json!({"role": "user", "content": content});
    let text = |text: String| json!({"type": "text", "text": text});
    let messages = match name {
        "test_simple_prompt" => json!([said(text("This is a simple prompt for testing.".into()))]),
        "test_prompt_with_arguments" => {
            let filled = format!("Prompt with arguments: arg1='{}', arg2='{}'", given("arg1"), given("arg2"));
            json!([said(text(filled))])
        }
        "test_prompt_with_embedded_resource" => json!([
            said(
                json!({"type": "resource", "resource": {"uri": given("resourceUri"), "mimeType": "text/plain",
                "text": "Embedded resource content for testing."}})
            ),
            said(text("Please process the embedded resource above.".into()))
        ]),
        "test_prompt_with_image" => json!([
            said(json!({"type": "image", "data": PNG, "mimeType": "image/png"})),
            said(text("Please analyze the image above.".into()))
        ]),
        _ => return None,
    };
    Some(json!({ "messages": messages }))
}

/// Every resource.
pub fn resources() -> Vec<Resource> {
    [("static-text", "text/plain"), ("static-binary", "image/png"), ("watched-resource", "text/plain")]
        .into_iter()
        .map(|(name, mime)| {
            made(
                json!({"uri": format!("test://{name}"), "name": name, "description": name, "mimeType": mime}),
            )
        })
        .collect()
}

/// Every template.
pub fn templates() -> Vec<ResourceTemplate> {
    vec![made(json!({"uriTemplate": "test://template/{id}/data", "name": "template",
        "description": "Data by its id", "mimeType": "application/json"}))]
}

/// What a resource holds.
pub fn resource(uri: &str) -> Option<Value> {
    let text = |mime: &str, text: String| json!({"uri": uri, "mimeType": mime, "text": text});
    match uri {
        "test://static-text" => {
            Some(text("text/plain", "This is the content of the static text resource.".into()))
        }
        "test://watched-resource" => Some(text("text/plain", "Watched".into())),
        "test://static-binary" => Some(json!({"uri": uri, "mimeType": "image/png", "blob": PNG})),
        _ => {
            let id = uri.strip_prefix("test://template/")?.strip_suffix("/data")?;
            let data = json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
            Some(text("application/json", data.to_string()))
        }
    }
}
