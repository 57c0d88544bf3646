//! From a merged configuration and parameters to something a primitive can do.

mod needs;

use kiwi_model::manifest::is_timeout;
use kiwi_model::yaml::Place;
use kiwi_model::{Language, ManifestError, Piece, Space, Text, canonical};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;

use crate::container::{self, ContainerCall};
use crate::error::ChainError;
use crate::http::{AuthCall, AuthScheme, HostChoice, HttpBody, HttpCall};
use crate::merge::{Entrypoint, Merged, Primitive};
use crate::plan::Plan;
use crate::template::{Insert, Names, Rendered, alone, as_text, render};
use crate::upstream::UpstreamCall;

pub use needs::{Needs, needs};

/// Larger values reach a tool on standard input only.
const MAX_PARAM_VARIABLE: usize = 4096;

/// What a primitive is asked to do. Paths that depend on the machine are still symbolic.
#[derive(Debug, Clone, PartialEq)]
pub enum Invocation {
    /// Start a program.
    Process(ProcessCall),
    /// Make a request.
    Http(HttpCall),
    /// Ask an upstream server.
    Upstream(UpstreamCall),
}

/// One program start.
#[derive(Debug, Clone, PartialEq)]
pub struct ProcessCall {
    /// The program: a name, a path, or a file of the chain.
    pub program: Text,
    /// Its arguments.
    pub args: Vec<Text>,
    /// Which argument is the entrypoint file; a runner goes in front of it.
    pub entrypoint_at: Option<usize>,
    /// Variables the manifest and the parameters give, by name.
    pub env: BTreeMap<String, Text>,
    /// Parameters that are too long for a variable: standard input alone has them.
    pub too_long: Vec<String>,
    /// The working directory, if not the project root.
    pub cwd: Option<Text>,
    /// What it reads.
    pub stdin: Text,
    /// Seconds it may take.
    pub timeout: Option<f64>,
    /// Bytes it may print.
    pub output: Option<u64>,
    /// The language whose packages go into an environment of their own.
    pub environment: Option<Language>,
    /// What its manifests say it needs to touch.
    pub needs: Needs,
    /// What it may use.
    pub limits: Limits,
    /// The container that the program is to run.
    pub container: Option<Box<ContainerCall>>,
}

/// What a call may use, as its configuration says.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Limits {
    /// Seconds of processor time.
    pub cpu: Option<f64>,
    /// Bytes of memory.
    pub memory: Option<u64>,
    /// Processes at one time.
    pub pids: Option<u64>,
    /// Open files.
    pub files: Option<u64>,
}

impl Invocation {
    /// A canonical description with machine-dependent paths symbolic: equal on every machine for equal plans.
    pub fn describe(&self) -> Value {
        match self {
            Self::Process(call) => with_container(
                call,
                json!({
                    "program": call.program.to_string(),
                    "args": call.args.iter().map(ToString::to_string).collect::<Vec<_>>(),
                    "env": call.env.iter().map(|(name, value)| (name.clone(), value.to_string().into())).collect::<Map<_, _>>(),
                    "cwd": call.cwd.as_ref().map_or_else(|| Text(vec![Piece::Project]).to_string(), ToString::to_string),
                    "stdin": call.stdin.to_string(),
                }),
            ),
            Self::Http(call) => call.describe(),
            Self::Upstream(call) => call.describe(),
        }
    }
}

fn with_container(call: &ProcessCall, mut described: Value) -> Value {
    if let (Value::Object(map), Some(container)) = (&mut described, &call.container) {
        map.insert(container::KEY.into(), container.describe());
    }
    described
}

