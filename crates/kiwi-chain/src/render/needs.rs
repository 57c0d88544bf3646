//! What a call needs to touch.

use kiwi_model::Text;
use serde_json::{Map, Value};

use super::Renderer;
use crate::error::ChainError;
use crate::plan::Plan;
use crate::template::{Insert, Names, Rendered, as_text, render};
use crate::upstream::UpstreamCall;

/// What a call needs to touch, as the manifests of its chain declare it. Paths may be patterns, whose wildcards only a
/// manifest can write: in the value of a parameter or a variable, `\\` stands before each of them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Needs {
    /// What it reads.
    pub read: Vec<Text>,
    /// What it writes.
    pub write: Vec<Text>,
    /// Whether what it writes may also be made, replaced and removed, for which the folder around it is opened.
    pub replaces: bool,
    /// Whether it also sees what its caller may touch of the project: commands say what runs, not what that looks at.
    pub as_permitted: bool,
    /// Whom it talks to.
    pub hosts: Vec<String>,
    /// Which tools it calls.
    pub tools: Vec<String>,
    /// What it has a shell run: a string, or a list of words.
    pub commands: Vec<Value>,
    /// Actions of upstream servers, as pairs of server and action.
    pub actions: Vec<(String, String)>,
    /// Variables it reads.
    pub env: Vec<String>,
    /// Secrets it uses.
    pub secrets: Vec<String>,
}

/// What a plan with parameters needs to touch, whatever primitive it ends in.
pub fn needs(
    plan: &Plan,
    params: &Map<String, Value>,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Needs, ChainError> {
    let merged = plan.merged()?;
    let mut needs = Renderer::new(plan, merged, params, environment).needs(&merged.template)?;
    if let Some((server, action)) = UpstreamCall::target(merged) {
        needs.actions.push((server.to_owned(), action.name().to_owned()));
    }
    Ok(needs)
}

impl Renderer<'_> {
    /// What every link of the chain declares, together with what its configuration opens.
    pub(super) fn needs(&self, config: &Map<String, Value>) -> Result<Needs, ChainError> {
        let is_set = |name: &str| config.get(name) == Some(&Value::Bool(true));
        let mut needs =
            Needs { replaces: is_set("replaces"), as_permitted: is_set("as_permitted"), ..Needs::default() };
        let plain = |text: &String| self.plain(&Value::String(text.clone()));
        let path = |text: &str| match render(text, &Wildcards(self))? {
            Rendered::Value(value) => Ok(Text::literal(as_text(&value))),
            Rendered::Text(text) => Ok::<_, ChainError>(text),
        };
        for permissions in self.plan.tools().iter().map(|tool| &tool.manifest.permissions) {
            for pattern in self.stated_in(&permissions.filesystem_read) {
                needs.read.push(path(pattern)?);
            }
            for pattern in self.stated_in(&permissions.filesystem_write) {
                needs.write.push(path(pattern)?);
            }
            for (list, into) in [
                (&permissions.network_hosts, &mut needs.hosts),
                (&permissions.tools, &mut needs.tools),
                (&permissions.env, &mut needs.env),
                (&permissions.secrets, &mut needs.secrets),
            ] {
                for text in self.stated_in(list) {
                    into.push(plain(text)?);
                }
            }
            for command in self.stated_in(&permissions.shell_commands) {
                needs.commands.push(self.value(&Value::String(command.clone()))?);
            }
            for (server, actions) in &permissions.mcp_actions {
                for action in self.stated_in(actions) {
                    needs.actions.push((plain(server)?, plain(action)?));
                }
            }
        }
        for mount in config.get("mounts").and_then(Value::as_array).into_iter().flatten() {
            let is_writable = mount.get("mode").and_then(Value::as_str) == Some("rw");
            let into = if is_writable { &mut needs.write } else { &mut needs.read };
            let place = mount.get("path").unwrap_or(mount).as_str().unwrap_or_default();
            if !self.is_left_out(place) {
                into.push(path(place)?);
            }
        }
        match config.get("network") {
            Some(Value::Array(hosts)) => {
                for host in hosts {
                    needs.hosts.push(self.plain(host)?);
                }
            }
            Some(Value::String(_)) => needs.hosts.clear(),
            _ => {}
        }
        Ok(needs)
    }

    /// What a list declares, without what stands for a parameter that was left out.
    fn stated_in<'a>(&self, list: &'a [String]) -> impl Iterator<Item = &'a String> {
        list.iter().filter(|text| !self.is_left_out(text))
    }
}

/// The same names for a pattern of paths: what a caller gives is never a wildcard.
struct Wildcards<'a>(&'a Renderer<'a>);

impl Wildcards<'_> {
    fn plain(text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        for c in text.chars() {
            if matches!(c, '*' | '?' | '[' | '\\') {
                out.push('\\');
            }
            out.push(c);
        }
        out
    }
}

impl Names for Wildcards<'_> {
    type Error = ChainError;
    fn environment(&self, name: &str) -> Result<String, ChainError> {
        Names::environment(self.0, name).map(|value| Self::plain(&value))
    }
    fn insert(&self, name: &str) -> Result<Insert, ChainError> {
        Ok(match self.0.insert(name)? {
            Insert::Value(value) => {
                let text = as_text(&value);
                if text.contains('\0') {
                    return Err(self.0.nul(name));
                }
                Insert::Value(Value::String(Self::plain(&text)))
            }
            piece @ Insert::Piece(_) => piece,
        })
    }
    fn stray(&self, template: &str) -> ChainError {
        self.0.stray(template)
    }
}
