//! What the documentation shows is what happens: its files are written and its commands typed, in order, and what each of
//! them answers is held against what is shown.
//!
//! In what is shown `…` stands for anything, alone on a line for any lines; a time for any time; and the name of a question
//! or a grant for whatever name it gets, which is the same wherever it is shown again. A command of which no answer is
//! shown need only succeed. Who is asked for a secret types one.

use crate::support::{TestEnvironment, write};
use regex_lite::{Captures, Regex};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What stays, asks a person, or reaches beyond this machine.
const NOT_TYPED: [&str; 10] = [
    "cargo ",
    "kiwi auth login",
    "kiwi login",
    "kiwi serve",
    "kiwi mcp install",
    "kiwi mcp add",
    "kiwi run clock.",
    "kiwi registry serve",
    "kiwi publish",
    "kiwi install",
];

#[test]
fn the_readme() {
    let mut reader = Reader::new();
    reader.has_deploy();
    let manifest = "tool_id: greeter\nversion: \"1.0.0\"\ntool_type: bash\nentrypoint: greet.sh\n";
    let script = "#!/usr/bin/env bash\necho hello\n";
    reader.env.install("greeter", "1.0.0", &[("tool.yaml", manifest), ("greet.sh", script)]);
    reader.follow("README.md");
}

#[test]
fn the_first_tool() {
    let mut reader = Reader::new();
    reader.follow("docs/src/guide/first-tool.md");
    reader.run("kiwi tool check");
}

#[test]
fn rules_the_gate_and_approvals() {
    let mut reader = Reader::new();
    reader.run("kiwi init");
    reader.has_deploy();
    reader.only_shown = &["~/.ai/config/kiwi.toml"];
    reader.follow("docs/src/guide/rules.md");
    reader.follow("docs/src/guide/gate.md");
    reader.follow("docs/src/guide/approvals.md");
}

#[test]
fn what_is_refused() {
    let mut reader = Reader::new();
    reader.run("kiwi init && git init --quiet");
    reader.has_deploy();
    reader.only_shown = &["~/.ai/config/kiwi.toml"];
    reader.follow("docs/src/guide/rules.md");
    write(&reader.env.home().join(".ai/config/kiwi.toml"), "[rates.\"shell.run\"]\nminute = 1\n");
    reader.run("kiwi run shell.run command='git status --short'");
    reader.follow("docs/src/guide/errors.md");
}

#[test]
fn permissions() {
    let mut reader = Reader::new();
    reader.run("kiwi init");
    write(&reader.env.project().join("src/main.rs"), "fn main() {}\n");
    write(&reader.env.project().join("secret.txt"), "hidden\n");
    reader.follow("docs/src/guide/permissions.md");
}

#[test]
fn a_runtime() {
    let mut reader = Reader::new();
    reader.env.write("tools/text/upper/upper.awk", "BEGIN { print toupper(ENVIRON[\"KIWI_PARAM_TEXT\"]) }\n");
    reader.follow("docs/src/guide/runtimes.md");
    reader.run("kiwi tool check upper");
    reader.types("kiwi run upper text=loud", &["LOUD"]);
}

#[test]
fn lockfiles() {
    let mut reader = Reader::new();
    reader.has_report();
    reader.run("git init --quiet && git config user.name me && git config user.email me@localhost");
    reader.follow("docs/src/guide/lockfiles.md");
}

#[test]
fn secrets() {
    Reader::new().follow("docs/src/guide/secrets.md");
}

#[test]
fn isolation() {
    let mut reader = Reader::new();
    reader.has_report();
    reader.only_shown = &["~/.ai/config/kiwi.toml"];
    reader.follow("docs/src/guide/isolation.md");
}

#[test]
fn the_audit_log() {
    let mut reader = Reader::new();
    reader.run("kiwi init");
    reader.follow("docs/src/guide/audit.md");
    let records = "import sys\nfor text in sys.stdin:\n    exec(open('check.py').read())\n";
    write(&reader.env.project().join("each.py"), records);
    reader.run("cat .ai/logs/audit/*/*.jsonl | python3 each.py");
}

#[test]
fn identities() {
    let mut reader = Reader::new();
    reader.run("kiwi init");
    reader.follow("docs/src/guide/manifests.md");
    reader.run("python3 identity.py hello");
}

