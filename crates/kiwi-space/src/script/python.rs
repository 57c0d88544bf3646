//! Metadata of a Python file, from its syntax tree.

use kiwi_model::ManifestError;
use kiwi_model::yaml::Place;
use serde_json::Value;
use std::ops::ControlFlow;
use tree_sitter::{Node, ParseOptions, Parser};

use super::Virtual;
use super::literal::Literals;

/// The names that mean something, and the manifest keys they stand for.
const NAMES: [(&str, &str); 7] = [
    ("__version__", "version"),
    ("__tool_type__", "tool_type"),
    ("__executor_id__", "executor"),
    ("__category__", "category"),
    ("__tool_description__", "description"),
    ("CONFIG_SCHEMA", "parameters"),
    ("CONFIG", "config"),
];

/// The parser reports its progress now and then; a file that needs more reports than this is built to stall it.
const MAX_REPORTS: u32 = 200_000;

/// Names that one statement may assign to.
const MAX_TARGETS: usize = 32;

/// Reads the module-level assignments of a Python file.
pub(super) fn read(bytes: &[u8], file: &str) -> Result<Virtual, ManifestError> {
    let fail = |message: &str, place| ManifestError::one(file, message, None, place);
    let top = Place { line: 1, column: 1 };
    // Most scripts say nothing about themselves, and then there is nothing to parse for.
    if !NAMES.iter().any(|(name, _)| holds(bytes, name)) {
        return Ok(Virtual::of_keys(Vec::new()));
    }
    let mut parser = Parser::new();
    parser
        .set_language(&tree_sitter_python::LANGUAGE.into())
        .map_err(|_| fail("this Kiwi was built with a Python grammar it cannot use", top))?;
    let mut reports = 0;
    let mut progress = |_: &tree_sitter::ParseState| {
        reports += 1;
        if reports > MAX_REPORTS { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let options = ParseOptions::new().progress_callback(&mut progress);
    let mut input = |offset: usize, _| bytes.get(offset..).unwrap_or_default();
    let tree = parser
        .parse_with_options(&mut input, None, Some(options))
        .ok_or_else(|| fail("the file is too tangled to read its metadata", top))?;
    let mut reader = Reader { file, literals: Literals { file, bytes }, bytes, found: Vec::new() };
    let root = tree.root_node();
    if root.is_error() {
        reader.broken(root)?;
    }
    for statement in root.children(&mut root.walk()) {
        reader.statement(statement)?;
    }
    Ok(Virtual::of_keys(reader.found))
}

struct Reader<'a> {
    file: &'a str,
    literals: Literals<'a>,
    bytes: &'a [u8],
    found: Vec<(String, Value, Place)>,
}

impl Reader<'_> {
    fn statement(&mut self, statement: Node<'_>) -> Result<(), ManifestError> {
        if statement.is_error() {
            return self.broken(statement);
        }
        if statement.kind() != "expression_statement" {
            return Ok(());
        }
        for expression in statement.named_children(&mut statement.walk()) {
            match expression.kind() {
                "assignment" => self.assignment(expression)?,
                "augmented_assignment" => {
                    if let Some(key) = expression.child_by_field_name("left").and_then(|left| self.key(left))
                    {
                        let message =
                            format!("`{key}` is changed after it was assigned; metadata is read, not run");
                        return Err(self.literals.error(expression, message));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// `A = B = value` assigns to both.
    fn assignment(&mut self, assignment: Node<'_>) -> Result<(), ManifestError> {
        let mut keys = Vec::new();
        let mut targets = 0;
        let mut at = assignment;
        let value = loop {
            if let Some(left) = at.child_by_field_name("left") {
                keys.extend(self.key(left).map(|key| (key, self.literals.place(left))));
                self.refuse_patterns(left)?;
            }
            targets += 1;
            if targets > MAX_TARGETS {
                return Err(self.literals.error(assignment, "too many names are assigned at once"));
            }
            match at.child_by_field_name("right") {
                Some(right) if right.kind() == "assignment" => at = right,
                Some(right) => break right,
                // An annotation without a value assigns nothing.
                None => return Ok(()),
            }
        };
        if keys.is_empty() {
            return Ok(());
        }
        if assignment.has_error() {
            return self.broken(assignment);
        }
        let value = self.literals.value(value)?;
        for (key, place) in keys {
            if self.found.iter().any(|(other, ..)| other == key) {
                return Err(ManifestError::one(
                    self.file,
                    format!("`{}` is assigned twice", name_of(key)),
                    Some("keep one of the two".into()),
                    place,
                ));
            }
            self.found.push((key.to_owned(), value.clone(), place));
        }
        Ok(())
    }

    /// `__version__, x = …` assigns a name without saying which value it gets.
    fn refuse_patterns(&self, left: Node<'_>) -> Result<(), ManifestError> {
        if !matches!(left.kind(), "pattern_list" | "tuple_pattern" | "list_pattern") {
            return Ok(());
        }
        let named = left.named_children(&mut left.walk()).find_map(|child| self.key(child));
        match named {
            Some(key) => {
                Err(self.literals.error(left, format!("`{}` must be assigned by itself", name_of(key))))
            }
            None => Ok(()),
        }
    }

    /// The manifest key a name stands for.
    fn key(&self, node: Node<'_>) -> Option<&'static str> {
        if node.kind() != "identifier" {
            return None;
        }
        let name = node.utf8_text(self.bytes).ok()?;
        NAMES.iter().find(|(known, _)| *known == name).map(|(_, key)| *key)
    }

    /// A part that is not Python matters only if it could hide metadata.
    fn broken(&self, node: Node<'_>) -> Result<(), ManifestError> {
        let text = self.bytes.get(node.byte_range()).unwrap_or_default();
        match NAMES.iter().find(|(name, _)| holds(text, name)) {
            Some((name, _)) => Err(self
                .literals
                .error(node, format!("`{name}` stands in a part that cannot be read as Python"))),
            None => Ok(()),
        }
    }
}

fn name_of(key: &str) -> &'static str {
    NAMES.iter().find(|(_, known)| *known == key).map_or("", |(name, _)| *name)
}

fn holds(bytes: &[u8], name: &str) -> bool {
    bytes.windows(name.len()).any(|window| window == name.as_bytes())
}
