//! Helpers of the binary itself, run by runtimes of the system as ordinary supervised processes.

use serde_json::json;
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
