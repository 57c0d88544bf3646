//! The one place that prints. Data goes to standard output, everything else to standard error; colour only on a
//! terminal.

use anstream::{eprint, eprintln};
use anstyle::{AnsiColor, Style};
use kiwi_model::{ErrorKind, Fault, Status};
use serde::Serialize;
use serde_json::{Value, json};
use std::io::{self, IsTerminal as _, Write};
use std::sync::OnceLock;

/// Good.
pub const GOOD: Style = AnsiColor::Green.on_default();
/// Bad.
pub const BAD: Style = AnsiColor::Red.on_default().bold();
/// Worth a look.
pub const WARN: Style = AnsiColor::Yellow.on_default();
/// Beside the point.
pub const DIM: Style = Style::new().dimmed();
/// To the point.
pub const BOLD: Style = Style::new().bold();

/// Text in a style.
pub fn paint(style: Style, text: impl std::fmt::Display) -> String {
    format!("{style}{text}{style:#}")
}

/// How many of something: `1 tool`, `2 tools`.
pub fn count(number: impl std::fmt::Display, thing: &str) -> String {
    let number = number.to_string();
    let plural = if number == "1" { "" } else { "s" };
    format!("{number} {thing}{plural}")
}

/// ✓ or ✗.
pub fn mark(ok: bool) -> String {
    if ok { paint(GOOD, "✓") } else { paint(BAD, "✗") }
}

/// Why data could not be written, the first time.
static LOST: OnceLock<io::Error> = OnceLock::new();

/// Whether data was written. What a command does, it does anyway; a closed pipe is the reader's choice, and anything else
/// is told at the end.
pub fn written(outcome: io::Result<()>) -> bool {
    let Err(error) = outcome else { return true };
    if error.kind() != io::ErrorKind::BrokenPipe {
        let _ = LOST.set(error);
    }
    false
}

/// What a command that printed says of data that could not be written.
pub fn lost() -> Option<Fault> {
    let error = LOST.get()?;
    Some(
        Fault::new(ErrorKind::Internal, format!("not all of the output could be written: {error}"))
            .with_hint("what was done is done; only showing it failed"),
    )
}

/// A line of data.
pub fn line(text: impl std::fmt::Display) {
    written(writeln!(anstream::stdout(), "{text}"));
}

/// Lines of data as they come, as long as somebody reads them. Says how many there were.
pub fn lines(lines: impl Iterator<Item = String>) -> usize {
    let mut out = anstream::AutoStream::auto(io::stdout());
    let mut text = String::new();
    let mut count = 0;
    for line in lines {
        text.push_str(&line);
        text.push('\n');
        count += 1;
        if text.len() > 8192 {
            if !written(out.write_all(text.as_bytes())) {
                return count;
            }
            text.clear();
        }
    }
    written(out.write_all(text.as_bytes()).and_then(|()| out.flush()));
    count
}

/// A line beside the data.
pub fn note(text: impl std::fmt::Display) {
    eprintln!("{text}");
}

/// A question; the answer is typed behind it.
pub fn ask(text: impl std::fmt::Display) {
    eprint!("{text}");
}

/// A warning.
pub fn warning(text: impl std::fmt::Display) {
    eprintln!("{} {text}", paint(WARN, "warning:"));
}

/// A failure: its sentence, and on a line of its own what to do next.
pub fn fault(fault: &Fault) {
    eprintln!("{} {}", paint(BAD, "error:"), fault.message);
    if let Some(hint) = &fault.hint {
        eprintln!("{} {hint}", paint(GOOD, "hint:"));
    }
}

/// One JSON object, readable.
pub fn json(value: &impl Serialize) {
    match serde_json::to_string_pretty(value) {
        // What is cleaned for a terminal loses this character, which JSON does not escape by itself. It stands in strings
        // only.
        Ok(text) => line(text.replace('\u{7f}', "\\u007f")),
        Err(error) => eprintln!("{} {error}", paint(BAD, "error:")),
    }
}

/// One JSON object with one list in it, item by item as they come.
pub fn json_list(name: &str, items: impl Iterator<Item = Value>) {
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut separator = "";
    let write = || -> io::Result<()> {
        write!(out, "{{\"status\": \"success\", {}: [", json!(name))?;
        for item in items {
            write!(out, "{separator}\n  {item}")?;
            separator = ",";
        }
        writeln!(out, "\n]}}")?;
        out.flush()
    };
    written(write());
}

/// Counts long work aloud: in place on a terminal, else a line now and then. Short work is not worth a word.
pub struct Counter {
    what: &'static str,
    told: usize,
    in_place: bool,
}

impl Counter {
    /// Work below this is done before anybody could read about it.
    const WORTH_IT: usize = 1000;

    /// Counts this kind of work.
    pub fn new(what: &'static str) -> Self {
        Self { what, told: 0, in_place: io::stderr().is_terminal() }
    }

    /// How far the work has come.
    pub fn show(&mut self, done: usize, total: usize) {
        let step = if self.in_place { total / 100 } else { total / 10 };
        if total < Self::WORTH_IT || (done != total && done < self.told + step) {
            return;
        }
        self.told = done;
        let text = format!("{} {done}/{total}", self.what);
        match self.in_place {
            false => note(text),
            true if done == total => eprint!("\r\x1b[K"),
            true => eprint!("\r{text}"),
        }
    }
}

/// A failure as the one JSON object on standard output.
pub fn fault_json(fault: &Fault) {
    json(&json!({"status": fault.kind.status(), "error": fault}));
}

/// Adds `status` and `error` to an object that reports something.
pub fn with_status(mut object: Value, fault: Option<&Fault>) -> Value {
    if let Value::Object(map) = &mut object {
        let status = fault.map_or(Status::Success, |fault| fault.kind.status());
        map.insert("status".into(), json!(status));
        map.insert("error".into(), json!(fault));
    }
    object
}

/// Bytes of a running tool, as they come.
pub fn stream(to_stdout: bool, bytes: &[u8]) {
    if to_stdout {
        let mut out = io::stdout().lock();
        written(out.write_all(bytes).and_then(|()| out.flush()));
    } else {
        // Nothing to do about it, and nowhere to say so.
        let _ = io::stderr().lock().write_all(bytes);
    }
}

/// Columns, padded to the widest cell; styles do not count.
pub fn table(rows: &[Vec<String>]) {
    let width = |text: &str| anstream::adapter::strip_str(text).to_string().chars().count();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|column| {
            rows.iter().filter_map(|row| row.get(column)).map(|cell| width(cell)).max().unwrap_or(0)
        })
        .collect();
    for row in rows {
        let mut text = String::from(" ");
        for (cell, wide) in row.iter().zip(&widths) {
            text.push(' ');
            text.push_str(cell);
            text.extend(std::iter::repeat_n(' ', wide.saturating_sub(width(cell)) + 1));
        }
        line(text.trim_end());
    }
}
