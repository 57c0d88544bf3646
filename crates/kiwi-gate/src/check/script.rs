//! The syntax of a tool's own files, as its interpreter sees it.

use kiwi_chain::{Merged, Tool};
use kiwi_exec::{ExecError, Finished, Package, Process, Unwatched};
use kiwi_model::{Content, ErrorKind, File, Isolation, Language, Text};
use std::time::Duration;

use super::{Finding, shown, told};
use crate::kernel::Kernel;
use crate::stages::form;

const TIMEOUT: Duration = Duration::from_secs(30);
const OUTPUT_CAP: u64 = 1 << 20;

/// Compiles what is on standard input and throws the result away; nothing is written anywhere.
const COMPILE: &str = "\
import sys
try:
    compile(sys.stdin.buffer.read(), 'tool', 'exec', dont_inherit=True)
except (SyntaxError, ValueError) as e:
    print(getattr(e, 'lineno', None) or 1, getattr(e, 'msg', None) or e)
    sys.exit(1)
";

/// The same for Node.
const COMPILE_NODE: &str = include_str!("compile.cjs");

impl Kernel {
    /// Checks the files of a script with the interpreter that would run them.
    pub(super) async fn check_script(&self, merged: &Merged, leaf: &Tool) -> Vec<Finding> {
        let Some(program) = merged.program() else { return Vec::new() };
        match program.rsplit('/').next().unwrap_or(program) {
            "bash" | "sh" => self.check_shell(program, leaf).await,
            "python" | "python3" => self.check_python(program, leaf).await,
            "node" => self.check_node(program, leaf).await,
            _ => Vec::new(),
        }
    }

    async fn check_shell(&self, program: &str, leaf: &Tool) -> Vec<Finding> {
        let mut findings = Vec::new();
        for file in files(leaf, &[".sh", ".bash"]) {
            let path = shown(leaf, &file.entry.path);
            if let Content::Bytes(bytes) = &file.content {
                let is_started = leaf.manifest.entrypoint.as_ref() == Some(&file.entry.path);
                findings.extend(shebang(bytes, is_started).map(|(message, hint)| {
                    Finding::new(ErrorKind::InvalidManifest, message, &path).at(Some(1)).hint(hint)
                }));
            }
            let args = vec![Text::literal("-n"), Text::file(0, file.entry.path.clone())];
            let package = Package { link: 0, files: leaf.files.clone(), form: form(leaf) };
            let finished = match self.ask(program.to_owned(), args, Vec::new(), vec![package]).await {
                Ok(finished) => finished,
                Err(error) => return vec![told(&error, leaf)],
            };
            if !finished.exit.is_success() {
                let (line, message) = of_shell(&String::from_utf8_lossy(&finished.stderr));
                findings.push(Finding::new(ErrorKind::InvalidManifest, message, path).at(line));
            }
        }
        findings
    }

    async fn check_python(&self, program: &str, leaf: &Tool) -> Vec<Finding> {
        let interpreter = match self.interpreter_or(leaf, Language::Python, program).await {
            Ok(interpreter) => interpreter.to_string_lossy().into_owned(),
            Err(finding) => return vec![finding],
        };
        let read = |finished: &Finished| {
            let said = String::from_utf8_lossy(&finished.stdout).trim().to_owned();
            let (line, message) = said.split_once(' ').unwrap_or(("1", "it cannot be compiled"));
            (line.parse().ok(), format!("syntax error: {message}"))
        };
        let args = |_: &File| vec![Text::literal("-I"), Text::literal("-c"), Text::literal(COMPILE)];
        self.check_each(&interpreter, leaf, &[".py"], args, read).await
    }

    async fn check_node(&self, program: &str, leaf: &Tool) -> Vec<Finding> {
        let interpreter = match self.interpreter_or(leaf, Language::Node, program).await {
            Ok(interpreter) => interpreter.to_string_lossy().into_owned(),
            Err(finding) => return vec![finding],
        };
        let args = |file: &File| {
            let words = ["--experimental-vm-modules", "--eval", COMPILE_NODE, "--"].map(Text::literal);
            words.into_iter().chain([Text::literal(file.entry.path.clone())]).collect()
        };
        let read = |finished: &Finished| of_node(&String::from_utf8_lossy(&finished.stderr));
        let endings = [".js", ".cjs", ".mjs", ".ts", ".cts", ".mts"];
        self.check_each(&interpreter, leaf, &endings, args, read).await
    }

    /// Gives each file to the interpreter on standard input.
    async fn check_each(
        &self,
        interpreter: &str,
        leaf: &Tool,
        endings: &[&str],
        args: impl Fn(&File) -> Vec<Text>,
        read: impl Fn(&Finished) -> (Option<u64>, String),
    ) -> Vec<Finding> {
        let mut findings = Vec::new();
        for file in files(leaf, endings) {
            // What is too large to be held is too large to be a person's program.
            let Content::Bytes(bytes) = &file.content else { continue };
            match self.ask(interpreter.to_owned(), args(file), bytes.to_vec(), Vec::new()).await {
                Ok(finished) if finished.exit.is_success() => {}
                Ok(finished) => {
                    let (line, message) = read(&finished);
                    let path = shown(leaf, &file.entry.path);
                    findings.push(Finding::new(ErrorKind::InvalidManifest, message, path).at(line));
                }
                Err(error) => return vec![told(&error, leaf)],
            }
        }
        findings
    }

