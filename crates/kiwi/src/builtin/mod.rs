//! Helpers of the binary itself, run by runtimes of the system as ordinary supervised processes.

mod filesystem;
mod items;
mod listing;
mod shell;

use serde_json::{Map, Value, json};
use std::ffi::OsString;
use std::process::ExitCode;

use crate::printer;

/// The first argument that asks for a helper.
pub const ARGUMENT: &str = "__builtin";

/// Runs the helper of this name. Parameters are on standard input, as for any tool.
pub fn main(mut words: impl Iterator<Item = OsString>) -> ExitCode {
    match words.next().as_deref().and_then(|name| name.to_str()) {
        Some("info") => {
            printer::json(&json!({
                "name": "kiwi",
                "version": env!("CARGO_PKG_VERSION"),
                "os": std::env::consts::OS,
                "arch": std::env::consts::ARCH,
            }));
            ExitCode::SUCCESS
        }
        Some(name) if filesystem::is_one(name) => answer(filesystem::run(name, &params())),
        Some(name) if items::is_one(name) => answer(items::run(name, &params())),
        Some("shell.run") => shell::run(&params()),
        Some("container") => {
            let end = kiwi_exec::container_main(words);
            if let Some(message) = end.message {
                printer::note(message);
            }
            ExitCode::from(end.code)
        }
        _ => {
            printer::note("kiwi has no such helper");
            ExitCode::FAILURE
        }
    }
}

/// The parameters, which were checked before they were sent.
fn params() -> Map<String, Value> {
    let text = std::io::read_to_string(std::io::stdin()).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// A result as data, a failure as the last words of a tool.
fn answer(result: Result<Value, String>) -> ExitCode {
    match result {
        Ok(value) => {
            printer::json(&value);
            ExitCode::SUCCESS
        }
        Err(message) => {
            printer::note(message);
            ExitCode::FAILURE
        }
    }
}
