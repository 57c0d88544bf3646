//! The helper behind `shell.run`.

use serde_json::{Map, Value, json};
use std::process::ExitCode;

use crate::printer;

/// Runs a list of words as a program, a string by the shell, and ends as that did.
pub(super) fn run(params: &Map<String, Value>) -> ExitCode {
    let words =
        |list: &Vec<Value>| list.iter().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>();
    let (program, args) = match params.get("command") {
        Some(Value::String(text)) => ("/bin/sh".to_owned(), vec!["-c".to_owned(), text.clone()]),
        Some(Value::Array(list)) => match words(list).split_first() {
            Some((program, args)) => (program.clone(), args.to_vec()),
            None => return refuse("the command is empty"),
        },
        _ => return refuse("`command` is a string or a list of strings"),
    };
    match kiwi_exec::run_to_end(&program, &args) {
        Ok(ended) => {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            printer::json(&json!({
                "exit_code": ended.code, "stdout": text(&ended.stdout), "stderr": text(&ended.stderr),
            }));
            if ended.code != 0 {
                // The last line says why, as it does for every tool that fails.
                let last = text(&ended.stderr);
                if let Some(last) = last.lines().rev().find(|line| !line.trim().is_empty()) {
                    printer::note(last);
                }
            }
            ExitCode::from(u8::try_from(ended.code).unwrap_or(1))
        }
        Err(error) => refuse(&error.to_string()),
    }
}

fn refuse(message: &str) -> ExitCode {
    printer::note(message);
    ExitCode::FAILURE
}
