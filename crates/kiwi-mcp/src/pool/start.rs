//! Starting a connection: a process or an endpoint, then the greeting.

use kiwi_exec::{HostPattern, Process, Reach as HttpReach, Serving};
use kiwi_model::Text;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::RoleClient;
use rmcp::model::ProtocolVersion;
use rmcp::service::{ClientInitializeError, ClientLifecycleMode, ClientServiceExt as _, RunningService};
use rmcp::transport::streamable_http_client::{
    StreamableHttpClient, StreamableHttpClientTransport, StreamableHttpClientTransportConfig,
};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

use super::calls::Calls;
use super::failure::{Trouble, of_start, unauthorized, unavailable};
use super::handler::Handler;
use super::lines::Lines;
use super::live::{Parts, exit_of, with_words};
use super::oauth::Access;
use super::resolve::Way;
use super::surroundings::Surroundings;
use super::wire::Wire;
use crate::error::McpError;
use crate::server::{HttpAuth, Server};
use crate::stream::LONGEST;

/// How often a person is asked for access before it is given up.
const MOST_LOGINS: usize = 3;
/// How long a process may take to say which revisions it speaks before it is greeted in the old way; less than the
/// library's own patience, which would take a late answer for an answer to the greeting.
const PATIENCE: Duration = Duration::from_secs(8);
/// Headers that the protocol itself sets.
const OWN_HEADERS: [&str; 8] = [
    "accept",
    "content-type",
    "content-length",
    "host",
    "last-event-id",
    "mcp-method",
    "mcp-protocol-version",
    "mcp-session-id",
];

/// A connection that is to be started.
pub(super) struct Beginning<'a> {
    pub server: &'a Server,
    pub around: &'a Surroundings,
    pub calls: Arc<Calls>,
    pub generation: u64,
    /// The pool is being closed.
    pub closed: watch::Receiver<bool>,
}

/// Starts a connection, in the time the server's entry gives it.
pub(super) async fn start(beginning: Beginning<'_>, way: &Way) -> Result<Parts, McpError> {
    match way {
        Way::Stdio { .. } => start_process(beginning, way).await,
        Way::Http { url, headers, auth } => {
            let Beginning { server, around, calls, generation, mut closed } = beginning;
            let endpoint = Endpoint { server, url, headers, around, calls, generation };
            tokio::select! {
                parts = endpoint.start(*auth) => parts,
                () = is_set(&mut closed) => Err(unavailable(server.name.as_str(), "was stopped")),
            }
        }
    }
}

/// The newest revision first; whoever does not know it is greeted in the old way.
fn lifecycle() -> ClientLifecycleMode {
    ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: Some(ProtocolVersion::V_2025_11_25),
    }
}

/// Waits until a flag is set, or nobody can set it any more.
pub(super) async fn is_set(flag: &mut watch::Receiver<bool>) {
    let _ = flag.wait_for(|is_set| *is_set).await;
}

fn late(server: &Server) -> McpError {
    McpError::LateStart { server: server.name.to_string(), seconds: whole(server.start_timeout) }
}

/// Seconds, as people read them.
pub(super) fn whole(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

async fn start_process(beginning: Beginning<'_>, way: &Way) -> Result<Parts, McpError> {
    let Beginning { server, around, calls, generation, mut closed } = beginning;
    let name = server.name.as_str();
    let process = process(way, around);
    let serving = tokio::time::timeout(server.start_timeout, around.launcher.serve(process)).await;
    let mut serving = serving
        .map_err(|_| late(server))?
        .map_err(|error| unavailable(name, format!("cannot be started: {error}")))?;
    let streams = serving.output.take().zip(serving.input.take());
    let (output, input) = streams.ok_or_else(|| unavailable(name, "has no streams"))?;
    let patience = (server.start_timeout / 2).min(PATIENCE);
    let transport = Lines::new(output, input, Arc::clone(&calls), patience);
    let lane = Some(transport.lane());
    let greeting = Handler { calls: Arc::clone(&calls) }.serve_with_lifecycle(transport, lifecycle());
    let greeted = tokio::select! {
        greeted = tokio::time::timeout(server.start_timeout, greeting) => greeted,
        exit = serving.ended() => {
            return Err(exit_of(name, Some(&serving), exit));
        }
        () = is_set(&mut closed) => {
            let _ = serving.kill().await;
            return Err(unavailable(name, "was stopped"));
        }
    };
    let error = match greeted {
        Ok(Ok(service)) => {
            let server = name.to_owned();
            let serving = Some(serving);
            return Ok(Parts { server, generation, service, serving, lane, calls, access: None });
        }
        Ok(Err(error)) => explain(name, &serving, &error).await,
        Err(_) => late(server),
    };
    // It is ended before anybody hears of it, so that the next start is not the second of two.
    let error = with_words(error, Some(&serving));
    let _ = serving.kill().await;
    Err(error)
}

async fn explain(name: &str, serving: &Serving, error: &ClientInitializeError) -> McpError {
    match of_start(name, error) {
        Trouble::Failed(error) => error,
        // Its output ended, so it is about to end.
        _ => match tokio::time::timeout(Duration::from_millis(500), serving.ended()).await {
            Ok(exit) => exit_of(name, Some(serving), exit),
            Err(_) => unavailable(name, "closed its output before it answered"),
        },
    }
}

fn process(way: &Way, around: &Surroundings) -> Process {
    let Way::Stdio { command, args, env, cwd, isolation, has_secrets } = way else { return empty(around) };
    let base = around.environment.iter().map(|(name, value)| (name, value));
    let given = base.chain(env).map(|(name, value)| (name.clone(), Text::literal(value)));
    Process {
        program: Text::literal(command),
        args: args.iter().map(Text::literal).collect(),
        env: given.collect(),
        cwd: cwd.clone(),
        isolation: *isolation,
        has_secrets: *has_secrets,
        ..empty(around)
    }
}

fn empty(around: &Surroundings) -> Process {
    Process {
        program: Text::default(),
        args: Vec::new(),
        env: Vec::new(),
        cwd: around.project.clone(),
        stdin: Vec::new(),
        timeout: Duration::MAX,
        output_cap: 0,
        isolation: kiwi_model::Isolation::default(),
        confinement: around.confinement.clone(),
        has_secrets: false,
        packages: Vec::new(),
        search_path: around.search_path.clone(),
        project: around.project.clone(),
    }
}

/// An endpoint that is to be connected to.
struct Endpoint<'a> {
    server: &'a Server,
    url: &'a str,
    headers: &'a BTreeMap<String, String>,
    around: &'a Surroundings,
    calls: Arc<Calls>,
    generation: u64,
}

