//! One entry of another client, in our words.

use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::time::Duration;

use super::variables::respell;
use crate::client::Client;
use crate::server::{HttpAuth, Reach};

/// Keys that are taken over, or that say nothing we need.
const KNOWN: [&str; 38] = [
    "type",
    "transport",
    "command",
    "cmd",
    "args",
    "env",
    "environment",
    "envs",
    "env_keys",
    "env_vars",
    "cwd",
    "url",
    "httpUrl",
    "serverUrl",
    "uri",
    "headers",
    "http_headers",
    "env_http_headers",
    "bearer_token_env_var",
    "timeout",
    "startup_timeout_sec",
    "startup_timeout_ms",
    "tool_timeout_sec",
    "enabled",
    "disabled",
    "description",
    "oauth",
    "auth",
    "name",
    "bundled",
    "display_name",
    "gallery",
    "version",
    "id",
    "available_tools",
    "required",
    "dev",
    "startupTimeout",
];
/// Names of variables and headers whose values are secrets.
const SECRET: [&str; 6] = ["token", "key", "secret", "password", "authorization", "credential"];
/// A year: more is a mistake.
const MOST_SECONDS: u64 = 31_536_000;

/// What an entry comes to.
pub(super) struct Converted {
    pub(super) reach: Reach,
    pub(super) description: Option<String>,
    pub(super) timeout: Option<Duration>,
    pub(super) start_timeout: Option<Duration>,
}

struct Entry<'a> {
    client: Client,
    map: &'a Map<String, Value>,
    notes: &'a mut Vec<String>,
}

/// Converts an entry, or says why that cannot be done.
pub(super) fn convert(
    client: Client,
    map: &Map<String, Value>,
    notes: &mut Vec<String>,
) -> Result<Converted, String> {
    let is = |key: &str, flag: bool| map.get(key).and_then(Value::as_bool) == Some(flag);
    if is("enabled", false) || is("disabled", true) {
        return Err("it is switched off there".to_owned());
    }
    // Older files of goose have the entry one level deeper.
    if let Some(inner) = map.get("config").and_then(Value::as_object).filter(|_| client == Client::Goose) {
        return convert(client, inner, notes);
    }
    let mut entry = Entry { client, map, notes };
    let reach = entry.reach()?;
    let converted = Converted {
        reach,
        description: map
            .get("description")
            .and_then(Value::as_str)
            .map(str::to_owned)
            .filter(|it| !it.is_empty()),
        timeout: entry.seconds("tool_timeout_sec", 1).or_else(|| match client {
            Client::Goose => entry.seconds("timeout", 1),
            _ => entry.seconds("timeout", 1000),
        }),
        start_timeout: entry
            .seconds("startup_timeout_sec", 1)
            .or_else(|| entry.seconds("startup_timeout_ms", 1000)),
    };
    for key in map.keys().filter(|key| !KNOWN.contains(&key.as_str())) {
        entry.notes.push(format!("`{}` is not taken over", key.escape_debug()));
    }
    Ok(converted)
}

