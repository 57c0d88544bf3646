//! Asking an upstream server.

use kiwi_chain::{Form, UpstreamAction, UpstreamCall};
use kiwi_mcp::{Answer, McpError, Reach, Wanted};
use kiwi_model::{ErrorKind, Explain as _, Fault};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

use super::dispatch::{Dispatch, refused};
use crate::stage::{Call, Reply};
use crate::upstream;

/// As much of what a server says about a failure as goes into one sentence.
const MOST_OF_A_SENTENCE: usize = 300;

impl Dispatch {
    pub(super) async fn upstream(&self, call: &Call<'_>, wanted: UpstreamCall) -> Reply {
        if let Err(fault) = self.fits(call, &wanted) {
            return refused(fault);
        }
        let UpstreamCall { server, action, arguments, timeout } = wanted;
        let leaf = call.plan().tools().first().filter(|leaf| leaf.form == Form::Upstream);
        let cancel = call.request.cancel.clone();
        let answer = self.upstreams.request(
            Wanted {
                server: &server,
                action: &action,
                params: action.params(arguments),
                planned: leaf.map(|leaf| (&leaf.manifest.tool_id, leaf.integrity)),
            },
            Arc::clone(&call.request.relay),
            cancel.fired(),
        );
        let own = timeout.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let answer = match own {
            None => answer.await,
            Some(limit) => tokio::time::timeout(limit, answer).await.unwrap_or_else(|_| {
                Err(McpError::Timeout { server: server.clone(), seconds: limit.as_secs() })
            }),
        };
        match answer {
            Ok(answer) => reply(answer, &action),
            Err(error) => refused(upstream::fault(&error)),
        }
    }

    /// A chain says how a server is reached, and so does the registry.
    fn fits(&self, call: &Call<'_>, wanted: &UpstreamCall) -> Result<(), Fault> {
        let server = self.upstreams.server(&wanted.server).map_err(|error| error.fault())?;
        let runtime = match server.reach {
            Reach::Stdio { .. } => "mcp_stdio_runtime",
            Reach::Http { .. } => "mcp_http_runtime",
        };
        if call.plan().tools().iter().any(|tool| tool.manifest.tool_id.as_str() == runtime) {
            return Ok(());
        }
        let message = format!("the MCP server `{}` is reached through `{runtime}`", server.name);
        Err(Fault::new(ErrorKind::ChainInvalid, message).with_hint(format!("write `executor: {runtime}`")))
    }
}

/// A tool that says it failed has failed, whatever else it says.
fn reply(answer: Answer, action: &UpstreamAction) -> Reply {
    let failure = answer.is_error().then(|| {
        let text = answer.text();
        let first: String =
            text.lines().next().unwrap_or_default().chars().take(MOST_OF_A_SENTENCE).collect();
        Fault::new(ErrorKind::ToolFailed, format!("`{}` says that it failed: {first}", action.name()))
            .with_details(json!({"content": answer.0.get("content")}))
    });
    Reply { result: answer.value(), content: Some(answer.0), failure, ..Reply::default() }
}
