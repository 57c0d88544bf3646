use kiwi_exec::ProgramSearch;
use kiwi_model::{Fault, Space};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::path::Path;
use std::process::ExitCode;

use super::tool::everything;
use crate::context::Context;
use crate::printer::{self, DIM, WARN, mark, paint};

/// Show what is here and what is missing.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print one JSON object, cache counters included.
    #[arg(long)]
    pub json: bool,
}

/// One thing that was looked at.
struct Check {
    name: &'static str,
    ok: bool,
    /// Without it Kiwi itself does not work; the rest only some tools need.
    needed: bool,
    detail: String,
    hint: Cow<'static, str>,
}

impl Args {
    /// Looks around.
    pub fn run(self, context: &Context) -> ExitCode {
        let mut checks = programs(context);
        checks.extend(places(context));
        checks.extend(walls(context));
        checks.push(keyring(context));
        checks.push(tools(context));
        let ok = checks.iter().all(|check| check.ok || !check.needed);
        if self.json {
            let list: Vec<Value> = checks
                .iter()
                .map(|check| {
                    let hint = (!check.ok).then_some(&check.hint);
                    json!({"name": check.name, "ok": check.ok, "needed": check.needed, "detail": check.detail, "hint": hint})
                })
                .collect();
            let caches: Map<String, Value> = context
                .kernel
                .counters()
                .into_iter()
                .map(|(name, count)| (name.to_owned(), count.into()))
                .collect();
            printer::json(
                &json!({"status": "success", "ok": ok, "version": env!("CARGO_PKG_VERSION"), "checks": list, "caches": caches}),
            );
        } else {
            let state =
                |check: &Check| if check.ok || check.needed { mark(check.ok) } else { paint(WARN, "–") };
            let rows: Vec<Vec<String>> = checks
                .iter()
                .map(|check| {
                    vec![
                        state(check),
                        check.name.to_owned(),
                        if check.ok {
                            paint(DIM, &check.detail)
                        } else {
                            format!("{}: {}", check.detail, check.hint)
                        },
                    ]
                })
                .collect();
            printer::table(&rows);
        }
        ExitCode::from(u8::from(!ok))
    }
}

fn programs(context: &Context) -> Vec<Check> {
    let path = context.environment.get("PATH").map_or("", String::as_str);
    let search = ProgramSearch { path, cwd: &context.cwd, versions: &context.environment };
    [
        ("bash", "Bash tools need it: install bash"),
        ("python3", "Python tools need it: install python3"),
        ("node", "Node tools need it: install nodejs"),
        ("uv", "it makes Python environments faster; pip is used without it"),
        ("git", "lockfile diffs between revisions need it: install git"),
        ("docker", "container tools need it or podman: install docker"),
        ("podman", "container tools need it or docker: install podman"),
        ("bwrap", "the strongest sandbox needs it: install bubblewrap"),
    ]
    .into_iter()
    .map(|(name, hint)| {
        let found = search.find(name);
        let detail = found.as_ref().map_or_else(|| "not found".to_owned(), |path| path.display().to_string());
        Check { name, ok: found.is_some(), needed: false, detail, hint: hint.into() }
    })
    .collect()
}

fn places(context: &Context) -> Vec<Check> {
    let spaces = context.kernel.spaces();
    let shown =
        |path: Option<&Path>| path.map_or_else(|| "none".to_owned(), |path| path.display().to_string());
    let state = spaces.state_root().ok();
    let writable = state.is_some_and(is_writable);
    vec![
        Check {
            name: "project",
            ok: spaces.project_root().is_some(),
            needed: false,
            detail: shown(spaces.project_root()),
            hint: "`kiwi init` makes one".into(),
        },
        Check {
            name: "user space",
            ok: spaces.user_root().is_some(),
            needed: false,
            detail: shown(spaces.user_root()),
            hint: "set HOME or KIWI_USER_SPACE".into(),
        },
        Check {
            name: "audit log",
            ok: writable,
            needed: true,
            detail: shown(state),
            hint: "calls are refused while it cannot be written".into(),
        },
    ]
}

/// Whether files can be made in a folder, or in the nearest one above that exists.
fn is_writable(folder: &Path) -> bool {
    let existing = folder.ancestors().find(|folder| folder.exists());
    existing.is_some_and(|folder| rustix::fs::access(folder, rustix::fs::Access::WRITE_OK).is_ok())
}

fn walls(context: &Context) -> Vec<Check> {
    let Ok(walls) = Context::wait(context.kernel.walls()) else { return Vec::new() };
    let check = |(name, state): (&'static str, Result<&str, Fault>)| Check {
        name,
        ok: state.is_ok(),
        needed: false,
        hint: state.as_ref().err().and_then(|fault| fault.hint.clone()).unwrap_or_default().into(),
        detail: state.map_or_else(|fault| fault.message, str::to_owned),
    };
    walls.into_iter().map(check).collect()
}

fn keyring(context: &Context) -> Check {
    let state = context.kernel.keyring();
    Check {
        name: "keyring",
        ok: state.is_ok(),
        needed: false,
        detail: state.map_or_else(|problem| problem.to_string(), |()| "open".to_owned()),
        hint: "without one the key of your secrets is in a file beside them".into(),
    }
}

fn tools(context: &Context) -> Check {
    let listed = everything(context, &Space::LOOKUP);
    let broken: Vec<&str> = listed
        .iter()
        .filter(|(_, entry)| entry.result.is_err())
        .map(|(_, entry)| entry.path.as_str())
        .collect();
    let detail = if broken.is_empty() {
        format!("{} readable", listed.len())
    } else {
        format!("{} of {} broken ({})", broken.len(), listed.len(), broken.join(", "))
    };
    Check {
        name: "tools",
        ok: broken.is_empty(),
        needed: false,
        detail,
        hint: "`kiwi tool check` says what is wrong".into(),
    }
}
