//! From a planned call to what it needs.

use kiwi_chain::{ContainerCall, Form, HttpCall, Invocation, Needs, Plan, invocation, needs};
use kiwi_model::{Explain as _, Fault, Piece, Text};
use serde_json::{Map, Value};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use super::glob::escape;
use super::kind::Kind;
use super::need::Need;
use super::shell::{Setting, needs_of_text, needs_of_words};
use crate::admission::{Judge, Objection};
use crate::host::Host;

/// Everything that a call needs: the tool itself, what its chain declares, the host it asks, the variables and secrets
/// it is given, the folders its container sees. `Err` where that cannot be told.
pub fn needs_of(
    plan: &Plan,
    params: &Map<String, Value>,
    host: &Host,
    project: &Path,
) -> Result<Vec<Need>, Box<Objection>> {
    // A variable that is not set is somebody else's to complain about.
    let environment =
        |name: &str| Some(host.environment.get(name).cloned().unwrap_or_else(|| Host::symbol(name)));
    let declared = needs(plan, params, &environment).map_err(|error| Box::new(untold(&error.fault())))?;
    // Whom a server's tool asks is among what the chain declares.
    let is_upstream = plan.tools().first().is_some_and(|leaf| leaf.form == Form::Upstream);
    let rendered = if is_upstream {
        None
    } else {
        Some(invocation(plan, params, &environment).map_err(|error| Box::new(untold(&error.fault())))?)
    };
    let mut needed = Vec::new();
    needed.extend(plan.tools().first().map(|tool| Need::tool(tool.manifest.tool_id.as_str())));
    needed.extend(paths(&declared, project));
    needed.extend(declared.hosts.iter().map(|pattern| Need::host(pattern)));
    needed.extend(declared.tools.iter().map(|pattern| Need::names(Kind::Tools, pattern)));
    needed.extend(declared.actions.iter().map(|(server, action)| Need::actions(server, action)));
    needed.extend(declared.env.iter().map(|pattern| Need::names(Kind::Env, pattern)));
    needed.extend(declared.secrets.iter().map(|pattern| Need::names(Kind::Secrets, pattern)));
    let required = plan.tools().iter().flat_map(|tool| &tool.manifest.requires_env);
    needed.extend(required.map(|name| Need::name(Kind::Env, name)));
    needed.extend(plan.secrets().iter().map(|name| Need::name(Kind::Secrets, name)));
    let cwd = match &rendered {
        Some(Invocation::Process(call)) => folder(call.cwd.as_ref(), project),
        Some(Invocation::Http(_) | Invocation::Upstream(_)) | None => project.to_path_buf(),
    };
    let setting = Setting { search_path: host.search_path(), cwd: &cwd, project };
    needed.extend(declared.commands.iter().flat_map(|command| needs_of_command(command, &setting)));
    match &rendered {
        Some(Invocation::Upstream(_)) | None => {}
        Some(Invocation::Http(call)) => needed.extend(hosts(call)),
        Some(Invocation::Process(call)) => {
            needed.extend(call.container.iter().flat_map(|container| container_needs(container, project)));
        }
    }
    Ok(needed)
}

/// What a command of a manifest needs: a string is a line for a shell, a list of strings the words of a program.
pub(crate) fn needs_of_command(command: &Value, setting: &Setting<'_>) -> Vec<Need> {
    let words = command.as_array().map(|words| words.iter().map(Value::as_str).collect::<Option<Vec<_>>>());
    match (command, words) {
        (Value::String(text), _) => needs_of_text(text, setting),
        (_, Some(Some(words))) if !words.is_empty() => {
            needs_of_words(&words.into_iter().map(str::to_owned).collect::<Vec<_>>(), setting)
        }
        _ => {
            let why = "a command is a string or a list of strings";
            vec![Need::opaque(Kind::ShellCommands, &command.to_string(), why)]
        }
    }
}

/// The folder a process starts in.
pub(crate) fn folder(cwd: Option<&Text>, project: &Path) -> PathBuf {
    let text = cwd.map(|cwd| in_project(cwd, project, str::to_owned));
    text.and_then(Result::ok).map_or_else(|| project.to_path_buf(), |text| project.join(text))
}

fn paths(declared: &Needs, project: &Path) -> Vec<Need> {
    let lists = [(Kind::FilesystemRead, &declared.read), (Kind::FilesystemWrite, &declared.write)];
    let one = |kind: Kind, text: &Text| match in_project(text, project, escape) {
        Ok(pattern) => Need::paths(kind, &pattern, project),
        Err(why) => Need::opaque(kind, &text.to_string(), why),
    };
    lists.into_iter().flat_map(|(kind, list)| list.iter().map(move |text| one(kind, text))).collect()
}