/// Renders a plan with parameters. `environment` answers for host variables.
pub fn invocation(
    plan: &Plan,
    params: &Map<String, Value>,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Invocation, ChainError> {
    let merged = plan.merged()?;
    if let Some((server, action)) = UpstreamCall::target(merged) {
        let timeout = Renderer::new(plan, merged, params, environment).timeout(&merged.template)?;
        let arguments = params.clone();
        return Ok(Invocation::Upstream(UpstreamCall {
            server: server.to_owned(),
            action,
            arguments,
            timeout,
        }));
    }
    let renderer = Renderer::new(plan, merged, params, environment);
    match merged.primitive {
        Primitive::Subprocess => renderer.process(merged).map(Invocation::Process),
        Primitive::HttpClient => renderer.http(&merged.template).map(Invocation::Http),
    }
}

fn limits(config: &Map<String, Value>) -> Limits {
    let limit = |name: &str| config.get("limits").and_then(|limits| limits.get(name));
    let whole = |name: &str| limit(name).and_then(Value::as_u64);
    Limits {
        cpu: limit("cpu").and_then(Value::as_f64),
        memory: whole("memory"),
        pids: whole("pids"),
        files: whole("files"),
    }
}

struct Renderer<'a> {
    plan: &'a Plan,
    params: &'a Map<String, Value>,
    environment: &'a dyn Fn(&str) -> Option<String>,
    entrypoint: Option<&'a Entrypoint>,
    env: Option<&'a Value>,
}

impl<'a> Renderer<'a> {
    fn new(
        plan: &'a Plan,
        merged: &'a Merged,
        params: &'a Map<String, Value>,
        environment: &'a dyn Fn(&str) -> Option<String>,
    ) -> Self {
        let (entrypoint, env) = (merged.entrypoint.as_ref(), merged.template.get("env"));
        Self { plan, params, environment, entrypoint, env }
    }
}