impl Endpoint<'_> {
    async fn start(self, auth: HttpAuth) -> Result<Parts, McpError> {
        let wire = Wire { client: self.client()?, calls: Arc::clone(&self.calls) };
        match auth {
            HttpAuth::None => {
                let greeted = self.greet(wire).await?;
                match greeted {
                    Ok(service) => Ok(self.parts(service, None)),
                    Err(error) => Err(self.failed(&error)),
                }
            }
            HttpAuth::Oauth => self.start_with_access(wire).await,
        }
    }

    async fn start_with_access(self, wire: Wire) -> Result<Parts, McpError> {
        let name = self.server.name.as_str();
        let access = Access::new(self.server, self.url, self.around, wire).await?;
        for login in 0..=MOST_LOGINS {
            let error = match self.greet(access.client()).await? {
                Ok(service) => return Ok(self.parts(service, Some(Arc::new(access)))),
                Err(error) => error,
            };
            match of_start(name, &error) {
                Trouble::Challenged(challenge) if login < MOST_LOGINS => access.log_in(&challenge).await?,
                _ => return Err(self.failed(&error)),
            }
        }
        Err(unauthorized(name, "it asks again and again"))
    }

    /// The library's client for this host alone. Whoever wrote the entry named the host, so it may be an inner one.
    #[expect(clippy::disallowed_types, reason = "handed out by kiwi-exec")]
    fn client(&self) -> Result<reqwest::Client, McpError> {
        let name = self.server.name.as_str();
        let refused =
            |error: &dyn std::fmt::Display| unavailable(name, format!("cannot be reached: {error}"));
        let url = reqwest::Url::parse(self.url).map_err(|error| refused(&error))?;
        let host =
            url.host_str().map(str::parse::<HostPattern>).transpose().map_err(|error| refused(&error))?;
        let reach = HttpReach { is_named: true, allow_hosts: Some(host.into_iter().collect()) };
        self.around.http.streaming(self.url, &reach).map_err(|error| refused(&error))
    }

    fn config(&self) -> Result<StreamableHttpClientTransportConfig, McpError> {
        let name = self.server.name.as_str();
        let mut headers = HashMap::new();
        for (header, value) in self.headers {
            let wrong = |why: &str| unavailable(name, format!("has a header `{header}` that {why}"));
            if OWN_HEADERS.contains(&header.to_ascii_lowercase().as_str()) {
                return Err(wrong("the protocol sets itself"));
            }
            let key = header.parse::<HeaderName>().map_err(|_| wrong("no request can have"))?;
            let mut value = HeaderValue::from_str(value).map_err(|_| wrong("has an impossible value"))?;
            value.set_sensitive(true);
            headers.insert(key, value);
        }
        Ok(StreamableHttpClientTransportConfig::with_uri(self.url)
            .custom_headers(headers)
            .max_sse_event_size(LONGEST)
            // A new session is a new generation, which only we can count.
            .reinit_on_expired_session(false))
    }

    async fn greet<C>(
        &self,
        client: C,
    ) -> Result<Result<RunningService<RoleClient, Handler>, ClientInitializeError>, McpError>
    where
        C: StreamableHttpClient + Sync,
    {
        let transport = StreamableHttpClientTransport::with_client(client, self.config()?);
        let handler = Handler { calls: Arc::clone(&self.calls) };
        let greeting = handler.serve_with_lifecycle(transport, lifecycle());
        let greeted = tokio::time::timeout(self.server.start_timeout, greeting).await;
        greeted.map_err(|_| late(self.server))
    }

    fn parts(self, service: RunningService<RoleClient, Handler>, access: Option<Arc<Access>>) -> Parts {
        let server = self.server.name.to_string();
        let (generation, calls) = (self.generation, self.calls);
        Parts { server, generation, service, serving: None, lane: None, calls, access }
    }

    fn failed(&self, error: &ClientInitializeError) -> McpError {
        let name = self.server.name.as_str();
        match of_start(name, error) {
            Trouble::Failed(error) | Trouble::Unreachable(error) => error,
            Trouble::Challenged(challenge) => unauthorized(name, challenge),
            Trouble::Gone | Trouble::SessionExpired => unavailable(name, "closed the connection at once"),
        }
    }
}
