use kiwi_model::{Explain as _, Fault};
use kiwi_server::{Server, Shape, serve_stdio};
use std::process::ExitCode;
use std::sync::Arc;

use crate::commands::serve::signalled;
use crate::context::Context;

/// How standard streams are served.
#[derive(Debug, clap::Args)]
pub struct StdioArgs {
    /// Offer every tool under its own name, directives as prompts and knowledge as resources.
    #[arg(long)]
    direct: bool,
}

impl StdioArgs {
    /// Serves until the client goes.
    pub fn run(&self, context: &Context) -> Result<ExitCode, Fault> {
        let shape = if self.direct { Shape::Direct } else { Shape::Meta };
        let server = Server::new(Arc::clone(&context.kernel));
        let ended = Context::wait(async { serve_stdio(server, shape, signalled()).await })?;
        ended.map_err(|error| error.fault())?;
        Ok(ExitCode::SUCCESS)
    }
}
