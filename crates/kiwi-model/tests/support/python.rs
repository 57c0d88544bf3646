//! One real CPython, fed lines and answering lines.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

/// Runs `script` once, sends it `lines`, and returns as many lines as it answers.
///
/// `None` where there is no `python3`: then the suite is `cargo xtask test`'s, and under that it is an error.
pub fn python(script: &str, lines: Vec<String>) -> Option<Vec<String>> {
    let started = Command::new("python3")
        .args(["-c", script])
        .env("PYTHONIOENCODING", "utf-8")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut child = match started {
        Ok(child) => child,
        Err(error) if std::env::var_os("KIWI_XTASK").is_some() => {
            panic!("python3 is needed and cannot be started: {error}")
        }
        Err(_) => {
            eprintln!("python3 is not here: this suite needs `cargo xtask test`, which installs it");
            return None;
        }
    };
    let mut input = child.stdin.take().expect("a pipe");
    // On a thread of its own: the answers come back while the questions are still being asked.
    let writer = std::thread::spawn(move || {
        for line in lines {
            input.write_all(line.as_bytes()).and_then(|()| input.write_all(b"\n")).expect("python3 reads");
        }
    });
    let output = BufReader::new(child.stdout.take().expect("a pipe"));
    let answers: Vec<String> = output.lines().map(|line| line.expect("UTF-8")).collect();
    writer.join().expect("everything was sent");
    assert!(child.wait().expect("python3 ends").success(), "python3 failed");
    Some(answers)
}
