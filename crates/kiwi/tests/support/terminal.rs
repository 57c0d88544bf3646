//! The program at a terminal, with a person who types.

use std::process::{Command, Stdio};

/// Runs its arguments at a terminal of its own, types its first one, and ends as they do.
const SCRIPT: &str = r"
import os, pty, sys
child, terminal = pty.fork()
if child == 0:
    os.execv(sys.argv[2], sys.argv[2:])
os.write(terminal, sys.argv[1].encode())
while True:
    try:
        said = os.read(terminal, 65536)
    except OSError:
        break
    if not said:
        break
    os.write(1, said)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
";

/// What a command came to that was typed at a terminal: its exit code, and all that was to be seen, without colours.
pub fn typed(command: &Command, answers: &str) -> (i32, String) {
    let mut terminal = Command::new("python3");
    terminal.arg("-c").arg(SCRIPT).arg(answers).arg(command.get_program()).args(command.get_args());
    terminal.env_clear().stdin(Stdio::null());
    for (name, value) in command.get_envs() {
        terminal.env(name, value.unwrap_or_default());
    }
    if let Some(folder) = command.get_current_dir() {
        terminal.current_dir(folder);
    }
    let output = terminal.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).replace("\r\n", "\n");
    let failed = String::from_utf8_lossy(&output.stderr);
    (output.status.code().unwrap_or(-1), format!("{}{failed}", without_colours(&said)))
}

fn without_colours(text: &str) -> String {
    let mut parts = text.split('\u{1b}');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        plain.push_str(part.split_once('m').map_or(part, |(_, rest)| rest));
    }
    plain
}
