//! Helpers of the binary itself, run by `kiwi_runtime` as ordinary supervised processes.

use serde_json::json;
use std::ffi::OsStr;
use std::process::ExitCode;

use crate::printer;

/// The first argument that asks for a helper.
pub const ARGUMENT: &str = "__builtin";

/// Runs the helper of this name. Parameters are on standard input, as for any tool.
pub fn main(name: Option<&OsStr>) -> ExitCode {
    if let Some("info") = name.and_then(OsStr::to_str) {
        printer::json(&json!({
            "name": "kiwi",
            "version": env!("CARGO_PKG_VERSION"),
            "os": std::env::consts::OS,
            "arch": std::env::consts::ARCH,
        }));
        ExitCode::SUCCESS
    } else {
        printer::note("kiwi has no such helper");
        ExitCode::FAILURE
    }
}