impl Renderer<'_> {
    fn process(&self, merged: &Merged) -> Result<ProcessCall, ChainError> {
        let config = &merged.template;
        let (mut env, too_long) = self.param_variables()?;
        let Some(command) = config.get("command") else {
            let hint = "call a tool that rests on it, or give one a `config.command`".to_owned();
            return Err(self.problem("nothing in the chain says which program to start", Some(hint)));
        };
        let program = self.text(command)?;
        let mut args = Vec::new();
        for arg in config.get("args").and_then(Value::as_array).into_iter().flatten() {
            args.push(self.text(arg)?);
        }
        let entry = match self.entrypoint {
            Some(Entrypoint::File(path)) => Some(Text::file(0, path.clone())),
            _ => None,
        };
        let entrypoint_at = entry.and_then(|entry| args.iter().position(|arg| *arg == entry));
        for name in self.plan.tools().iter().flat_map(|tool| &tool.manifest.requires_env) {
            env.insert(name.clone(), Text::literal(self.environment(name)?));
        }
        for (name, value) in self.entries(config.get("env")) {
            env.insert(name.clone(), self.text(value)?);
        }
        let stdin = match config.get("stdin") {
            Some(stdin) => self.text(stdin)?,
            None => Text::literal(Value::Object(self.params.clone()).to_string()),
        };
        Ok(ProcessCall {
            program,
            args,
            entrypoint_at,
            env,
            too_long,
            cwd: self.stated(config, "cwd").map(|cwd| self.text(cwd)).transpose()?,
            stdin,
            timeout: self.timeout(config)?,
            output: config.get("limits").and_then(|limits| limits.get("output")?.as_u64()),
            environment: merged.language(),
            needs: self.needs(config)?,
            limits: limits(config),
            container: self.container(config)?,
        })
    }

    /// Seconds: a number, or the parameter that gives it. What is not understood would limit nothing, and is refused.
    fn timeout(&self, config: &Map<String, Value>) -> Result<Option<f64>, ChainError> {
        let Some(stated) = self.stated(config, "timeout") else { return Ok(None) };
        let given = self.value(stated)?;
        let seconds = given.as_f64().or_else(|| given.as_str()?.trim().parse().ok());
        let problem = || {
            let message = format!("{given} is no timeout: it is given in seconds, above 0 and up to a year");
            let schema = self.plan.tools().first().and_then(|leaf| leaf.manifest.parameters.clone());
            ChainError::InvalidParams { problems: vec![message], schema: schema.unwrap_or_default() }
        };
        seconds.filter(|seconds| is_timeout(*seconds)).map(Some).ok_or_else(problem)
    }

    /// Whether this is a parameter and nothing else, and the caller left it out: what has a name is then left out too.
    fn is_left_out(&self, template: &str) -> bool {
        alone(template).is_some_and(|name| {
            self.ours(name).is_none() && !self.params.contains_key(name) && self.is_declared(name)
        })
    }

    /// The value of a key, unless its parameter was left out.
    fn stated<'a>(&self, config: &'a Map<String, Value>, key: &str) -> Option<&'a Value> {
        config.get(key).filter(|value| !value.as_str().is_some_and(|text| self.is_left_out(text)))
    }

    /// The entries of a map, without those whose parameter was left out.
    fn entries<'a>(&self, map: Option<&'a Value>) -> impl Iterator<Item = (&'a String, &'a Value)> {
        let map = map.and_then(Value::as_object);
        map.into_iter().flat_map(|map| map.iter().filter(|(name, _)| self.stated(map, name).is_some()))
    }

    fn container(&self, config: &Map<String, Value>) -> Result<Option<Box<ContainerCall>>, ChainError> {
        let section = config.get(container::KEY).and_then(Value::as_object);
        section
            .map(|section| ContainerCall::read(section, |value| self.text(value)).map(Box::new))
            .transpose()
    }

    fn http(&self, config: &Map<String, Value>) -> Result<HttpCall, ChainError> {
        let plain = |key: &str| self.stated(config, key).map(|value| self.plain(value)).transpose();
        let pairs = |key: &str| -> Result<Vec<(String, String)>, ChainError> {
            let mut pairs = Vec::new();
            for (name, value) in self.entries(config.get(key)) {
                match self.value(value)? {
                    Value::Null => {}
                    Value::Array(items) => {
                        pairs.extend(items.iter().map(|item| (name.clone(), as_text(item))));
                    }
                    other => pairs.push((name.clone(), as_text(&other))),
                }
            }
            Ok(pairs)
        };
        let body = if let Some(json) = self.stated(config, "json") {
            HttpBody::Json(self.value(json)?)
        } else if let Some(body) = plain("body")? {
            HttpBody::Text(body)
        } else if config.contains_key("form") {
            HttpBody::Form(pairs("form")?)
        } else {
            HttpBody::Empty
        };
        let template = config.get("url").and_then(Value::as_str).unwrap_or_default();
        let url = match render(template, &Escaping(self))? {
            Rendered::Value(value) => as_text(&value),
            Rendered::Text(text) => self.literal(&text)?,
        };
        let strings = |value: &Value| -> Vec<String> {
            value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let allow_hosts = config.get("allow_hosts").map(strings);
        let auth = config.get("auth").map(|auth| self.auth(auth, strings)).transpose()?;
        let choice = HostChoice::of(template);
        if auth.is_some() && choice == HostChoice::Caller && allow_hosts.is_none() {
            let hint = "name the host in `url`, or list the hosts it may be in `allow_hosts`".to_owned();
            return Err(
                self.problem("`auth` would send a secret to whatever host a caller names", Some(hint))
            );
        }
        let declared = self.plan.tools().iter().flat_map(|tool| &tool.manifest.permissions.network_hosts);
        Ok(HttpCall {
            method: plain("method")?.unwrap_or_else(|| "GET".into()),
            url,
            host_is_named: choice == HostChoice::Manifest,
            allow_hosts,
            declared_hosts: declared.filter(|host| !host.contains(['{', '$'])).cloned().collect(),
            headers: pairs("headers")?.into_iter().collect(),
            query: pairs("query")?,
            body,
            auth,
            timeout: self.timeout(config)?,
            retries: config
                .get("retries")
                .and_then(Value::as_u64)
                .map_or(0, |times| u32::try_from(times).unwrap_or(u32::MAX)),
            max_response: config.get("max_response").and_then(Value::as_u64),
            follow_redirects: config.get("follow_redirects").and_then(Value::as_bool).unwrap_or(true),
            response: plain("response")?,
        })
    }

    /// Who asks. What names a secret, and where it is sent, is taken as it stands: no template has a say in it.
    fn auth(&self, auth: &Value, strings: impl Fn(&Value) -> Vec<String>) -> Result<AuthCall, ChainError> {
        let word = |key: &str| -> Result<&str, ChainError> {
            let word = auth.get(key).and_then(Value::as_str);
            word.ok_or_else(|| self.problem(format!("`auth` lacks `{key}`"), None))
        };
        let rendered = |key: &str| self.plain(&Value::from(word(key)?));
        let scheme = match (word("type")?, auth.get("in").and_then(Value::as_str)) {
            ("bearer", _) => AuthScheme::Bearer,
            ("basic", _) => AuthScheme::Basic { username: rendered("username")? },
            ("api_key", Some("header")) => AuthScheme::KeyInHeader { name: word("name")?.to_owned() },
            ("api_key", Some("query")) => AuthScheme::KeyInQuery { name: word("name")?.to_owned() },
            ("oauth2_client_credentials", _) => AuthScheme::OAuth2 {
                token_url: word("token_url")?.to_owned(),
                client_id: rendered("client_id")?,
                scopes: auth.get("scopes").map(strings).unwrap_or_default(),
            },
            (other, _) => return Err(self.problem(format!("`{other}` is no type of `auth`"), None)),
        };
        Ok(AuthCall { secret: word("secret")?.to_owned(), scheme })
    }

    /// `KIWI_PARAM_NAME` for every parameter that fits into a variable, and the names of those that do not.
    fn param_variables(&self) -> Result<(BTreeMap<String, Text>, Vec<String>), ChainError> {
        let (mut variables, mut too_long) = (BTreeMap::new(), Vec::new());
        for (name, value) in self.params {
            let text = match value {
                Value::String(text) => text.clone(),
                other => canonical(other).unwrap_or_else(|_| other.to_string()),
            };
            if text.contains('\0') || name.contains('\0') {
                return Err(self.nul(name));
            }
            if text.len() > MAX_PARAM_VARIABLE {
                too_long.push(name.clone());
                continue;
            }
            let name: String = name
                .chars()
                .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' })
                .collect();
            variables.insert(format!("KIWI_PARAM_{name}"), Text::literal(text));
        }
        Ok((variables, too_long))
    }

    fn nul(&self, name: &str) -> ChainError {
        let problem =
            format!("`{}` holds a NUL character, which no program can be given", name.escape_debug());
        ChainError::InvalidParams {
            problems: vec![problem],
            schema: self.plan.parameters().cloned().unwrap_or(Value::Null),
        }
    }

    /// What a name of ours stands for.
    fn ours(&self, name: &str) -> Option<Piece> {
        match (name, self.entrypoint) {
            ("entrypoint", Some(Entrypoint::File(path))) => Some(Piece::File { link: 0, path: path.clone() }),
            ("entrypoint", Some(Entrypoint::Name(name))) => Some(Piece::Literal(name.clone())),
            ("tool_dir", _) => Some(Piece::Folder { link: 0 }),
            ("project_dir", _) => Some(Piece::Project),
            // Only a runtime of the system may start the binary itself.
            ("kiwi", _) if self.plan.tools().get(1).is_some_and(|tool| tool.space == Space::System) => {
                Some(Piece::Kiwi)
            }
            _ => None,
        }
    }

    /// Whether a parameter of this name is known, given or not.
    fn is_declared(&self, name: &str) -> bool {
        let properties = self.plan.parameters().and_then(|schema| schema.get("properties"));
        properties.is_some_and(|properties| properties.get(name).is_some())
    }

    /// A value with every string in it rendered; a string that is one parameter keeps the parameter's type.
    fn value(&self, value: &Value) -> Result<Value, ChainError> {
        Ok(match value {
            Value::String(text) => match render(text, self)? {
                Rendered::Value(value) => value,
                Rendered::Text(text) => Value::String(self.literal(&text)?),
            },
            Value::Array(items) => {
                Value::Array(items.iter().map(|item| self.value(item)).collect::<Result<_, _>>()?)
            }
            Value::Object(_) => Value::Object(
                self.entries(Some(value))
                    .map(|(key, item)| Ok((key.clone(), self.value(item)?)))
                    .collect::<Result<_, ChainError>>()?,
            ),
            other => other.clone(),
        })
    }

    fn text(&self, value: &Value) -> Result<Text, ChainError> {
        let text = match value {
            Value::String(template) => match render(template, self)? {
                Rendered::Text(text) => text,
                Rendered::Value(value) => Text::literal(as_text(&value)),
            },
            other => Text::literal(as_text(other)),
        };
        let has_nul =
            text.0.iter().any(|piece| matches!(piece, Piece::Literal(literal) if literal.contains('\0')));
        if has_nul { Err(self.nul(&text.to_string())) } else { Ok(text) }
    }

    fn plain(&self, value: &Value) -> Result<String, ChainError> {
        let text = self.text(value)?;
        self.literal(&text)
    }

    fn literal(&self, text: &Text) -> Result<String, ChainError> {
        text.as_literal().ok_or_else(|| self.problem("a request cannot name files of the tool", None))
    }

    fn problem(&self, message: impl Into<String>, hint: Option<String>) -> ChainError {
        let file = self.plan.tools().first().map(|tool| tool.path.clone()).unwrap_or_default();
        ManifestError::one(file, message, hint, Place { line: 1, column: 1 }).into()
    }
}