    async fn ask(
        &self,
        program: String,
        args: Vec<Text>,
        stdin: Vec<u8>,
        packages: Vec<Package>,
    ) -> Result<Finished, ExecError> {
        let base = self.host.base_environment(false).into_iter();
        let process = Process {
            program: Text::literal(program),
            args,
            env: base.map(|(name, value)| (name, Text::literal(value))).collect(),
            cwd: self.host.cwd.clone(),
            stdin,
            timeout: TIMEOUT,
            output_cap: OUTPUT_CAP,
            isolation: Isolation::Standard,
            confinement: kiwi_exec::Confinement::default(),
            has_secrets: false,
            packages,
            search_path: self.host.search_path().to_owned(),
            project: self.host.cwd.clone(),
        };
        self.launcher.run(process, &Unwatched, std::future::pending()).await
    }
}

/// The tool's own files with these endings; what it brings along of others is not its business.
fn files<'t>(leaf: &'t Tool, endings: &'t [&str]) -> impl Iterator<Item = &'t File> {
    leaf.files.iter().filter(move |file| {
        let path = &file.entry.path;
        endings.iter().any(|ending| path.ends_with(ending)) && !path.contains("node_modules/")
    })
}

/// What is wrong with a script's first line, and what to do about it. What is only read by others may do without one.
fn shebang(bytes: &[u8], is_started: bool) -> Option<(String, &'static str)> {
    if bytes.starts_with(b"\xef\xbb\xbf") {
        let message = "a byte order mark stands before the first line, and Bash takes it for a command";
        return Some((message.into(), "save the file as UTF-8 without a byte order mark"));
    }
    let first = bytes.split(|byte| *byte == b'\n').next().and_then(|line| line.strip_prefix(b"#!"));
    let message = match first {
        Some(words) => shell(&String::from_utf8_lossy(words))?,
        None if is_started => "the first line does not say what runs this file".into(),
        None => return None,
    };
    Some((message, "write `#!/usr/bin/env bash`"))
}

/// Why what stands behind `#!` is no shell.
fn shell(line: &str) -> Option<String> {
    if line.ends_with('\r') {
        return Some("the `#!` line ends in a carriage return, so no interpreter is found".into());
    }
    let mut words = line.split_whitespace().filter(|word| *word != "-S");
    let program = words.next().unwrap_or_default();
    let is_env = program.ends_with("/env");
    let name = if is_env { words.next().unwrap_or_default() } else { program };
    if !program.starts_with('/') {
        return Some(format!("the `#!` line names `{program}`, which is not an absolute path"));
    }
    let base = name.rsplit('/').next().unwrap_or(name);
    (!["bash", "sh", "dash", "ash", "ksh"].contains(&base))
        .then(|| format!("the `#!` line names `{base}`, but Bash runs this file"))
}

/// `/proc/self/fd/4: line 3: syntax error near …`
fn of_shell(said: &str) -> (Option<u64>, String) {
    let first =
        said.lines().find(|line| line.contains(": line ")).or(said.lines().next()).unwrap_or_default();
    let after = first.split_once(": line ").map_or(first, |(_, after)| after);
    match after.split_once(": ") {
        Some((line, message)) if line.parse::<u64>().is_ok() => (line.parse().ok(), message.to_owned()),
        _ => (None, after.to_owned()),
    }
}

/// `tool:2`, or only `:2` for types, the line itself, and further down `SyntaxError: …` or `SyntaxError [CODE]: …`
fn of_node(said: &str) -> (Option<u64>, String) {
    let place = |line: &str| line.strip_prefix("tool").unwrap_or(line).strip_prefix(':')?.parse().ok();
    let message = said
        .lines()
        .find_map(|line| line.strip_prefix("SyntaxError")?.split_once(": "))
        .map_or("it cannot be compiled".into(), |(_, message)| format!("syntax error: {message}"));
    (said.lines().find_map(place), message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_shells_may_be_named_in_a_shells_first_line() {
        for good in
            ["#!/bin/sh\n", "#!/usr/bin/env bash\n", "#! /bin/bash -e\n", "#!/usr/bin/env -S bash -x\n"]
        {
            assert_eq!(shebang(good.as_bytes(), true), None, "{good}");
        }
        for bad in [
            "#!/usr/bin/python3\n",
            "#!bash\n",
            "#!/bin/bash\r\n",
            "#!\n",
            "#!/usr/bin/env\n",
            "\u{feff}#!/bin/bash\n",
            "\u{feff}echo",
        ] {
            assert!(shebang(bad.as_bytes(), false).is_some(), "{bad}");
        }
        assert_eq!(shebang(b"echo", false), None, "what others read need not say what runs it");
        for unclear in ["echo", "", "\n#!/bin/bash\n"] {
            assert!(shebang(unclear.as_bytes(), true).is_some(), "{unclear}");
        }
    }

    #[test]
    fn lines_are_found_in_what_interpreters_say() {
        let said = "/proc/self/fd/4: line 3: syntax error near unexpected token `fi'\n/proc/self/fd/4: line 3: `fi'\n";
        assert_eq!(of_shell(said), (Some(3), "syntax error near unexpected token `fi'".into()));
        assert_eq!(of_shell("bash: no\n"), (None, "bash: no".into()));
        let said = "tool:2\nconst a = ;\n          ^\n\nSyntaxError: Unexpected token ';'\n    at x\n";
        assert_eq!(of_node(said), (Some(2), "syntax error: Unexpected token ';'".into()));
        let said =
            "(node:7) ExperimentalWarning: it may change\n:3\nenum A {}\n\nSyntaxError [ERR_X]: no enum\n";
        assert_eq!(of_node(said), (Some(3), "syntax error: no enum".into()));
        assert_eq!(of_node("out of memory\n"), (None, "it cannot be compiled".into()));
    }
}
