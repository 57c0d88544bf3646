use clap::Parser;
use kiwi_model::{ErrorKind, Explain, Fault, Space, ToolId, Version};
use kiwi_space::{Install, Locations, NewFile, Staged};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use super::tool::new::create;
use crate::cli::Cli;
use crate::context::Context;
use crate::printer::{self, BOLD, DIM, paint};

/// Show the main job end to end, in a temporary project that is removed afterwards.
#[derive(Debug, clap::Args)]
pub struct Args {}

const CLEAN: &str = "\
import csv, io

def execute(text, column):
    rows = [row for row in csv.DictReader(io.StringIO(text)) if row[column].strip()]
    return {\"kept\": len(rows), \"rows\": rows}
";

const CLEAN_MANIFEST: &str = "\
tool_id: data_processor
version: \"2.1.0\"
tool_type: script
executor: {id: python_runtime, version: \"^1.4\"}
description: Drop the rows of a CSV that lack a value
parameters:
  type: object
  properties: {text: {type: string}, column: {type: string, default: name}}
  required: [text]
manifest: {language: python, entrypoint: process_data.py}
config: {timeout: 60}
";

const COUNT: &str = "\
# kiwi: version: 1.0.0
# kiwi: description: Count words
# kiwi: parameters: {type: object, properties: {text: {type: string}}, required: [text]}
wc -w <<< \"$KIWI_PARAM_TEXT\" | tr -d ' '
";

const AWK_RUNTIME: &str = "\
tool_id: awk_runtime
version: \"1.0.0\"
tool_type: runtime
executor: subprocess
entrypoint_is_file: true
config: {command: awk, base_args: [\"-f\"]}
validation:
  child_schemas:
    - match: {tool_type: script}
      schema: {properties: {manifest: {properties: {entrypoint: {pattern: \"\\\\.awk$\"}}, required: [entrypoint]}}}
";

const RULE: &str = "\
rule no_passwords {
  guards { $tool == \"shout\" and contains($args.text, \"password\") -> reject \"that is not for shouting\" }
  effects { }
  examples { rejects {\"tool\": \"shout\", \"args\": {\"text\": \"my password\"}} }
}
";

/// Runs the show. Every line of output is what the command shown above it printed.
pub fn run() -> Result<ExitCode, Fault> {
    let folder = tempfile::Builder::new().prefix("kiwi-demo-").tempdir().map_err(|error| broken(&error))?;
    let stage = Stage { folder: folder.path() };
    stage
        .show()
        .map_err(|fault| fault.with_hint("the demo could not finish; `kiwi doctor` shows what is missing"))?;
    Ok(ExitCode::SUCCESS)
}

struct Stage<'a> {
    folder: &'a Path,
}

impl Stage<'_> {
    fn show(&self) -> Result<(), Fault> {
        title("A project is a folder with .ai/ in it");
        self.kiwi(&["init"], 0)?;

        title(
            "A tool is data: a manifest and a Python file. Its chain is resolved, verified, validated, merged",
        );
        self.write("tools/data/data_processor/tool.yaml", CLEAN_MANIFEST)?;
        self.write("tools/data/data_processor/process_data.py", CLEAN)?;
        self.kiwi(&["chain", "data_processor"], 0)?;
        self.kiwi(&["run", "data_processor", "text=id,name\n1,Ada\n2,\n3,Grace\n"], 0)?;

        title("A Bash script needs no manifest at all");
        self.write("tools/text/count.sh", COUNT)?;
        self.kiwi(&["run", "count", "text=agents only talk to kiwi"], 0)?;

        title("A new runtime is ten lines of YAML");
        self.write("tools/runtimes/awk_runtime.yaml", AWK_RUNTIME)?;
        self.write("tools/text/shout/tool.yaml", "tool_id: shout\nversion: \"1.0.0\"\ntool_type: script\nexecutor: awk_runtime\nentrypoint: shout.awk\n")?;
        self.write("tools/text/shout/shout.awk", "BEGIN { print toupper(ENVIRON[\"KIWI_PARAM_TEXT\"]) }\n")?;
        self.kiwi(&["run", "shout", "text=verified bytes run"], 0)?;

        title("Wrong parameters never reach a tool");
        self.kiwi(&["run", "data_processor", "colum=name"], 2)?;

        title("An installed package that was touched does not run");
        self.install_and_touch()?;
        self.kiwi(&["run", "greeter"], 3)?;

        title(
            "A lockfile says what was agreed to run. What is not that runs with a warning, or strictly not at all",
        );
        self.kiwi(&["lock", "count"], 0)?;
        self.kiwi(&["run", "count", "text=agreed and run", "--locked"], 0)?;
        self.replace("tools/text/count.sh", &COUNT.replace("wc -w", "wc -c"))?;
        self.kiwi(&["run", "count", "text=no longer agreed"], 0)?;
        self.kiwi(&["run", "count", "text=no longer agreed", "--locked"], 3)?;
        self.kiwi(&["lockfile", "update", "count"], 0)?;

        title("An agent need not know what tools are called: it asks for what it wants done");
        self.kiwi(&["search", "count the words of a text", "--type", "tool", "--limit", "3"], 0)?;

        title("Rules judge every call, arguments included; each denial says which rule and why");
        self.write("rules/team.kappa", RULE)?;
        self.kiwi(&["rules", "check"], 0)?;
        self.kiwi(&["run", "shout", "text=the password is kiwi"], 3)?;
        self.kiwi(&["gate", "explain", "shout", "text=good morning"], 0)?;

        title("An agent may do less than the person whose project it works in");
        self.kiwi(&["gate", "explain", "shell.run", "command=ls", "--agent"], 0)?;

        title("Every call left a record before its effect and one after it, and the log can prove itself");
        self.kiwi(&["audit", "tail", "-n", "6"], 0)?;
        self.kiwi(&["audit", "verify"], 0)?;
        self.forge()?;
        self.kiwi(&["audit", "verify"], 3)
    }

    /// Installs a package with its record, then changes one byte of it.
    fn install_and_touch(&self) -> Result<(), Fault> {
        let context = self.context()?;
        let file = |path, text: &'static str| NewFile { path, bytes: text.as_bytes(), is_executable: false };
        let files = [
            file(
                "tool.yaml",
                "tool_id: greeter\nversion: \"1.0.0\"\ntool_type: bash\nentrypoint: greet.sh\n",
            ),
            file("greet.sh", "echo 'hello from a package'\n"),
        ];
        let id =
            ToolId::parse("greeter").map_err(|error| Fault::new(ErrorKind::Internal, error.to_string()))?;
        let install = Install {
            id: &id,
            version: &Version::new(1, 0, 0),
            files: Staged::Memory(&files),
            source: "demo",
            at: "1970-01-01T00:00:00Z",
            expected: None,
        };
        let packages = context.kernel.spaces().packages(Space::Project).map_err(|error| error.fault())?;
        let script = packages.install(&install).map_err(|error| error.fault())?.folder.join("greet.sh");
        printer::note(paint(DIM, format!("$ printf X >> {}", self.shown(&script))));
        let mut text = fs::read(&script).map_err(|error| broken(&error))?;
        text.push(b'X');
        fs::write(&script, text).map_err(|error| broken(&error))
    }

    /// Changes what a record says.
    fn forge(&self) -> Result<(), Fault> {
        let log = self.folder.join(".ai/logs/audit");
        let days = fs::read_dir(&log).map_err(|error| broken(&error))?.flatten();
        let files = days.flat_map(|day| fs::read_dir(day.path()).into_iter().flatten().flatten());
        for file in files {
            let text = fs::read_to_string(file.path()).map_err(|error| broken(&error))?;
            if text.contains("\"deny\"") {
                let shown = self.shown(&file.path());
                printer::note(paint(DIM, format!("$ sed -i 's/\"deny\"/\"allow\"/' {shown}")));
                return fs::write(file.path(), text.replacen("\"deny\"", "\"allow\"", 1))
                    .map_err(|error| broken(&error));
            }
        }
        Err(Fault::new(ErrorKind::Internal, "no denial is on record"))
    }

    /// Types a command: shows it, runs it, and insists on its exit code.
    fn kiwi(&self, words: &[&str], expect: u8) -> Result<(), Fault> {
        let quoted: Vec<String> = words
            .iter()
            .map(|word| if word.contains([' ', '\n']) { format!("{word:?}") } else { (*word).to_owned() })
            .collect();
        printer::note(paint(DIM, format!("$ kiwi {}", quoted.join(" "))));
        let cli = <Cli>::try_parse_from(std::iter::once("kiwi").chain(words.iter().copied()));
        let cli = cli.map_err(|error| Fault::new(ErrorKind::Internal, error.to_string()))?;
        let code = match cli.command.run(&self.context()?) {
            Ok(code) => code,
            Err(fault) => {
                printer::fault(&fault);
                ExitCode::from(fault.kind.exit_code())
            }
        };
        if code == ExitCode::from(expect) {
            return Ok(());
        }
        let ended = number(code).map_or_else(|| "another exit code".to_owned(), |code| code.to_string());
        Err(Fault::new(
            ErrorKind::Internal,
            format!("`kiwi {}` ended with {ended}, not with {expect}", quoted.join(" ")),
        ))
    }

    /// A fresh look at the project, as a new command would have it; the demo's own folder is also its home.
    fn context(&self) -> Result<Context, Fault> {
        let locations =
            Locations { project: None, cwd: self.folder.to_owned(), user: Some(self.folder.join("home")) };
        let environment: BTreeMap<String, String> = Context::new(None)?.environment;
        Context::at(locations, environment)
    }

    fn write(&self, path: &str, text: &str) -> Result<(), Fault> {
        let path = self.folder.join(".ai").join(path);
        create(&path, text)?;
        printer::note(paint(DIM, format!("+ {}", self.shown(&path))));
        Ok(())
    }

    fn replace(&self, path: &str, text: &str) -> Result<(), Fault> {
        let path = self.folder.join(".ai").join(path);
        fs::write(&path, text).map_err(|error| broken(&error))?;
        printer::note(paint(DIM, format!("~ {}", self.shown(&path))));
        Ok(())
    }

    fn shown(&self, path: &Path) -> String {
        path.strip_prefix(self.folder).unwrap_or(path).display().to_string()
    }
}

/// An exit code as a shell shows it.
fn number(code: ExitCode) -> Option<u8> {
    (0..=u8::MAX).find(|number| ExitCode::from(*number) == code)
}

fn title(text: &str) {
    printer::note(format!("\n{}", paint(BOLD, text)));
}

fn broken(error: &std::io::Error) -> Fault {
    Fault::new(ErrorKind::Internal, format!("the demo's folder cannot be used: {error}"))
}
