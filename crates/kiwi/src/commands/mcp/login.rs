use kiwi_mcp::Server;
use kiwi_model::{ErrorKind, Fault};
use std::process::ExitCode;
use std::time::Duration;

use super::rooms;
use crate::context::Context;
use crate::printer::{self, BOLD, paint};

/// How long a person has.
const PATIENCE: Duration = Duration::from_mins(10);

/// Get access to an MCP server that wants to know who asks (`auth: oauth`): a person says yes in a browser.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The server.
    server: String,
}

impl Args {
    /// Logs in, and asks the server for its tools.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        let upstreams = context.kernel.upstreams();
        let server = upstreams.server(&self.server).map_err(|error| rooms::fault(&error))?;
        if !server.reach.uses_oauth() {
            return Err(Fault::new(
                ErrorKind::Usage,
                format!("`{}` does not ask who you are by OAuth", server.name),
            )
            .with_hint("`auth: oauth` in mcp_registry.yaml says that a server does"));
        }
        context.browser.open_for_business();
        let patient = Server { start_timeout: PATIENCE, ..(*server).clone() };
        let connected = Context::wait(async {
            upstreams.pool().reset(&patient.name);
            let connected = upstreams.pool().connect(&patient).await;
            upstreams.close().await;
            connected
        })?;
        connected.map_err(|error| rooms::fault(&error))?;
        printer::note(format!("{} knows you now", paint(BOLD, &patient.name)));
        Ok(ExitCode::SUCCESS)
    }
}