#[test]
fn scripting() {
    let mut reader = Reader::new();
    reader.env.write(
        "tools/shout.sh",
        "#!/usr/bin/env bash\n# kiwi: version: \"1.0.0\"\necho \"${KIWI_PARAM_TEXT^^}\"\n",
    );
    reader.follow("docs/src/guide/scripting.md");
}

#[test]
fn searching() {
    let mut reader = Reader::new();
    reader.run("kiwi init");
    reader.follow("docs/src/guide/search.md");
}

/// Somebody who does what a page says.
struct Reader {
    env: TestEnvironment,
    /// What names that are shown stand for.
    names: BTreeMap<String, String>,
    /// How the last command ended.
    last: i32,
    /// Files that a page shows, and does not have its reader write.
    only_shown: &'static [&'static str],
}

impl Reader {
    fn new() -> Self {
        Self { env: TestEnvironment::bare(), names: BTreeMap::new(), last: 0, only_shown: &[] }
    }

    /// The tool that several pages speak of.
    fn has_deploy(&self) {
        let manifest = "tool_id: deploy\nversion: \"1.0.0\"\ntool_type: bash\nentrypoint: deploy.sh\n\
            mutates_state: true\nparameters:\n  - {name: target, required: true}\n  - {name: share, type: integer, default: 10}\n";
        self.env.write("tools/deploy/tool.yaml", manifest);
        self.env.write(
            "tools/deploy/deploy.sh",
            "#!/usr/bin/env bash\necho \"deployed to $KIWI_PARAM_TARGET\"\n",
        );
    }

    /// And the tool that others speak of, with a table to report on.
    fn has_report(&self) {
        let manifest = "tool_id: report\nversion: \"1.2.0\"\ntool_type: python\nentrypoint: main.py\n\
            parameters:\n  - {name: path, required: true}\npermissions: {filesystem_read: [\"{path}\"]}\n";
        self.env.write("tools/data/report/tool.yaml", manifest);
        self.env.write(
            "tools/data/report/main.py",
            "def execute(path):\n    return len(open(path).readlines())\n",
        );
        write(&self.env.project().join("data/q3.csv"), "city,sold\nBern,3\n");
    }

    fn follow(&mut self, page: &str) {
        let page = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(page);
        for step in steps(&std::fs::read_to_string(page).unwrap()) {
            match step {
                Step::Write { path, .. } if self.only_shown.contains(&path.as_str()) => {}
                Step::Write { path, text } => {
                    let place = path.strip_prefix("~/").map(|path| self.env.home().join(path));
                    write(&place.unwrap_or_else(|| self.env.project().join(&path)), text);
                }
                Step::Type { command, .. } if NOT_TYPED.iter().any(|not| command.starts_with(not)) => {}
                Step::Type { command, answer } if answer.is_empty() => self.run(&command),
                Step::Type { command, answer } => {
                    // What a file holds is shown so that it can be written.
                    if let Some(file) = command.strip_prefix("cat ") {
                        write(&self.env.project().join(file), answer.join("\n") + "\n");
                    }
                    let answer: Vec<&str> = answer.iter().map(String::as_str).collect();
                    self.types(&command, &answer);
                }
            }
        }
    }

    /// Types a command that is to succeed.
    fn run(&mut self, command: &str) {
        let told = self.shell(command);
        assert_eq!(self.last, 0, "`{command}` failed:\n{told}");
    }

    /// Types a command that is to answer so.
    fn types(&mut self, command: &str, answer: &[&str]) {
        let told = self.shell(command);
        let lines: Vec<&str> = told.lines().map(str::trim_end).collect();
        let is_so = self.recognises_all(&lines, answer);
        assert!(is_so, "`{command}` is shown to answer\n{}\nand answers\n{told}", answer.join("\n"));
    }

