//! The whole command in a project with a hundred thousand tools: building the index, a first answer, many answers. And
//! building it once from a million files.

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value, json};
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use super::items::Items;
use super::million::{asked, write_lines};
use super::sets::Set;
use crate::cold::once;
use crate::fixture::Project;
use crate::mcp::Subject;
use crate::report::{Report, figures, say};
use crate::row::Unit;
use crate::stats::{Samples, time};

const TOOLS: usize = 100_000;
/// Tools that lie in one folder.
const IN_A_FOLDER: usize = 1000;
/// Commands, each a process.
const TURNS: usize = 60;
/// Questions that one process answers.
const QUESTIONS: usize = 500;
/// Answers of a process before those that count.
const WARM_UP: usize = 20;
/// Until a process that was asked has nothing left to do.
const REST: Duration = Duration::from_secs(2);

/// Measures.
pub fn measure(report: &mut Report, kiwi: &Path, sets: &[Set], items: &Items, scratch: &Path) -> Result<()> {
    say(&format!("writing a project with {TOOLS} tools"));
    let project = Project::write(scratch.join("tools"), 0)?;
    write_tools(&project, items, TOOLS)?;
    say("kiwi index build");
    let (built, ()) = time(|| once(project.command(kiwi).args(["index", "build", "--json"]), true))?;
    let what = format!("kiwi index build, {TOOLS} tools");
    report.tell(&what, built.as_secs_f64(), Unit::Seconds, Value::Null);
    let (again, ()) = time(|| once(project.command(kiwi).args(["index", "build", "--json"]), true))?;
    report.tell("  the same with nothing to do", again.as_secs_f64() * 1e3, Unit::Milliseconds, Value::Null);

    say("kiwi search, a process for each question");
    let questions = asked(sets, QUESTIONS);
    let cold = cold(kiwi, &project, &questions)?;
    let p50 = cold.p50() / 1e3;
    report.judge("kiwi search, a whole process, median", p50, Unit::Milliseconds, 150.0, figures(&cold));

    say("kiwi search --batch");
    let file = write_lines(&questions, &scratch.join("batch"))?;
    let warm = batch(kiwi, &project, &file)?;
    let p50 = warm.p50() / 1e3;
    report.judge(
        "  a question in a process that stays, median",
        p50,
        Unit::Milliseconds,
        5.0,
        figures(&warm),
    );
    let slow = warm.quantile(0.99) / 1e3;
    report.tell("  a question in a process that stays, 99 of 100", slow, Unit::Milliseconds, Value::Null);

    say("memory of kiwi mcp at rest");
    at_rest(report, kiwi, &project, &questions)
}

/// From as many files as there are items to an index, by the command that a person gives.
pub fn from_disk(
    report: &mut Report,
    kiwi: &Path,
    items: &Items,
    count: usize,
    scratch: &Path,
) -> Result<()> {
    say(&format!("writing a project with {count} tools"));
    let project = Project::write(scratch.join("files"), 0)?;
    write_tools(&project, items, count)?;
    say("kiwi index build");
    let (built, ()) = time(|| once(project.command(kiwi).args(["index", "build", "--json"]), true))?;
    let what = format!("kiwi index build, {count} tools on disk");
    report.judge(&what, built.as_secs_f64(), Unit::Seconds, 600.0, Value::Null);
    Ok(fs::remove_dir_all(project.root())?)
}

/// A file for each tool, as many in each folder.
fn write_tools(project: &Project, items: &Items, count: usize) -> Result<()> {
    let tools = project.root().join(".ai/tools");
    let folders = count / IN_A_FOLDER;
    for folder in 0..folders {
        let folder_path = tools.join(format!("area_{folder:02}"));
        fs::create_dir_all(&folder_path)?;
        for number in (folder..count).step_by(folders) {
            let item = items.item(number);
            let property = |(name, meaning): &(String, String)| {
                (name.clone(), json!({"type": "string", "description": meaning}))
            };
            let properties: Map<String, Value> = item.parameters.iter().map(property).collect();
            // JSON is YAML.
            let text = format!(
                "tool_id: {}\nversion: \"1.0.0\"\ntool_type: api\ndescription: {}\nparameters: {}\nconfig: {{url: \"http://127.0.0.1:1/\"}}\n",
                item.id,
                json!(item.description),
                json!({"type": "object", "properties": properties}),
            );
            fs::write(folder_path.join(format!("{}.yaml", item.id)), text)?;
        }
    }
    Ok(())
}

/// One process for each question, as a person at a prompt has it.
fn cold(kiwi: &Path, project: &Project, questions: &[String]) -> Result<Samples> {
    let mut samples = Samples::default();
    for (turn, question) in questions.iter().cycle().step_by(7).take(TURNS + TURNS / 10).enumerate() {
        let mut command = project.command(kiwi);
        command.args(["search", "--json"]).arg(question).stdin(Stdio::null());
        let (took, output) = time(|| Ok(command.output()?))?;
        let said: Value = serde_json::from_slice(&output.stdout)
            .with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
        if said.get("hits").and_then(Value::as_array).is_none_or(Vec::is_empty) {
            bail!("nothing is found: {said}");
        }
        // The first ones warm the machine's caches.
        if turn >= TURNS / 10 {
            samples.push(took);
        }
    }
    Ok(samples)
}

/// One process for all questions; it says itself how long each took.
fn batch(kiwi: &Path, project: &Project, file: &Path) -> Result<Samples> {
    let output = project.command(kiwi).args(["search", "--batch"]).arg(file).stdin(Stdio::null()).output()?;
    if !output.status.success() {
        bail!("kiwi search --batch failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    let mut samples = Samples::default();
    for line in String::from_utf8(output.stdout)?.lines().skip(WARM_UP) {
        let said: Value = serde_json::from_str(line)?;
        let took = said.get("took_us").and_then(Value::as_u64).context("an answer without its time")?;
        samples.push(Duration::from_micros(took));
    }
    if samples.count() + WARM_UP != QUESTIONS {
        bail!("{} of {QUESTIONS} questions were answered", samples.count() + WARM_UP);
    }
    Ok(samples)
}

/// What a server holds while nobody asks it anything: before it was ever asked, and after.
fn at_rest(report: &mut Report, kiwi: &Path, project: &Project, questions: &[String]) -> Result<()> {
    let mut command = project.command(kiwi);
    command.env("KIWI_TRUST", "1").env_remove("CI").arg("mcp");
    let mut server = Subject::pipes("kiwi mcp", "search", &mut command)?;
    std::thread::sleep(REST);
    report.tell("kiwi mcp, never asked: memory", server.memory(), Unit::Mebibytes, Value::Null);
    for question in questions.iter().take(WARM_UP) {
        server.client.call("search", &json!({"query": question}))?;
    }
    std::thread::sleep(REST);
    report.tell("kiwi mcp, after some questions: memory", server.memory(), Unit::Mebibytes, Value::Null);
    Ok(())
}
