//! From files to checked rules: every file is read to its end, so that one report names all that is wrong.

use std::collections::BTreeMap;

use super::{MAX_BYTES, RuleFile, ambiguity};
use crate::problem::Complaint;
use crate::rule::Rule;
use crate::syntax::FileSyntax;
use crate::{LoadError, MAX_PROBLEMS, Problem, Span, check, example, parser};

/// A file that could be read, with those of its rules that make sense.
pub(super) struct Loaded<'a> {
    pub name: &'a str,
    pub text: &'a str,
    pub syntax: FileSyntax,
    pub rules: Vec<Rule>,
}

/// The rules, and how many examples hold.
pub(super) fn load(files: &[RuleFile<'_>]) -> Result<(Vec<Rule>, usize), LoadError> {
    let mut files = files.to_vec();
    files.sort_by_key(|file| (file.name, file.bytes));
    let mut problems = Vec::new();
    let mut loaded = Vec::new();
    for file in &files {
        match read(file) {
            Ok(file) => loaded.push(file),
            Err(mut found) => problems.append(&mut found),
        }
    }
    problems.append(&mut duplicates(&loaded));
    if problems.is_empty() {
        problems.extend(loaded.iter().flat_map(examples));
    }
    if !problems.is_empty() {
        return Err(LoadError::Invalid { problems });
    }
    ambiguity::refuse(&loaded)?;
    let of_files: usize = loaded.iter().map(|file| file.syntax.examples.len()).sum();
    let rules: Vec<Rule> = loaded.into_iter().flat_map(|file| file.rules).collect();
    let examples = of_files + rules.iter().map(|rule| rule.examples).sum::<usize>();
    Ok((rules, examples))
}

fn read<'a>(file: &RuleFile<'a>) -> Result<Loaded<'a>, Vec<Problem>> {
    let whole = |message: String, at: usize, text: &str| {
        vec![Problem::new(file.name, text, Complaint::new(Span { start: at, end: at }, message))]
    };
    if file.bytes.len() > MAX_BYTES {
        let message = format!("the file has {} bytes; a rule file may have {MAX_BYTES}", file.bytes.len());
        return Err(whole(message, 0, ""));
    }
    let text = std::str::from_utf8(file.bytes).map_err(|error| {
        let readable = String::from_utf8_lossy(file.bytes);
        whole("the file is not UTF-8".into(), error.valid_up_to(), &readable)
    })?;
    let (syntax, mut complaints) = parser::read(text);
    let mut rules = Vec::new();
    if complaints.is_empty() {
        let breaks: Vec<usize> = text.match_indices('\n').map(|(at, _)| at).collect();
        for rule in &syntax.rules {
            match check::check(rule) {
                Ok(checked) => {
                    let line = breaks.partition_point(|at| *at < rule.name.span.start) + 1;
                    let own = text.get(rule.span.start..rule.span.end).unwrap_or_default().to_owned();
                    rules.push(Rule { file: file.name.to_owned(), line, text: own, ..checked });
                }
                Err(mut found) => complaints.append(&mut found),
            }
        }
    }
    if complaints.is_empty() {
        return Ok(Loaded { name: file.name, text, syntax, rules });
    }
    complaints.sort_by_key(|complaint| complaint.span.start);
    Err(problems(file.name, text, complaints))
}

fn problems(file: &str, text: &str, complaints: impl IntoIterator<Item = Complaint>) -> Vec<Problem> {
    complaints.into_iter().take(MAX_PROBLEMS).map(|found| Problem::new(file, text, found)).collect()
}

/// Rules that share a name, wherever they stand: a name in a denial must lead to one rule.
fn duplicates(files: &[Loaded<'_>]) -> Vec<Problem> {
    let mut seen: BTreeMap<&str, String> = BTreeMap::new();
    let mut found = Vec::new();
    for file in files {
        let mut complaints = Vec::new();
        for (rule, syntax) in file.rules.iter().zip(&file.syntax.rules) {
            if let Some(first) = seen.get(rule.name.as_str()) {
                let message = format!("there is already a rule `{}`, at {first}", rule.name);
                complaints.push(Complaint::new(syntax.name.span, message).with_hint("rename one of them"));
            } else {
                seen.insert(&rule.name, format!("{}:{}", rule.file, rule.line));
            }
        }
        found.append(&mut problems(file.name, file.text, complaints));
    }
    found
}

/// A rule's examples are held against that rule alone, a file's against the rules of that file.
fn examples(file: &Loaded<'_>) -> Vec<Problem> {
    let mut complaints = Vec::new();
    for (rule, syntax) in file.rules.iter().zip(&file.syntax.rules) {
        complaints.extend(example::check(&syntax.examples, &[rule]));
    }
    let all: Vec<&Rule> = file.rules.iter().collect();
    complaints.extend(example::check(&file.syntax.examples, &all));
    problems(file.name, file.text, complaints)
}
