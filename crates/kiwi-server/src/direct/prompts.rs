//! Directives as prompts, and the prompts of upstream servers.

use kiwi_mcp::Offer;
use kiwi_model::ErrorKind;
use kiwi_space::{TextItem, TextKind};
use rmcp::ErrorData;
use rmcp::model::{GetPromptRequestParams, GetPromptResponse, GetPromptResult, Prompt};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Map, Value, json};
use std::sync::Arc;

use super::line;
use super::upstream::{Told, Verb, converse, listed};
use crate::answer;
use crate::client::Client;
use crate::server::Server;

/// A directive as a client sees it.
pub(crate) fn prompt(text: &TextItem) -> Option<Prompt> {
    let arguments: Vec<Value> = text
        .inputs
        .iter()
        .map(
            |input| json!({"name": input.name, "description": input.description, "required": input.required}),
        )
        .collect();
    let mut description = line(text);
    if description.is_empty() {
        description.clone_from(&text.id);
    }
    serde_json::from_value(json!({"name": text.id, "description": description, "arguments": arguments})).ok()
}

/// Every prompt: directives first; an upstream one whose name is taken has its server before it.
pub(crate) async fn prompts(server: &Server) -> Vec<Prompt> {
    let mut all = server.shelf.current().await.prompts.clone();
    for (name, mut prompt) in listed::<Prompt>(server, Offer::Prompts).await {
        if all.iter().any(|known| known.name == prompt.name) {
            prompt.name = format!("{name}.{}", prompt.name);
        }
        all.push(prompt);
    }
    all
}

/// A prompt with its arguments put in.
pub(crate) async fn get_prompt(
    server: &Arc<Server>,
    client: &Client,
    params: GetPromptRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<GetPromptResponse, ErrorData> {
    let arguments = params.arguments.unwrap_or_default();
    match server.kernel.spaces().text(TextKind::Directive, &params.name, None) {
        Ok(item) => {
            let missing: Vec<&str> = item
                .inputs
                .iter()
                .filter(|input| input.required && !arguments.contains_key(&input.name))
                .map(|input| input.name.as_str())
                .collect();
            if !missing.is_empty() {
                let message = format!("`{}` needs {}", item.id, missing.join(", "));
                return Err(ErrorData::invalid_params(message, None));
            }
            let text = filled(&item.text, &arguments);
            let result = json!({
                "description": item.description,
                "messages": [{"role": "user", "content": {"type": "text", "text": text}}],
            });
            let result = answer::whole::<GetPromptResult>(result);
            return result
                .map(Into::into)
                .map_err(|error| ErrorData::internal_error(error.to_string(), None));
        }
        Err(fault) if fault.kind != ErrorKind::NotFound => return Err(answer::error(&fault)),
        Err(_) => {}
    }
    let found = listed::<Prompt>(server, Offer::Prompts).await.into_iter().find(|(name, prompt)| {
        prompt.name == params.name || format!("{name}.{}", prompt.name) == params.name
    });
    let Some((name, prompt)) = found else {
        let shown: String = params.name.chars().take(100).collect();
        return Err(ErrorData::invalid_params(format!("there is no prompt `{shown}`"), None));
    };
    let mut asked = Map::new();
    asked.insert("name".into(), prompt.name.into());
    if !arguments.is_empty() {
        asked.insert("arguments".into(), Value::Object(arguments));
    }
    let retry = (params.input_responses, params.request_state);
    match converse(server, client, &name, Verb::GetPrompt, asked, retry, context).await? {
        Told::Asks(input) => Ok(input.into()),
        Told::Content(given) => answer::whole::<GetPromptResult>(given)
            .map(Into::into)
            .map_err(|error| ErrorData::internal_error(format!("`{name}` gave no prompt: {error}"), None)),
    }
}

/// A text with `{name}` replaced by what was given; what was not given stays.
fn filled(text: &str, arguments: &Map<String, Value>) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        filled.push_str(before);
        let value =
            after.split_once('}').and_then(|(name, behind)| Some((arguments.get(name.trim())?, behind)));
        if let Some((value, behind)) = value {
            filled.push_str(&value.as_str().map_or_else(|| value.to_string(), str::to_owned));
            rest = behind;
        } else {
            filled.push('{');
            rest = after;
        }
    }
    filled.push_str(rest);
    filled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_given_is_put_in_and_only_once() {
        let Value::Object(arguments) = json!({"a": "{b}", "b": 2}) else { panic!() };
        assert_eq!(filled("x {a} { b } {c} {", &arguments), "x {b} 2 {c} {");
    }
}
