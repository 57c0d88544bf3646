//! Other programs that speak MCP as clients: where each keeps its servers, and in which words.

use serde_json::{Value, json};
use std::path::{Path, PathBuf};

use crate::edit::Format;

/// A program that uses MCP servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Client {
    ClaudeCode,
    ClaudeDesktop,
    Codex,
    Cursor,
    Gemini,
    Goose,
    Opencode,
    Vscode,
}

/// Whose settings of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The user's, everywhere.
    User,
    /// A project's.
    Project,
}

impl Scope {
    /// The spelling used in flags and output.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
        }
    }
}

/// Where clients look for their settings.
#[derive(Debug, Clone)]
pub struct Places {
    /// The user's own folder.
    pub home: Option<PathBuf>,
    /// Where programs keep settings: `XDG_CONFIG_HOME`, else `.config` in the user's own folder.
    pub config: Option<PathBuf>,
    /// Where Codex keeps its own, if it was told so (`CODEX_HOME`).
    pub codex: Option<PathBuf>,
    /// The project.
    pub project: Option<PathBuf>,
}

impl Client {
    /// Every client, by name.
    pub const ALL: [Self; 8] = [
        Self::ClaudeCode,
        Self::ClaudeDesktop,
        Self::Codex,
        Self::Cursor,
        Self::Gemini,
        Self::Goose,
        Self::Opencode,
        Self::Vscode,
    ];

    /// The clients into whose settings Kiwi can be written.
    pub const INSTALLABLE: [Self; 7] = [
        Self::ClaudeCode,
        Self::Codex,
        Self::Cursor,
        Self::Gemini,
        Self::Goose,
        Self::Opencode,
        Self::Vscode,
    ];

    /// The spelling used in arguments and output.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::ClaudeDesktop => "claude-desktop",
            Self::Codex => "codex",
            Self::Cursor => "cursor",
            Self::Gemini => "gemini",
            Self::Goose => "goose",
            Self::Opencode => "opencode",
            Self::Vscode => "vscode",
        }
    }

    /// The client of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|client| client.as_str() == name)
    }

    /// The file where it keeps its servers; none where it has none of that kind.
    pub fn file(self, scope: Scope, places: &Places) -> Option<PathBuf> {
        match scope {
            Scope::Project => {
                let project = places.project.as_deref()?;
                Some(project.join(match self {
                    Self::ClaudeCode => ".mcp.json",
                    Self::Codex => ".codex/config.toml",
                    Self::Cursor => ".cursor/mcp.json",
                    Self::Gemini => ".gemini/settings.json",
                    Self::Opencode => return Some(either(project, "opencode.json", "opencode.jsonc")),
                    Self::Vscode => ".vscode/mcp.json",
                    Self::ClaudeDesktop | Self::Goose => return None,
                }))
            }
            Scope::User => {
                let (home, config) = (places.home.as_deref(), places.config.as_deref());
                match self {
                    Self::ClaudeCode => home.map(|home| home.join(".claude.json")),
                    Self::ClaudeDesktop => {
                        config.map(|config| config.join("Claude/claude_desktop_config.json"))
                    }
                    Self::Codex => {
                        let own = places.codex.clone().or_else(|| home.map(|home| home.join(".codex")));
                        own.map(|folder| folder.join("config.toml"))
                    }
                    Self::Cursor => home.map(|home| home.join(".cursor/mcp.json")),
                    Self::Gemini => home.map(|home| home.join(".gemini/settings.json")),
                    Self::Goose => config.map(|config| config.join("goose/config.yaml")),
                    Self::Opencode => config
                        .map(|config| either(&config.join("opencode"), "opencode.json", "opencode.jsonc")),
                    Self::Vscode => config.map(|config| config.join("Code/User/mcp.json")),
                }
            }
        }
    }

    /// The language its file is written in.
    pub(crate) const fn format(self) -> Format {
        match self {
            Self::Codex => Format::Toml,
            Self::Goose => Format::Yaml,
            _ => Format::Json,
        }
    }

    /// The keys that lead to its servers in what its file says now.
    pub(crate) fn path(self, file: &Value) -> &'static [&'static str] {
        match self {
            Self::Codex => &["mcp_servers"],
            Self::Goose => &["extensions"],
            Self::Vscode => &["servers"],
            Self::Opencode if has_nested_servers(file) => &["mcp", "servers"],
            Self::Opencode => &["mcp"],
            Self::ClaudeCode | Self::ClaudeDesktop | Self::Cursor | Self::Gemini => &["mcpServers"],
        }
    }

    /// The entry that starts a program as a server, in this client's words.
    pub(crate) fn entry(self, program: &str, args: &[String], file: &Value) -> Value {
        match self {
            Self::ClaudeCode | Self::Vscode => json!({"type": "stdio", "command": program, "args": args}),
            Self::Goose => json!({
                "enabled": true,
                "type": "stdio",
                "name": "kiwi",
                "description": "Governed tools",
                "cmd": program,
                "args": args,
                "timeout": 300,
            }),
            Self::Opencode => {
                let command: Vec<&str> =
                    std::iter::once(program).chain(args.iter().map(String::as_str)).collect();
                let mut entry = json!({"type": "local", "command": command});
                // The newer form knows `disabled` instead.
                if let Some(entry) = entry.as_object_mut().filter(|_| !has_nested_servers(file)) {
                    entry.insert("enabled".to_owned(), Value::Bool(true));
                }
                entry
            }
            Self::ClaudeDesktop | Self::Codex | Self::Cursor | Self::Gemini => {
                json!({"command": program, "args": args})
            }
        }
    }
}

/// Whether opencode's servers are one level deeper, as in its newer form. A server may have the name `servers` itself.
fn has_nested_servers(file: &Value) -> bool {
    let servers = file.get("mcp").and_then(|mcp| mcp.get("servers")).and_then(Value::as_object);
    servers.is_some_and(|servers| servers.values().all(Value::is_object))
}

/// The second of two names where only it is there, else the first.
fn either(folder: &Path, first: &str, second: &str) -> PathBuf {
    let (first, second) = (folder.join(first), folder.join(second));
    if !first.exists() && second.exists() { second } else { first }
}

impl std::fmt::Display for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}
