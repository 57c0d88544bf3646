//! Knowledge as resources, and the resources of upstream servers.

use kiwi_mcp::Offer;
use kiwi_model::ErrorKind;
use kiwi_space::{TextItem, TextKind};
use rmcp::ErrorData;
use rmcp::model::{
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, Resource, ResourceTemplate,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Map, Value, json};
use std::sync::Arc;

use super::line;
use super::upstream::{Told, Verb, converse, listed};
use crate::answer;
use crate::client::Client;
use crate::server::Server;

/// Where knowledge lies for clients.
const KNOWLEDGE: &str = "kiwi://knowledge/";

/// A knowledge entry as a client sees it.
pub(crate) fn resource(text: &TextItem) -> Option<Resource> {
    let resource = json!({
        "uri": format!("{KNOWLEDGE}{}", text.id), "name": text.id,
        "description": line(text), "mimeType": "text/markdown",
    });
    serde_json::from_value(resource).ok()
}

/// Every resource.
pub(crate) async fn resources(server: &Server) -> Vec<Resource> {
    let mut all = server.shelf.current().await.resources.clone();
    all.extend(listed(server, Offer::Resources).await.into_iter().map(|(_, it)| it));
    all
}

/// Every template of a resource.
pub(crate) async fn templates(server: &Server) -> Vec<ResourceTemplate> {
    let knowledge = json!({
        "uriTemplate": format!("{KNOWLEDGE}{{id}}"), "name": "knowledge",
        "description": "A knowledge entry by its id", "mimeType": "text/markdown",
    });
    let mut all: Vec<ResourceTemplate> = serde_json::from_value(knowledge).into_iter().collect();
    let more = listed(server, Offer::Templates).await;
    all.extend(more.into_iter().map(|(_, it)| it));
    all
}

/// Reads a resource.
pub(crate) async fn read_resource(
    server: &Arc<Server>,
    client: &Client,
    params: ReadResourceRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<ReadResourceResponse, ErrorData> {
    let uri = &params.uri;
    if let Some(id) = uri.strip_prefix(KNOWLEDGE) {
        let item = server.kernel.spaces().text(TextKind::Knowledge, id, None).map_err(|fault| {
            if fault.kind == ErrorKind::NotFound { unknown(uri) } else { answer::error(&fault) }
        })?;
        let contents = json!({"contents": [{"uri": uri, "mimeType": "text/markdown", "text": item.text}]});
        return read(contents).map(Into::into);
    }
    let owner = owner(server, uri).await.ok_or_else(|| unknown(uri))?;
    let mut asked = Map::new();
    asked.insert("uri".into(), uri.clone().into());
    let retry = (params.input_responses, params.request_state);
    match converse(server, client, &owner, Verb::ReadResource, asked, retry, context).await? {
        Told::Asks(input) => Ok(input.into()),
        Told::Content(given) => read(given).map(Into::into),
    }
}

fn read(contents: Value) -> Result<ReadResourceResult, ErrorData> {
    answer::whole(contents)
        .map_err(|error| ErrorData::internal_error(format!("what was read is no resource: {error}"), None))
}

fn unknown(uri: &str) -> ErrorData {
    let shown: String = uri.chars().take(300).collect();
    ErrorData::resource_not_found(format!("there is no resource `{shown}`"), Some(json!({"uri": shown})))
}

/// The server whose resource this is: who lists it, else whose template it fits.
pub(crate) async fn owner(server: &Server, uri: &str) -> Option<String> {
    let resources: Vec<(String, Resource)> = listed(server, Offer::Resources).await;
    if let Some((name, _)) = resources.into_iter().find(|(_, resource)| resource.uri == uri) {
        return Some(name);
    }
    let templates: Vec<(String, ResourceTemplate)> = listed(server, Offer::Templates).await;
    templates.into_iter().find(|(_, template)| fits(&template.uri_template, uri)).map(|(name, _)| name)
}

/// Whether an address can come of a template: its fixed parts stand in it, in their order, from end to end.
fn fits(template: &str, uri: &str) -> bool {
    let mut rest = uri;
    let mut parts = template.split('{');
    match parts.next().and_then(|first| rest.strip_prefix(first)) {
        Some(behind) => rest = behind,
        None => return false,
    }
    for part in parts {
        let fixed = part.split_once('}').map_or("", |(_, fixed)| fixed);
        if fixed.is_empty() {
            continue;
        }
        match rest.split_once(fixed) {
            Some((value, behind)) if !value.is_empty() => rest = behind,
            _ => return false,
        }
    }
    template.ends_with('}') || rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_fits_the_template_it_came_of() {
        for (template, uri, expected) in [
            ("test://template/{id}/data", "test://template/7/data", true),
            ("test://template/{id}/data", "test://template//data", false),
            ("test://template/{id}/data", "test://template/7/data/more", false),
            ("file:///{path}", "file:///a/b", true),
            ("test://a", "test://a", true),
            ("test://a", "test://b", false),
        ] {
            assert_eq!(fits(template, uri), expected, "{template} {uri}");
        }
    }
}