/// A text with the project's folder put in.
pub(crate) fn in_project(
    text: &Text,
    project: &Path,
    spell: impl Fn(&str) -> String,
) -> Result<String, &'static str> {
    text.resolve(|piece| match piece {
        Piece::Project => project.to_str().map(&spell).ok_or("the project's path is not Unicode"),
        _ => Err("it names a file of the tool, which it can read anyway"),
    })
}

fn hosts(call: &HttpCall) -> Vec<Need> {
    let auth = call.auth.as_ref().and_then(|auth| match &auth.scheme {
        kiwi_chain::AuthScheme::OAuth2 { token_url, .. } => Some(token_url),
        _ => None,
    });
    let need = |url: &String| match host_of(url) {
        Some(host) => Need::host(&host),
        None => Need::opaque(Kind::NetworkHosts, url, "whom it asks cannot be told from the address"),
    };
    [&call.url].into_iter().chain(auth).map(need).collect()
}

/// Host and port of an address. One that could be read in two ways is none.
fn host_of(url: &str) -> Option<String> {
    if let Some(rest) = url.strip_prefix("unix:") {
        return rest.split_once(":/").map(|(socket, _)| format!("unix:{socket}"));
    }
    let (rest, port) = match (url.strip_prefix("https://"), url.strip_prefix("http://")) {
        (Some(rest), _) => (rest, 443),
        (None, Some(rest)) => (rest, 80),
        (None, None) => return None,
    };
    let place = rest.split(['/', '\\', '?', '#']).next()?;
    let is_odd =
        |c: char| !c.is_ascii() || c.is_ascii_control() || c.is_ascii_whitespace() || "@%*".contains(c);
    if place.is_empty() || url.contains(char::is_control) || place.contains(is_odd) {
        return None;
    }
    if place.starts_with('[') {
        return Some(if place.ends_with(']') { format!("{place}:{port}") } else { place.to_owned() });
    }
    let (host, port) =
        place.split_once(':').map_or((place, port.to_string()), |(host, port)| (host, port.to_owned()));
    // Numbers are read as addresses in more ways than one.
    let last = host.trim_end_matches('.').rsplit('.').next().unwrap_or_default();
    let is_number = last.starts_with(|c: char| c.is_ascii_digit()) && host.parse::<IpAddr>().is_err();
    (!is_number && !host.is_empty()).then(|| format!("{host}:{port}"))
}

fn container_needs(container: &ContainerCall, project: &Path) -> Vec<Need> {
    let volume = |volume: &kiwi_chain::Volume| {
        let kind = if volume.is_writable { Kind::FilesystemWrite } else { Kind::FilesystemRead };
        match in_project(&volume.host, project, str::to_owned) {
            Ok(path) => Need::path(kind, &path, project),
            Err(why) => Need::opaque(kind, &volume.host.to_string(), why),
        }
    };
    let mut needed: Vec<Need> = container.volumes.iter().map(volume).collect();
    if container.network != "none" {
        // With a network any host can be reached.
        needed.push(Need::host("*"));
    }
    needed
}

fn untold(fault: &Fault) -> Objection {
    let objection = Objection::policy(
        Judge::Permission,
        "permission",
        format!("what it needs cannot be told: {}", fault.message),
    )
    .of_kind(fault.kind);
    fault.hint.iter().fold(objection, |objection, hint| objection.with_hint(hint.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_read_off_an_address_or_not_at_all() {
        for (url, host) in [
            ("https://api.example.org/x", Some("api.example.org:443")),
            ("http://api.example.org:8080?q", Some("api.example.org:8080")),
            ("https://a.org\\@b.org/", Some("a.org:443")),
            ("http://[::1]/x", Some("[::1]:80")),
            ("http://[::1]:9/x", Some("[::1]:9")),
            ("http://127.0.0.1/", Some("127.0.0.1:80")),
            ("unix:/run/x.sock:/v1", Some("unix:/run/x.sock")),
            ("http://2130706433/", None),
            ("http://0x7f.1/", None),
            ("https://user@evil.org/", None),
            ("https://\u{ff45}vil.org/", None),
            ("https://evil%2eorg/", None),
            ("ftp://x/", None),
        ] {
            assert_eq!(host_of(url).as_deref(), host, "{url}");
        }
    }
}
