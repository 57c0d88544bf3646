//! What can go wrong when Kiwi acts on the world.

use kiwi_model::{Digest, ErrorKind, Explain, Isolation};
use serde_json::{Value, json};
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::container::ContainerError;
use crate::environment::PinDifference;
use crate::process::Stream;

/// Why a process or a request did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum ExecError {
    /// The time was up; everything the process started has been ended.
    #[error("the tool did not finish within {}", seconds(*after))]
    Timeout {
        /// The time it had.
        after: Duration,
        /// What it had written to standard output.
        stdout: Vec<u8>,
        /// What it had written to standard error.
        stderr: Vec<u8>,
    },
    /// It wrote more than it may; everything it started has been ended.
    #[error("the tool wrote more than {limit} bytes to {stream}")]
    OutputLimit {
        /// The stream that overflowed.
        stream: Stream,
        /// How many bytes were allowed.
        limit: u64,
    },
    /// No such program.
    #[error("program `{program}` was not found")]
    ProgramNotFound {
        /// As the manifest names it.
        program: String,
        /// The search path that was tried; empty when a path was given.
        searched: String,
    },
    /// The program is there and cannot be started.
    #[error("program `{program}` cannot be started: {why}")]
    NotExecutable {
        /// Where it was found.
        program: String,
        /// The reason.
        why: String,
    },
    /// A text that the operating system cannot take.
    #[error("{what} contains a NUL byte")]
    NulByte {
        /// Which text.
        what: String,
    },
    /// A name that cannot be an environment variable.
    #[error("`{name}` cannot be the name of an environment variable")]
    BadVariable {
        /// The name.
        name: String,
    },
    /// Arguments and environment together, or one of them, exceed what the system takes.
    #[error("arguments and environment are too long for the operating system ({bytes} bytes)")]
    ArgumentsTooLong {
        /// How long they are together.
        bytes: usize,
    },
    /// The process could not start where it was to start.
    #[error("cannot start in folder `{}`: {source}", path.display())]
    WorkingFolder {
        /// The folder.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// A file is no longer what was verified.
    #[error("integrity mismatch for `{path}`: computed {actual}, expected {expected}")]
    Tampered {
        /// Path inside the package.
        path: String,
        /// What was verified.
        expected: Digest,
        /// What is there now.
        actual: Digest,
    },
    /// A package path that would leave the folder it is put into.
    #[error("`{path}` cannot be a path inside a package")]
    UnsafePath {
        /// The path.
        path: String,
    },
    /// A text refers to a file that no given package holds.
    #[error("link {link} of the chain has no file `{path}`")]
    UnknownFile {
        /// Index into the chain.
        link: usize,
        /// The path; empty for the folder itself.
        path: String,
    },
    /// What the level promises cannot be enforced here.
    #[error("isolation level `{level}` cannot be enforced here: {why}")]
    SandboxUnavailable {
        /// The level asked for.
        level: Isolation,
        /// What is missing.
        why: String,
    },
    /// A limit that is set and cannot be held here.
    #[error("the limit `{limit}` cannot be enforced here: {why}")]
    LimitUnavailable {
        /// Its name in the tool's `config`.
        limit: &'static str,
        /// What is missing.
        why: String,
    },
    /// A path that cannot be shown inside a sandbox.
    #[error("`{}` cannot be declared: {why}", path.display())]
    BadPath {
        /// The path.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// The caller changed its mind; everything the process started has been ended.
    #[error("the call was cancelled")]
    Cancelled,
    /// The supervisor disappeared; what could be found of the tool has been ended.
    #[error("the supervisor of the tool was killed while the tool was running")]
    Lost,
    /// A language package that Kiwi does not pass on to an installer.
    #[error("`{requirement}` cannot be required: {why}")]
    BadRequirement {
        /// As the manifest has it.
        requirement: String,
        /// The reason.
        why: &'static str,
    },
    /// A language environment could not be built.
    #[error("{installer} could not install {}: {}", list(requires), last_line(output))]
    EnvironmentFailed {
        /// What was asked for.
        requires: Vec<String>,
        /// What was used to install it.
        installer: String,
        /// The last lines the installer wrote.
        output: String,
    },
    /// What was installed is not what is pinned.
    #[error("installed packages differ from their pins: {}", differing(differences))]
    PinsDiffer {
        /// All of them.
        differences: Vec<PinDifference>,
    },
    /// A container cannot run.
    #[error(transparent)]
    Container(#[from] ContainerError),
    /// Not an address Kiwi can ask.
    #[error("`{url}` is not a usable address: {why}")]
    BadUrl {
        /// The address as given.
        url: String,
        /// The reason.
        why: String,
    },
    /// A part of the request is not valid HTTP.
    #[error("{what} `{value}` is not valid in an HTTP request")]
    BadRequest {
        /// Which part.
        what: &'static str,
        /// Its value (a header's name, never its value: that may be a secret).
        value: String,
    },
    /// The other side answered too slowly.
    #[error("`{url}` did not answer within {}", seconds(*after))]
    HttpTimeout {
        /// The address, without user, query and fragment.
        url: String,
        /// The time it had.
        after: Duration,
    },
    /// The answer is larger than allowed.
    #[error("`{url}` answered with more than {limit} bytes")]
    ResponseLimit {
        /// The address, without user, query and fragment.
        url: String,
        /// How many bytes were allowed.
        limit: u64,
    },
    /// The other side answered, and not with success.
    #[error("`{url}` answered with status {status}")]
    HttpStatus {
        /// The address, without user, query and fragment.
        url: String,
        /// The status code.
        status: u16,
        /// The body, parsed when it is JSON.
        body: Value,
    },
    /// Redirected more often than allowed.
    #[error("`{url}` redirects more than {limit} times")]
    TooManyRedirects {
        /// The address, without user, query and fragment.
        url: String,
        /// How many were allowed.
        limit: usize,
    },
    /// Nobody answered.
    #[error("`{url}` cannot be reached: {why}")]
    Unreachable {
        /// The address, without user, query and fragment.
        url: String,
        /// The reason.
        why: String,
    },
    /// The other side's certificate is not to be trusted.
    #[error("the certificate of `{url}` is not valid: {why}")]
    Untrusted {
        /// The address, without user, query and fragment.
        url: String,
        /// What is wrong with the certificate.
        why: String,
    },
    /// A host that this request may not contact.
    #[error("`{host}` may not be contacted: {why}")]
    HostRefused {
        /// The host, or the socket.
        host: String,
        /// The address it stands for, where that is the reason.
        address: Option<IpAddr>,
        /// The reason.
        why: String,
    },
    /// A host that whoever asks may not contact.
    #[error(transparent)]
    Unpermitted {
        /// As whoever was asked says it.
        fault: Box<kiwi_model::Fault>,
    },
    /// Something on a list of hosts that is none.
    #[error("`{pattern}` is not a host that `allow_hosts` or `network_hosts` can list")]
    BadHost {
        /// As the manifest has it.
        pattern: String,
    },
    /// The authorization server gave no token.
    #[error("`{url}` gave no access token: {why}")]
    NoToken {
        /// The server's address, without user, query and fragment.
        url: String,
        /// The reason.
        why: String,
        /// What it answered instead.
        body: Value,
    },
    /// The operating system refused something Kiwi needs.
    #[error("could not {doing}: {source}")]
    Io {
        /// What was being done.
        doing: String,
        /// The reason.
        source: std::io::Error,
    },
}

impl ExecError {
    /// For `map_err`: what was being done when the system refused.
    pub(crate) fn io<E: Into<std::io::Error>>(doing: impl Into<String>) -> impl FnOnce(E) -> Self {
        let doing = doing.into();
        move |source| Self::Io { doing, source: source.into() }
    }
}

impl Explain for ExecError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Timeout { .. } | Self::HttpTimeout { .. } => ErrorKind::Timeout,
            Self::OutputLimit { .. } | Self::ResponseLimit { .. } => ErrorKind::OutputLimit,
            Self::ProgramNotFound { .. } | Self::NotExecutable { .. } | Self::EnvironmentFailed { .. } => {
                ErrorKind::MissingRequirement
            }
            Self::NulByte { .. }
            | Self::BadVariable { .. }
            | Self::ArgumentsTooLong { .. }
            | Self::WorkingFolder { .. }
            | Self::BadUrl { .. }
            | Self::BadRequest { .. } => ErrorKind::InvalidParams,
            Self::Tampered { .. } => ErrorKind::IntegrityMismatch,
            Self::UnsafePath { .. }
            | Self::BadRequirement { .. }
            | Self::BadPath { .. }
            | Self::BadHost { .. } => ErrorKind::InvalidManifest,
            Self::HostRefused { .. } => ErrorKind::Denied,
            Self::Unpermitted { fault } => fault.kind,
            Self::PinsDiffer { .. } => ErrorKind::LockfileMismatch,
            Self::SandboxUnavailable { .. } | Self::LimitUnavailable { .. } => ErrorKind::SandboxUnavailable,
            Self::Cancelled
            | Self::Lost
            | Self::HttpStatus { .. }
            | Self::TooManyRedirects { .. }
            | Self::NoToken { .. } => ErrorKind::ToolFailed,
            Self::Unreachable { .. } | Self::Untrusted { .. } => ErrorKind::UpstreamUnavailable,
            Self::Container(error) => error.kind(),
            Self::UnknownFile { .. } | Self::Io { .. } => ErrorKind::Internal,
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Timeout { .. } => "raise `timeout` in the tool's `config` if it needs longer".into(),
            Self::OutputLimit { .. } => "let the tool write less, or write to a file and return its name".into(),
            Self::ProgramNotFound { program, .. } => how_to_install(program),
            Self::NotExecutable { .. } => "check its execute permission and its `#!` line".into(),
            Self::ArgumentsTooLong { .. } => {
                "read large values from standard input, where all parameters are given as JSON".into()
            }
            Self::WorkingFolder { .. } => "check `cwd` in the tool's `config`".into(),
            Self::Tampered { .. } => "the file changed after it was verified: run the call again".into(),
            Self::SandboxUnavailable { .. } => {
                "install `bubblewrap` or allow user namespaces (sysctl `user.max_user_namespaces`, and with AppArmor `kernel.apparmor_restrict_unprivileged_userns=0`), or have `sandbox.backend` in `~/.ai/config/kiwi.toml` name `docker` or `podman`; `--isolation standard` runs the tool without a sandbox".into()
            }
            Self::LimitUnavailable { .. } => {
                "run Kiwi as root, or in a control group that is delegated to you, for example with `systemd-run --user --scope -p Delegate=yes kiwi …`; or drop the limit".into()
            }
            Self::BadPath { .. } => "correct the tool's `permissions`".into(),
            Self::Lost => "the tool, or the system's out-of-memory killer, ended Kiwi's launcher process".into(),
            Self::EnvironmentFailed { .. } => {
                "check the names in `requires`, the network, and for Python that wheels exist for this interpreter".into()
            }
            Self::PinsDiffer { .. } => "`kiwi lockfile update` pins what is there now".into(),
            Self::BadUrl { .. } => "an address starts with `http://` or `https://` and names a host, or is `unix:/path/of/socket:/path`".into(),
            Self::Container(error) => return error.hint(),
            Self::HttpTimeout { .. } => "raise `timeout` in the tool's `config` if the service needs longer".into(),
            Self::ResponseLimit { .. } => "ask for less, or raise `max_response`".into(),
            Self::HttpStatus { status: 401 | 403, .. } => "check the credentials the tool uses".into(),
            Self::Unreachable { .. } => "check the address and the network, then try again".into(),
            Self::Untrusted { .. } => "if it is a certificate of your own, `SSL_CERT_FILE` names a file of those to trust".into(),
            Self::HostRefused { .. } => "if the tool is meant to ask it, list it in `allow_hosts` of its `config`".into(),
            Self::Unpermitted { fault } => return fault.hint.clone(),
            Self::BadHost { .. } => {
                "list names, `*.suffix`, addresses or networks such as `10.0.0.0/8`, each with `:port` if it matters".into()
            }
            Self::NoToken { .. } => "check `token_url`, `client_id`, `scopes` and the secret in the tool's `auth`".into(),
            Self::NulByte { .. }
            | Self::BadVariable { .. }
            | Self::UnsafePath { .. }
            | Self::UnknownFile { .. }
            | Self::Cancelled
            | Self::BadRequirement { .. }
            | Self::BadRequest { .. }
            | Self::HttpStatus { .. }
            | Self::TooManyRedirects { .. }
            | Self::Io { .. } => return None,
        })
    }

    fn details(&self) -> Value {
        match self {
            Self::Timeout { after, stdout, stderr } => {
                json!({"timeout_s": after.as_secs_f64(), "stdout": tail(stdout), "stderr": tail(stderr)})
            }
            Self::HttpTimeout { url, after } => json!({"url": url, "timeout_s": after.as_secs_f64()}),
            Self::OutputLimit { stream, limit } => json!({
                "limit": limit,
                "stream": match stream { Stream::Stdout => "stdout", Stream::Stderr => "stderr" },
            }),
            Self::ProgramNotFound { program, searched } => json!({"program": program, "searched": searched}),
            Self::NotExecutable { program, why } => json!({"program": program, "why": why}),
            Self::ArgumentsTooLong { bytes } => json!({"bytes": bytes}),
            Self::WorkingFolder { path, .. } => json!({"cwd": path.display().to_string()}),
            Self::Tampered { path, expected, actual } => {
                json!({"file": path, "expected": expected, "actual": actual})
            }
            Self::SandboxUnavailable { level, why } => json!({"level": level.as_str(), "why": why}),
            Self::LimitUnavailable { limit, why } => json!({"limit": limit, "why": why}),
            Self::BadPath { path, why } => json!({"path": path.display().to_string(), "why": why}),
            Self::Cancelled => json!({"reason": "cancelled"}),
            Self::Lost => json!({"reason": "supervisor_lost"}),
            Self::EnvironmentFailed { requires, installer, output } => {
                json!({"requires": requires, "installer": installer, "output": output})
            }
            Self::PinsDiffer { differences } => differences
                .iter()
                .map(|it| json!({"name": it.name, "pinned": it.pinned, "installed": it.installed}))
                .collect(),
            Self::Container(error) => error.details(),
            Self::ResponseLimit { url, limit } => json!({"url": url, "limit": limit}),
            Self::HttpStatus { url, status, body } => json!({"url": url, "status": status, "body": body}),
            Self::TooManyRedirects { url, limit } => json!({"url": url, "limit": limit}),
            Self::Unreachable { url, why } | Self::Untrusted { url, why } => json!({"url": url, "why": why}),
            Self::HostRefused { host, address, .. } => json!({"host": host, "address": address}),
            Self::Unpermitted { fault } => fault.details.clone(),
            Self::NoToken { url, body, .. } => json!({"url": url, "body": body}),
            Self::NulByte { .. }
            | Self::BadVariable { .. }
            | Self::UnsafePath { .. }
            | Self::UnknownFile { .. }
            | Self::BadRequirement { .. }
            | Self::BadHost { .. }
            | Self::BadUrl { .. }
            | Self::BadRequest { .. }
            | Self::Io { .. } => Value::Null,
        }
    }
}