impl Entry<'_> {
    fn reach(&mut self) -> Result<Reach, String> {
        let kind = self.text("type").or_else(|| self.text("transport"));
        match kind.as_deref() {
            None
            | Some(
                "stdio" | "local" | "http" | "remote" | "streamable-http" | "streamableHttp"
                | "streamable_http",
            ) => {}
            Some("sse") => {
                return Err("it speaks SSE, which servers have left for streamable HTTP".to_owned());
            }
            Some(kind @ ("builtin" | "platform" | "frontend" | "inline_python")) => {
                return Err(format!("it is part of {} itself (`{kind}`)", self.client));
            }
            Some(kind) => {
                return Err(format!("it is reached by `{}`, which is not known", kind.escape_debug()));
            }
        }
        let url =
            ["httpUrl", "url", "serverUrl", "uri"].into_iter().find_map(|key| Some((key, self.text(key)?)));
        let command = self.command()?;
        match (command, url) {
            (Some((command, args)), _) => self.stdio(command, args),
            (None, Some((key, url))) => {
                if self.client == Client::Gemini && key == "url" && kind.is_none() {
                    self.notes
                        .push("`url` means SSE there; here it is reached by streamable HTTP".to_owned());
                }
                self.http(&url)
            }
            (None, None) => Err("it has neither a command nor an address".to_owned()),
        }
    }

    /// The program and its arguments; opencode has both in one list.
    fn command(&mut self) -> Result<Option<(String, Vec<String>)>, String> {
        let key = if self.map.contains_key("command") { "command" } else { "cmd" };
        let mut args = self.list("args")?;
        let program = match self.map.get(key) {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::String(command)) => command.clone(),
            Some(Value::Array(_)) => {
                let mut words = self.list(key)?.into_iter();
                let program = words.next().ok_or("its command is empty")?;
                args = words.chain(args).collect();
                program
            }
            Some(_) => return Err(format!("its `{key}` is no text")),
        };
        let program = respell(self.client, &program, self.notes);
        if program.rsplit('/').next() == Some("kiwi") && args.first().is_some_and(|first| first == "mcp") {
            return Err("it is Kiwi itself".to_owned());
        }
        Ok(Some((program, args)))
    }

    fn stdio(&mut self, command: String, args: Vec<String>) -> Result<Reach, String> {
        let mut env = BTreeMap::new();
        for key in ["env", "environment", "envs"] {
            env.extend(self.texts(key)?);
        }
        // Names of variables that are passed on, or looked up in the client's own store.
        for key in ["env_keys", "env_vars"] {
            for item in self.map.get(key).and_then(Value::as_array).into_iter().flatten() {
                let name = item
                    .as_str()
                    .or_else(|| item.get("name")?.as_str())
                    .ok_or(format!("its `{key}` is no list of names"))?;
                env.entry(name.to_owned()).or_insert_with(|| format!("${{{name}}}"));
            }
        }
        self.warn_of_secrets(&env);
        let cwd = self.text("cwd").map(|cwd| respell(self.client, &cwd, self.notes));
        Ok(Reach::Stdio { command, args, env, cwd })
    }

    fn http(&mut self, url: &str) -> Result<Reach, String> {
        let mut headers = self.texts("headers")?;
        headers.extend(self.texts("http_headers")?);
        for (name, variable) in self.texts("env_http_headers")? {
            headers.insert(name, format!("${{{variable}}}"));
        }
        if let Some(variable) = self.text("bearer_token_env_var") {
            headers.insert("Authorization".to_owned(), format!("Bearer ${{{variable}}}"));
        }
        self.warn_of_secrets(&headers);
        let wants_oauth = |key: &str| match self.map.get(key) {
            Some(Value::Object(map)) => map.get("enabled").and_then(Value::as_bool) != Some(false),
            Some(Value::String(word)) => word == "oauth",
            Some(Value::Bool(flag)) => *flag,
            _ => false,
        };
        let auth = if wants_oauth("oauth") || wants_oauth("auth") { HttpAuth::Oauth } else { HttpAuth::None };
        if auth == HttpAuth::Oauth
            && self.map.get("oauth").and_then(Value::as_object).is_some_and(|it| !it.is_empty())
        {
            self.notes.push("what `oauth` says there is not taken over: it is asked for anew".to_owned());
        }
        Ok(Reach::Http { url: respell(self.client, url, self.notes), headers, auth })
    }

    fn text(&self, key: &str) -> Option<String> {
        self.map.get(key).and_then(Value::as_str).map(str::to_owned)
    }

    /// A list of texts; numbers and flags are what they would be as arguments.
    fn list(&mut self, key: &str) -> Result<Vec<String>, String> {
        let items = match self.map.get(key) {
            None | Some(Value::Null) => return Ok(Vec::new()),
            Some(Value::Array(items)) => items,
            Some(_) => return Err(format!("its `{key}` is no list")),
        };
        let mut texts = Vec::new();
        for item in items {
            let text = scalar(item).ok_or_else(|| format!("its `{key}` is no list of texts"))?;
            texts.push(respell(self.client, &text, self.notes));
        }
        Ok(texts)
    }

    fn texts(&mut self, key: &str) -> Result<BTreeMap<String, String>, String> {
        let map = match self.map.get(key) {
            None | Some(Value::Null) => return Ok(BTreeMap::new()),
            Some(Value::Object(map)) => map,
            Some(_) => return Err(format!("its `{key}` is no map")),
        };
        let mut texts = BTreeMap::new();
        for (name, value) in map {
            // VS Code takes a variable away by `null`.
            if value.is_null() {
                continue;
            }
            let text =
                scalar(value).ok_or_else(|| format!("its `{key}.{}` is no text", name.escape_debug()))?;
            texts.insert(name.clone(), respell(self.client, &text, self.notes));
        }
        Ok(texts)
    }

    fn seconds(&self, key: &str, per_second: u64) -> Option<Duration> {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is checked to fit")]
        let number = match self.map.get(key)? {
            Value::Number(number) => number.as_u64().or_else(|| {
                number.as_f64().filter(|float| (0.0..1e12).contains(float)).map(|float| float.ceil() as u64)
            })?,
            _ => return None,
        };
        let seconds = number.div_ceil(per_second);
        (1..=MOST_SECONDS).contains(&seconds).then(|| Duration::from_secs(seconds))
    }

    fn warn_of_secrets(&mut self, values: &BTreeMap<String, String>) {
        for (name, value) in values {
            let lower = name.to_lowercase();
            let is_secret = SECRET.iter().any(|word| lower.contains(word));
            if is_secret && !value.is_empty() && !value.contains("${") {
                let shown = name.escape_debug();
                self.notes.push(format!(
                    "the value of `{shown}` is written out in the file: a variable keeps it out"
                ));
            }
        }
    }
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}