    fn shell(&mut self, command: &str) -> String {
        let command = words().replace_all(command, |found: &Captures<'_>| {
            let word = &found[0];
            self.names.get(word).map_or(word, String::as_str).to_owned()
        });
        let program = PathBuf::from(env!("CARGO_BIN_EXE_kiwi"));
        let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
        let script = format!("exec 2>&1 <<<'a secret'; (exit {}); {command}", self.last);
        let mut shell = self.env.start("bash", &["-c", &script]);
        let output = shell.env("PATH", path).env("USER", "me").output().unwrap();
        self.last = output.status.code().unwrap_or(-1);
        String::from_utf8(output.stdout).unwrap()
    }

    fn recognises_all(&mut self, lines: &[&str], shown: &[&str]) -> bool {
        match (lines, shown) {
            ([], []) => true,
            (_, ["…", rest @ ..]) => {
                (0..=lines.len()).any(|skipped| self.recognises_all(&lines[skipped..], rest))
            }
            ([line, lines @ ..], [first, rest @ ..]) => {
                self.recognises(line, first) && self.recognises_all(lines, rest)
            }
            _ => false,
        }
    }

    /// Whether a line is what is shown. What a name stands for is remembered.
    fn recognises(&mut self, line: &str, shown: &str) -> bool {
        let escaped = regex_lite::escape(shown).replace('…', ".*");
        let timeless = time().replace_all(&escaped, r"\d{4}-\S+Z");
        let mut new = Vec::new();
        let pattern = words().replace_all(&timeless, |found: &Captures<'_>| match &found[0] {
            word if !is_name(word) => word.to_owned(),
            name => self.names.get(name).cloned().unwrap_or_else(|| {
                new.push(name.to_owned());
                r"\b([0-9a-z]{8})\b".to_owned()
            }),
        });
        let Some(found) = Regex::new(&format!("^{pattern}$")).unwrap().captures(line) else { return false };
        for (name, meaning) in new.into_iter().zip(found.iter().skip(1).flatten()) {
            let known = self.names.entry(name).or_insert_with(|| meaning.as_str().to_owned());
            if known != meaning.as_str() {
                return false;
            }
        }
        true
    }
}

/// Eight letters and digits, which the name of a question or a grant is.
fn words() -> Regex {
    Regex::new(r"\b[0-9a-z]{8}\b").unwrap()
}

/// No word of a language has digits.
fn is_name(word: &str) -> bool {
    word.contains(|c: char| c.is_ascii_digit()) && word.contains(|c: char| c.is_ascii_lowercase())
}

fn time() -> Regex {
    Regex::new(r"\d{4}\\-\d\d\\-\d\dT[0-9:.\\]+Z").unwrap()
}

enum Step {
    Write { path: String, text: String },
    Type { command: String, answer: Vec<String> },
}

/// What a page has its reader do. A block is a file where its first line or the paragraph before it says which.
fn steps(page: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let (mut before, mut is_over, mut lines) = (String::new(), true, page.lines());
    while let Some(line) = lines.next() {
        let (indent, line) = line.split_at(line.len() - line.trim_start().len());
        let Some(kind) = line.strip_prefix("```") else {
            if !line.is_empty() && std::mem::take(&mut is_over) {
                before.clear();
            }
            is_over |= line.is_empty();
            before.push_str(line);
            continue;
        };
        let inside = lines.by_ref().map(|line| line.strip_prefix(indent).unwrap_or(line));
        let block: Vec<&str> = inside.take_while(|line| *line != "```").collect();
        if kind == "console" {
            steps.extend(commands(&block));
        } else if let Some(path) = path(&block, &before) {
            steps.push(Step::Write { path, text: block.join("\n") + "\n" });
        }
    }
    steps
}

fn commands(block: &[&str]) -> Vec<Step> {
    let mut steps: Vec<(String, Vec<String>)> = Vec::new();
    for line in block {
        match (line.strip_prefix("$ "), steps.last_mut()) {
            (Some(command), _) => steps.push((command.to_owned(), Vec::new())),
            (None, Some((_, answer))) => answer.push((*line).to_owned()),
            (None, None) => panic!("`{line}` answers nothing"),
        }
    }
    steps.into_iter().map(|(command, answer)| Step::Type { command, answer }).collect()
}

fn path(block: &[&str], before: &str) -> Option<String> {
    let first = block.first().and_then(|line| line.strip_prefix("# ")).filter(|name| !name.contains(' '));
    let in_words = before.split('`').skip(1).step_by(2).find(|word| {
        word.starts_with(".ai/") && word.rsplit('/').next().is_some_and(|name| name.contains('.'))
    });
    first.or(in_words).map(str::to_owned)
}