fn how_to_install(program: &str) -> String {
    let name = program.rsplit('/').next().unwrap_or(program);
    match name {
        "python" | "python3" => {
            "install Python 3, for example `apt install python3` or `uv python install`".into()
        }
        "node" => "install Node.js, for example `apt install nodejs`".into(),
        "npm" => "install npm, for example `apt install npm`; most other builds of Node.js bring it".into(),
        "uv" => "install uv: see https://docs.astral.sh/uv".into(),
        "docker" | "podman" => "install Docker or Podman and see that its service runs".into(),
        _ if program.contains('/') => format!("see that `{program}` exists"),
        _ => format!("install `{name}`, or add its folder to `PATH`"),
    }
}

/// The end of an output: enough to see what happened, small enough for a record.
fn tail(bytes: &[u8]) -> String {
    const KEPT: usize = 4096;
    String::from_utf8_lossy(bytes.get(bytes.len().saturating_sub(KEPT)..).unwrap_or(bytes)).into_owned()
}

fn seconds(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    if duration.subsec_nanos() == 0 { format!("{seconds:.0} s") } else { format!("{seconds:.3} s") }
}

fn list(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn differing(differences: &[PinDifference]) -> String {
    differences.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

fn last_line(output: &str) -> &str {
    output.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("it said nothing")
}
