//! Sets to develop with: tools, and questions with the tools that answer them.

use anyhow::{Context, Result, bail};
use kiwi_search::{Document, Embedder, Index, Item, Kind, Prepared};
use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// The folders of a set of sets.
pub const NAMES: [&str; 2] = ["BFCL", "MetaTool"];
/// Documents that are embedded together.
const BATCH: usize = 512;

/// One set.
pub struct Set {
    /// The name of its folder.
    pub name: &'static str,
    /// Its tools: `name: description parameter: its description …`.
    pub tools: Vec<String>,
    /// What people ask.
    pub questions: Vec<Question>,
}

/// What is asked, and the numbers of the tools that answer it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// In somebody's words.
    pub text: String,
    /// By their place in the set.
    pub answers: Vec<usize>,
}

impl Set {
    /// Every set of a folder.
    pub fn all(folder: &Path) -> Result<Vec<Self>> {
        NAMES.into_iter().map(|name| Self::read(name, &folder.join(name))).collect()
    }

    fn read(name: &'static str, folder: &Path) -> Result<Self> {
        let mut numbers = HashMap::new();
        let mut tools = Vec::new();
        for line in lines(&folder.join("corpus.jsonl"))? {
            numbers.insert(text(&line, "id")?, tools.len());
            tools.push(text(&line, "text")?);
        }
        let mut questions = Vec::new();
        for line in lines(&folder.join("queries.jsonl"))? {
            let ids = line.get("gold").and_then(Value::as_array).context("a question without answers")?;
            let number = |id: &Value| id.as_str().and_then(|id| numbers.get(id)).copied();
            let answers = ids.iter().map(|id| number(id).with_context(|| format!("{id} is no tool")));
            questions.push(Question { text: text(&line, "text")?, answers: answers.collect::<Result<_>>()? });
        }
        if tools.is_empty() || questions.is_empty() {
            bail!("{} is empty", folder.display());
        }
        Ok(Self { name, tools, questions })
    }

    /// An index of its tools, in memory.
    pub fn index(&self, embedder: Arc<dyn Embedder>) -> Result<Index> {
        let index = Index::in_memory(embedder)?;
        let documents: Vec<Document> = self
            .tools
            .iter()
            .enumerate()
            .map(|(number, tool)| document(number, item(number, tool)))
            .collect();
        write(&index, &documents)?;
        Ok(index)
    }
}

fn lines(file: &Path) -> Result<Vec<Value>> {
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    text.lines()
        .map(|line| serde_json::from_str(line).with_context(|| format!("in {}", file.display())))
        .collect()
}

fn text(line: &Value, name: &str) -> Result<String> {
    Ok(line.get(name).and_then(Value::as_str).with_context(|| format!("a line without `{name}`"))?.to_owned())
}

/// A tool's name and the rest of its text.
pub fn name_and_rest(tool: &str) -> (&str, &str) {
    tool.split_once(": ").unwrap_or((tool, ""))
}

/// A tool of a set as an item. Its id says nothing, so that only its text speaks.
fn item(number: usize, tool: &str) -> Item {
    let (name, rest) = name_and_rest(tool);
    Item {
        kind: Kind::Tool,
        id: format!("t{number}"),
        title: Some(name.to_owned()),
        version: None,
        description: rest.to_owned(),
        parameters: Vec::new(),
        signature: String::new(),
        tags: Vec::new(),
        category: String::new(),
        tool_type: None,
        runtime: None,
        is_support: false,
        is_alone: false,
        body: String::new(),
    }
}

/// An item as it is indexed: its key is its number.
pub fn document(number: usize, item: Item) -> Document {
    Document { key: number.to_string(), group: String::new(), stamp: 1, item: Some(item) }
}

/// Writes documents to an index and waits until nothing goes on in the background.
pub fn write(index: &Index, documents: &[Document]) -> Result<()> {
    let mut writer = index.write()?;
    writer.expect(documents.len());
    for batch in documents.chunks(BATCH) {
        let prepared: Vec<Prepared> = index.prepare(batch)?;
        writer.add(prepared)?;
    }
    writer.commit(true)?;
    Ok(writer.finish()?)
}
