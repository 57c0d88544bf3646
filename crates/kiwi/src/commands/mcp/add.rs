use kiwi_mcp::{HttpAuth, Reach, Server, ServerName};
use kiwi_model::{ErrorKind, Explain as _, Fault, Isolation, Space};
use serde_json::json;
use std::collections::BTreeMap;
use std::process::ExitCode;

use super::{list, rooms};
use crate::context::Context;
use crate::printer::{self, BOLD, WARN, count, paint};

/// Add an MCP server: a command behind `--`, or an address.
///
/// It is named in the project's `.ai/config/mcp_registry.yaml`, or in the user's where there is no project. What it offers
/// when it is first asked is what you agree to; what changes later waits for `kiwi mcp review`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What it is called: the first part of its tools' ids.
    name: String,
    /// The address of a server that speaks streamable HTTP.
    url: Option<String>,
    /// A variable of its environment; `NAME=${OTHER}` looks the value up. May be given several times.
    #[arg(long, value_name = "NAME=VALUE")]
    env: Vec<String>,
    /// A header of every request; `${NAME}` in it is looked up. May be given several times.
    #[arg(long, value_name = "NAME:VALUE")]
    header: Vec<String>,
    /// How it knows who asks: oauth or none.
    #[arg(long, value_name = "HOW", value_parser = auth)]
    auth: Option<HttpAuth>,
    /// How tightly its process is held: trusted, standard, sandboxed or restricted.
    #[arg(long, value_name = "LEVEL")]
    isolation: Option<Isolation>,
    /// One line about it.
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Name it in the user's file, for every project.
    #[arg(long)]
    user: bool,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
    /// The command that starts it, and its arguments.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

impl Args {
    /// Adds it.
    pub fn run(self, context: &Context) -> Result<ExitCode, Fault> {
        let space = rooms::space(context, self.user);
        let name = ServerName::parse(&self.name).map_err(|error| {
            Fault::new(ErrorKind::Usage, error.to_string())
                .with_hint("for example `github` or `issue-tracker`")
        })?;
        let mut server = Server::new(name, space, self.reach()?);
        server.isolation = self.isolation.unwrap_or_default();
        server.description.clone_from(&self.description);
        let registry = rooms::registry(context);
        rooms::change(context, space, || {
            registry.add(space, std::slice::from_ref(&server))?;
            // A person asks for this server now. What one of that name once offered says nothing about it.
            rooms::book(context).forget(&server).map(|_| ())
        })?;
        let hides = registry.shadowed().map_err(|error| error.fault())?;
        let is_hiding = space == Space::Project && hides.iter().any(|hidden| hidden.name == server.name);
        // The name of a user's server that a project's hides leads to the project's.
        let is_hidden = registry.server(server.name.as_str()).is_ok_and(|seen| seen.space != space);
        let names = if is_hidden { Vec::new() } else { vec![server.name.clone()] };
        let asked = rooms::refresh(context, names)?.pop();
        let page = asked.and_then(|(_, page)| match page {
            Ok(page) => Some(page),
            // It is added all the same: it may need a variable or a login first, or a project that is trusted.
            Err(error) => {
                printer::warning(format!("it could not be asked for its tools: {error}"));
                error.hint().into_iter().for_each(printer::note);
                None
            }
        });
        if self.json {
            printer::json(&json!({
                "status": "success",
                "file": registry.file(space),
                "server": list::object(context, &server, false),
            }));
            return Ok(ExitCode::SUCCESS);
        }
        let file = registry.file(space).map(|file| context.shown(&file)).unwrap_or_default();
        printer::note(format!("added {} to {file}", paint(BOLD, &server.name)));
        if is_hiding {
            printer::warning(format!("it hides the user's `{}`", server.name));
        }
        if is_hidden {
            printer::warning(format!("the project's `{}` hides it here", server.name));
        }
        match page {
            Some(page) => {
                printer::note(count(page.agreed().count(), "tool"));
                let waiting = page.waiting().count();
                if waiting > 0 {
                    let count = paint(WARN, format!("{waiting} in quarantine"));
                    printer::note(format!("{count}: `kiwi mcp review {}` shows why", server.name));
                }
            }
            None => printer::note("it is asked for its tools when it is first used"),
        }
        Ok(ExitCode::SUCCESS)
    }

    fn reach(&self) -> Result<Reach, Fault> {
        let usage = |message: &str, hint: &str| Err(Fault::new(ErrorKind::Usage, message).with_hint(hint));
        match (&self.url, self.command.split_first()) {
            (Some(_), Some(_)) => {
                usage("a server has a command or an address, not both", "leave one of them out")
            }
            (None, None) => usage(
                "how the server is reached is missing",
                "`kiwi mcp add NAME -- COMMAND ARGS…`, or `kiwi mcp add NAME https://…`",
            ),
            (None, Some((command, args))) => {
                if !self.header.is_empty() || self.auth.is_some() {
                    return usage("a server with a command has no --header and no --auth", "use --env");
                }
                let env = pairs(&self.env, '=', "--env", "NAME=VALUE")?;
                Ok(Reach::Stdio { command: command.clone(), args: args.to_vec(), env, cwd: None })
            }
            (Some(url), None) => {
                if !self.env.is_empty() {
                    return usage("a server with an address has no --env", "use --header");
                }
                let headers = pairs(&self.header, ':', "--header", "NAME:VALUE")?;
                Ok(Reach::Http { url: url.clone(), headers, auth: self.auth.unwrap_or_default() })
            }
        }
    }
}

fn pairs(texts: &[String], at: char, flag: &str, form: &str) -> Result<BTreeMap<String, String>, Fault> {
    let mut pairs = BTreeMap::new();
    for text in texts {
        // What is behind the name may be a secret: it is not repeated.
        let (name, value) =
            text.split_once(at).filter(|(name, _)| !name.trim().is_empty()).ok_or_else(|| {
                Fault::new(ErrorKind::Usage, format!("{flag} is not {form}"))
                    .with_hint(format!("{flag} {form}"))
            })?;
        let name = name.trim().to_owned();
        let value = if at == ':' { value.trim_start() } else { value };
        if pairs.insert(name.clone(), value.to_owned()).is_some() {
            return Err(Fault::new(ErrorKind::Usage, format!("{flag} gives `{name}` twice"))
                .with_hint("leave one of them out"));
        }
    }
    Ok(pairs)
}

fn auth(text: &str) -> Result<HttpAuth, String> {
    match text {
        "oauth" => Ok(HttpAuth::Oauth),
        "none" => Ok(HttpAuth::None),
        _ => Err("expected `oauth` or `none`".to_owned()),
    }
}