impl Names for Renderer<'_> {
    type Error = ChainError;

    fn environment(&self, name: &str) -> Result<String, ChainError> {
        let literal = self
            .env
            .and_then(|env| env.get(name))
            .and_then(Value::as_str)
            .filter(|value| !value.contains(['$', '{', '}']));
        if let Some(literal) = literal {
            return Ok(literal.to_owned());
        }
        let listed = self
            .plan
            .tools()
            .iter()
            .any(|tool| tool.manifest.requires_env.iter().any(|listed| listed == name))
            || self.env.is_some_and(|env| env.get(name).is_some());
        if !listed {
            let hint = Some(format!("list `{name}` in `requires_env`"));
            return Err(
                self.problem(format!("`${{{name}}}` is used but the manifest does not list `{name}`"), hint)
            );
        }
        (self.environment)(name).ok_or_else(|| ChainError::MissingEnvironment {
            name: name.to_owned(),
            tool: self.plan.tools().first().map(|tool| tool.name()).unwrap_or_default(),
        })
    }

    /// Names of ours win over parameters: a caller must not choose what `{entrypoint}` is.
    fn insert(&self, name: &str) -> Result<Insert, ChainError> {
        if let Some(piece) = self.ours(name) {
            return Ok(Insert::Piece(piece));
        }
        if let Some(value) = self.params.get(name) {
            return Ok(Insert::Value(value.clone()));
        }
        if self.is_declared(name) {
            let problems = vec![format!("`{name}` is needed by the tool's configuration and was not given")];
            return Err(ChainError::InvalidParams {
                problems,
                schema: self.plan.parameters().cloned().unwrap_or(Value::Null),
            });
        }
        let hint =
            Some(format!("declare a parameter `{name}`, or write `{{{{` and `}}}}` for literal braces"));
        Err(self.problem(format!("the template `{{{name}}}` stands for nothing"), hint))
    }

    fn stray(&self, template: &str) -> ChainError {
        self.problem(
            format!("a brace in `{template}` starts no template"),
            Some("write `{{` and `}}` for literal braces".into()),
        )
    }
}

/// The same names, escaped for a URL, so that a value can never change the path's shape or the host.
struct Escaping<'a>(&'a Renderer<'a>);

impl Names for Escaping<'_> {
    type Error = ChainError;
    fn environment(&self, name: &str) -> Result<String, ChainError> {
        Names::environment(self.0, name)
    }
    fn insert(&self, name: &str) -> Result<Insert, ChainError> {
        Ok(match self.0.insert(name)? {
            Insert::Value(value) => Insert::Value(Value::String(escape(&as_text(&value)))),
            piece @ Insert::Piece(_) => piece,
        })
    }
    fn stray(&self, template: &str) -> ChainError {
        self.0.stray(template)
    }
}

fn escape(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}
