//! A secret that is typed or piped: never an argument, where every process could see it.

use kiwi_model::{ErrorKind, Fault, Secret};
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use std::io::{IsTerminal as _, Read as _};

use crate::printer;

/// Reads a secret from standard input: what is piped, or a line that is typed without being shown.
pub fn secret(prompt: &str) -> Result<Secret, Fault> {
    let stdin = std::io::stdin();
    let text = if stdin.is_terminal() { typed(prompt)? } else { piped()? };
    let text = text.strip_suffix('\n').unwrap_or(&text);
    let text = text.strip_suffix('\r').unwrap_or(text);
    if text.is_empty() {
        return Err(Fault::new(ErrorKind::Usage, "the secret is empty").with_hint("type it, or pipe it in"));
    }
    Ok(Secret::new(text))
}

fn piped() -> Result<String, Fault> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map_err(|error| unreadable(&error))?;
    Ok(text)
}

fn typed(prompt: &str) -> Result<String, Fault> {
    let stdin = std::io::stdin();
    let shown = tcgetattr(&stdin).map_err(|error| unreadable(&error.into()))?;
    let mut hidden = shown.clone();
    hidden.local_modes.remove(LocalModes::ECHO);
    printer::ask(prompt);
    tcsetattr(&stdin, OptionalActions::Flush, &hidden).map_err(|error| unreadable(&error.into()))?;
    let mut text = String::new();
    let read = stdin.read_line(&mut text);
    let restored = tcsetattr(&stdin, OptionalActions::Flush, &shown);
    printer::note("");
    read.map_err(|error| unreadable(&error))?;
    restored.map_err(|error| unreadable(&error.into()))?;
    Ok(text)
}

fn unreadable(error: &std::io::Error) -> Fault {
    Fault::new(ErrorKind::Usage, format!("the secret cannot be read: {error}"))
}
