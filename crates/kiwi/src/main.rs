//! The `kiwi` command.
//!
//! **Owns** what is typed and what is printed: one file per command, and the printer.
//!
//! **Deliberately absent**: anything another face would need. A command gathers arguments, asks the kernel, and shows
//! what it says.

mod browser;
mod builtin;
mod cli;
mod commands;
mod context;
mod indexing;
mod printer;
mod transfer;

use kiwi_model::{ErrorKind, Fault};
use std::process::ExitCode;

use cli::Cli;
use context::Context;

fn main() -> ExitCode {
    // The two inner programs come first: they run once per call and must cost next to nothing.
    let mut words = std::env::args_os().skip(1);
    match words.next().as_deref().and_then(|word| word.to_str()) {
        Some(kiwi_exec::Launcher::ARGUMENT) => return kiwi_exec::launcher_main(),
        Some(builtin::ARGUMENT) => return builtin::main(words),
        _ => {}
    }
    let code = match Cli::read(&std::env::args_os().collect::<Vec<_>>()) {
        Ok(cli) => answer(cli),
        Err(error) => usage(&error),
    };
    let Some(fault) = printer::lost() else { return code };
    printer::fault(&fault);
    ExitCode::from(fault.kind.exit_code())
}

fn answer(cli: Cli) -> ExitCode {
    let json = cli.command.json();
    match dispatch(cli) {
        Ok(code) => code,
        Err(fault) => {
            if json {
                printer::fault_json(&fault);
            } else {
                printer::fault(&fault);
            }
            ExitCode::from(fault.kind.exit_code())
        }
    }
}

fn dispatch(cli: Cli) -> Result<ExitCode, Fault> {
    cli.command.run(&Context::new(cli.project.as_deref())?)
}

/// Help and version are answers; everything else clap says is a usage error, told as JSON where that was asked for.
fn usage(error: &clap::Error) -> ExitCode {
    let wants_json = std::env::args_os().any(|word| word == "--json");
    if error.use_stderr() && wants_json {
        let fault = Fault::new(ErrorKind::Usage, sentence(&error.to_string()));
        printer::fault_json(&fault.with_hint("`kiwi --help` shows what can be typed"));
        return ExitCode::from(ErrorKind::Usage.exit_code());
    }
    let shown = error.print();
    if !error.use_stderr() {
        printer::written(shown);
    }
    ExitCode::from(if error.use_stderr() { ErrorKind::Usage.exit_code() } else { 0 })
}

/// What is wrong, on one line: clap names what it speaks of on lines of their own below its first.
fn sentence(text: &str) -> String {
    let mut lines = text.lines().take_while(|line| !line.trim().is_empty()).map(str::trim);
    let first = lines.next().unwrap_or_default().trim_start_matches("error: ");
    let named: Vec<&str> = lines.collect();
    if named.is_empty() { first.to_owned() } else { format!("{first} {}", named.join(", ")) }
}
