//! What is typed about a call, by whichever command.

use camino::Utf8PathBuf;
use kiwi_gate::{Arguments, Request, Session};
use kiwi_model::{ErrorKind, Fault, Isolation, Permissions, ToolRef, strict_json};
use kiwi_space::ProfileLayer;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::io::Read;

use crate::context::Context;

/// A call as it is typed.
#[derive(Debug, clap::Args)]
pub struct CallArgs {
    /// The tool, and after `@` the versions that will do: `tool`, `tool@1.4.0`, `tool@^2`.
    tool: String,
    /// Parameters as `name=value`, read as the tool's schema says.
    #[arg(value_name = "NAME=VALUE")]
    assignments: Vec<String>,
    /// Parameters as one JSON object: in place, from `@FILE`, or from standard input with `-`.
    #[arg(long, value_name = "JSON|@FILE|-")]
    params: Option<String>,
    /// Hold the tool at least this tightly: trusted, standard, sandboxed or restricted.
    #[arg(long, value_name = "LEVEL")]
    isolation: Option<Isolation>,
    /// Permit no more than this YAML file lists. It narrows the profile, never widens it.
    #[arg(long, value_name = "FILE")]
    permissions: Option<Utf8PathBuf>,
    /// Permit no more than this profile does. It narrows your own, never widens it.
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Refuse unless these are the rules in force; `kiwi rules hash` prints their version.
    #[arg(long, value_name = "HASH")]
    rules_version: Option<String>,
}

impl CallArgs {
    /// The tool is one of a server's.
    pub fn of_server(&mut self, server: &str) {
        self.tool = format!("{server}.{}", self.tool);
    }

    /// The request that it means.
    pub fn request(&self, context: &Context) -> Result<Request, Fault> {
        let tool = ToolRef::parse(&self.tool)?;
        let arguments = Arguments { object: self.object()?, assignments: self.assignments()? };
        let mut request = Request::new(tool, arguments, context.caller(), Session::start());
        request.isolation = self.isolation;
        request.narrower.clone_from(&self.profile);
        request.rules_version.clone_from(&self.rules_version);
        request.is_interactive = Context::is_interactive();
        if let Some(file) = &self.permissions {
            request.permissions.push(layer(context, file));
        }
        Ok(request)
    }

    fn object(&self) -> Result<Map<String, Value>, Fault> {
        let Some(source) = &self.params else { return Ok(Map::new()) };
        let bad = |why: String| {
            Fault::new(ErrorKind::InvalidParams, format!("--params: {why}"))
                .with_hint("give one JSON object, `@FILE`, or `-` for standard input")
        };
        let text = match source.strip_prefix('@') {
            Some(file) => std::fs::read_to_string(file).map_err(|error| bad(format!("`{file}`: {error}")))?,
            None if source == "-" => {
                let mut text = String::new();
                std::io::stdin().read_to_string(&mut text).map_err(|error| bad(error.to_string()))?;
                text
            }
            None => source.clone(),
        };
        match strict_json(&text) {
            Ok(Value::Object(object)) => Ok(object),
            Ok(_) => Err(bad("not a JSON object".into())),
            Err(error) if error.is_data() => Err(bad(error.to_string())),
            Err(error) => Err(bad(format!("not JSON: {error}"))),
        }
    }

    fn assignments(&self) -> Result<Vec<(String, String)>, Fault> {
        let read = |text: &String| match text.split_once('=') {
            Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
            _ => Err(Fault::new(ErrorKind::InvalidParams, format!("`{text}` is not `name=value`"))
                .with_hint("parameters look like `input=data.csv`")),
        };
        let assignments: Vec<(String, String)> =
            self.assignments.iter().map(read).collect::<Result<_, _>>()?;
        let mut names = BTreeSet::new();
        match assignments.iter().find(|(name, _)| !names.insert(name)) {
            Some((name, _)) => Err(Fault::new(ErrorKind::InvalidParams, format!("`{name}` is given twice"))
                .with_hint("give it once; a list is given as JSON: `name=[1, 2]`")),
            None => Ok(assignments),
        }
    }
}

/// A file with exactly the keys of a list of permissions. The gate refuses what cannot be read: that is recorded, too.
fn layer(context: &Context, file: &Utf8PathBuf) -> Result<ProfileLayer, String> {
    let refused = |why: String| format!("the permissions in `{file}` cannot be used: {why}");
    let bytes = std::fs::read(context.cwd.join(file)).map_err(|error| refused(error.to_string()))?;
    let permissions = Permissions::read(&bytes).map_err(refused)?;
    Ok(ProfileLayer { source: format!("`{file}`"), permissions })
}
