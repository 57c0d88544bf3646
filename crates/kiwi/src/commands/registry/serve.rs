use camino::Utf8PathBuf;
use kiwi_model::{ErrorKind, Explain as _, Fault, Secret};
use kiwi_registry::{Server, ServerOptions};
use serde_json::json;
use std::net::SocketAddr;
use std::process::ExitCode;

use crate::commands::serve::signalled;
use crate::context::Context;
use crate::printer;

/// Serve a registry: one file by default, or PostgreSQL for many machines.
///
/// Any number of servers may share one PostgreSQL database. Where a database has no tokens and none is given, one for an
/// admin is made and shown once. Ends with exit code 0 when it is asked to (Ctrl-C, SIGTERM).
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The database: a file, made where there is none, or `postgres://…`.
    #[arg(long, value_name = "FILE|URL", default_value = "kiwi-registry.db")]
    database: String,
    /// The address to listen on; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7410")]
    listen: SocketAddr,
    /// A token with which everything may be done. Others on this machine can see it here; `KIWI_ADMIN_TOKEN` is better.
    #[arg(long, value_name = "TOKEN")]
    admin_token: Option<String>,
    /// Where large files go; by default beside the database file, or into PostgreSQL.
    #[arg(long, value_name = "DIR")]
    blobs: Option<Utf8PathBuf>,
    /// Requests each second, of each token, or of each address without one.
    #[arg(long, value_name = "N", default_value_t = 200)]
    rate: u32,
    /// Print where it listens as one JSON line.
    #[arg(long)]
    pub json: bool,
}

impl Args {
    /// Serves until it is asked to end.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        let given = self.admin_token.clone().or_else(|| context.environment.get("KIWI_ADMIN_TOKEN").cloned());
        let mut options = ServerOptions::new(&self.database);
        options.blobs = self.blobs.clone().map(Into::into);
        options.admin_token = given.map(Secret::new);
        options.limits.requests_per_second = self.rate.max(1);
        options.limits.burst = self.rate.max(1).saturating_mul(2);
        Context::wait(async {
            let stop = signalled();
            let server = Server::open(options).await.map_err(|error| error.fault())?;
            let server = server.telling(Box::new(|problem| printer::warning(problem)));
            let listener = tokio::net::TcpListener::bind(self.listen).await.map_err(|error| {
                Fault::new(ErrorKind::Usage, format!("{} cannot be listened on: {error}", self.listen))
                    .with_hint("give another address by `--listen`; port 0 takes a free one")
            })?;
            let address = listener.local_addr().unwrap_or(self.listen);
            let first = server.first_token().map(|token| token.expose().to_owned());
            if self.json {
                printer::line(json!({
                    "status": "listening", "url": format!("http://{address}"), "address": address.ip(),
                    "port": address.port(), "admin_token": first,
                }));
            } else if let Some(token) = first {
                printer::line(token);
                printer::note("this token may do everything; it is not shown again");
            }
            printer::note(format!("listening on http://{address}"));
            server.serve(listener, stop).await.map_err(|error| error.fault())
        })??;
        Ok(ExitCode::SUCCESS)
    }
}
