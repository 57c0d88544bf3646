use camino::Utf8PathBuf;
use kiwi_model::{ErrorKind, Explain as _, Fault};
use kiwi_server::{Bearer, Http, HttpOptions, Server};
use serde_json::json;
use std::net::{IpAddr, SocketAddr};
use std::process::ExitCode;
use std::sync::Arc;

use crate::context::Context;
use crate::printer;

/// Serve MCP over HTTP: `/mcp` with four tools in front of everything, `/mcp/direct` with every tool under its own name.
///
/// Ends with exit code 0 when it is asked to (Ctrl-C, SIGTERM), after running calls had time to end.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The address to listen on. Others than this machine need a token.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    host: String,
    /// The port to listen on; 0 takes a free one.
    #[arg(long, default_value_t = 7417)]
    port: u16,
    /// A bearer token that clients have to show. Others on this machine can see it here; a file is better.
    #[arg(long, value_name = "TOKEN", conflicts_with = "token_file")]
    token: Option<String>,
    /// A file whose one line is the token.
    #[arg(long, value_name = "FILE")]
    token_file: Option<Utf8PathBuf>,
    /// A further name under which it may be called, as clients put it into `Host`.
    #[arg(long, value_name = "HOST")]
    allow_host: Vec<String>,
    /// A page that may call it, as browsers put it into `Origin`.
    #[arg(long, value_name = "ORIGIN")]
    allow_origin: Vec<String>,
    /// How many seconds running calls have once the end is asked for.
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    drain: u64,
    /// Print where it listens as one JSON line.
    #[arg(long)]
    pub json: bool,
}

impl Args {
    /// Serves until it is asked to end.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        let mut options = HttpOptions::at(self.address()?);
        options.bearer = self.bearer()?;
        options.hosts.clone_from(&self.allow_host);
        options.origins.clone_from(&self.allow_origin);
        options.drain = std::time::Duration::from_secs(self.drain);
        let needs_token = options.bearer.is_some();
        let server = Server::new(Arc::clone(&context.kernel));
        Context::wait(async {
            let stop = signalled();
            let http = Http::bind(server, options).await.map_err(|error| error.fault())?;
            let url = format!("http://{}/mcp", http.address());
            if self.json {
                printer::line(json!({
                    "status": "listening", "url": url, "direct": format!("{url}/direct"),
                    "address": http.address().ip(), "port": http.address().port(), "token": needs_token,
                }));
            }
            printer::note(format!("listening on {url}"));
            http.serve(stop).await;
            Ok::<(), Fault>(())
        })??;
        Ok(ExitCode::SUCCESS)
    }

    fn address(&self) -> Result<SocketAddr, Fault> {
        let name = self.host.trim_start_matches('[').trim_end_matches(']');
        let ip = match name {
            "localhost" => Ok(IpAddr::from([127, 0, 0, 1])),
            name => name.parse::<IpAddr>(),
        };
        let ip = ip.map_err(|_| {
            Fault::new(ErrorKind::Usage, format!("`{}` is not an address", self.host))
                .with_hint("give a number, such as 127.0.0.1 or ::1")
        })?;
        Ok(SocketAddr::new(ip, self.port))
    }

    fn bearer(&self) -> Result<Option<Bearer>, Fault> {
        let text = match (&self.token, &self.token_file) {
            (None, None) => return Ok(None),
            (Some(token), _) => token.clone(),
            (None, Some(file)) => std::fs::read_to_string(file)
                .map_err(|error| Fault::new(ErrorKind::Usage, format!("`{file}`: {error}")))?
                .trim_end_matches(['\r', '\n'])
                .to_owned(),
        };
        let bearer = Bearer::new(&text).ok_or_else(|| {
            Fault::new(ErrorKind::Usage, "the token is empty, or has characters that no header can have")
                .with_hint("letters, digits and punctuation without spaces")
        })?;
        Ok(Some(bearer))
    }
}

/// Resolves once the end is asked for. The signals are listened to from now on.
pub fn signalled() -> impl Future<Output = ()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut signals: Vec<_> = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()]
        .into_iter()
        .filter_map(|kind| signal(kind).ok())
        .collect();
    std::future::poll_fn(move |context| {
        let fired = signals.iter_mut().any(|signal| signal.poll_recv(context).is_ready());
        if fired { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
}
