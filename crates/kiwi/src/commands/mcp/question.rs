//! Questions to the person at the terminal.

use kiwi_model::{ErrorKind, Fault};

use crate::printer;

/// Asks a question and reads the answer, in lower case; the end of the input answers nothing.
pub fn ask(question: &str) -> Result<String, Fault> {
    printer::ask(format!("{question} "));
    let mut answer = String::new();
    std::io::stdin()
        .read_line(&mut answer)
        .map_err(|error| Fault::new(ErrorKind::Usage, format!("the answer cannot be read: {error}")))?;
    Ok(answer.trim().to_lowercase())
}

/// Asks for a yes; anything else is a no.
pub fn confirm(question: &str) -> Result<bool, Fault> {
    let answer = ask(&format!("{question} [y/N]"))?;
    Ok(matches!(answer.as_str(), "y" | "yes"))
}
