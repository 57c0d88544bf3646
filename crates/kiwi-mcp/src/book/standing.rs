//! How a tool stands, and why.

use serde::Serialize;
use serde_json::Value;
use std::sync::Arc;

use crate::definition::Definition;
use crate::edit::unified;
use crate::scan::{Finding, visible};

/// One tool of a server, as it was last seen.
#[derive(Debug, Clone, PartialEq)]
pub struct Noted {
    /// What it says it is.
    pub definition: Arc<Definition>,
    /// Whether it may be used.
    pub standing: Standing,
    /// What is suspicious about it; nobody looks any more once a person agreed to it.
    pub findings: Vec<Finding>,
}

/// Whether a tool may be used.
#[derive(Debug, Clone, PartialEq)]
pub enum Standing {
    /// It is what a person agreed to.
    Agreed,
    /// It is kept away from agents until a person agrees.
    Quarantined {
        /// Why.
        why: Why,
    },
}

/// Why a tool is in quarantine.
#[derive(Debug, Clone, PartialEq)]
pub enum Why {
    /// It was not there when a person agreed to the server's tools.
    New,
    /// It is not what a person agreed to.
    Changed {
        /// What it was.
        from: Arc<Definition>,
    },
    /// Another one went when it came, and they are much alike.
    Renamed {
        /// The other one.
        from: Arc<Definition>,
    },
    /// It is the same, but its server is reached in another way.
    Moved,
    /// Its definition looks as if it were meant to mislead a model.
    Suspicious,
    /// Its name cannot be part of an id.
    NotAnId,
    /// The server lists its name more than once.
    Repeated,
    /// A person said no.
    Rejected,
}

impl Why {
    /// The reason in one word, for programs.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Changed { .. } => "changed",
            Self::Renamed { .. } => "renamed",
            Self::Moved => "moved",
            Self::Suspicious => "suspicious",
            Self::NotAnId => "not_an_id",
            Self::Repeated => "repeated",
            Self::Rejected => "rejected",
        }
    }

    /// Whether a person can still decide: what was rejected is decided, and what cannot have an id cannot be used.
    pub const fn is_waiting(&self) -> bool {
        !matches!(self, Self::NotAnId | Self::Repeated | Self::Rejected)
    }

    /// What it was before, where there is something to compare with.
    pub fn from(&self) -> Option<&Definition> {
        match self {
            Self::Changed { from } | Self::Renamed { from } => Some(from),
            _ => None,
        }
    }
}

impl Noted {
    /// The tool's name, in its server's spelling.
    pub fn name(&self) -> &str {
        &self.definition.name
    }

    /// Why it is in quarantine.
    pub fn why(&self) -> Option<&Why> {
        match &self.standing {
            Standing::Agreed => None,
            Standing::Quarantined { why } => Some(why),
        }
    }

    /// Whether it may be used.
    pub fn is_agreed(&self) -> bool {
        self.standing == Standing::Agreed
    }

    /// Whether it waits for a person.
    pub fn is_waiting(&self) -> bool {
        self.why().is_some_and(Why::is_waiting)
    }

    /// Why it is in quarantine, in a sentence; empty where it is not.
    pub fn sentence(&self) -> String {
        let Some(why) = self.why() else { return String::new() };
        match why {
            Why::New => "it is new, and nobody has agreed to it".to_owned(),
            Why::Changed { .. } => {
                let fields: Vec<&str> =
                    self.differences().iter().map(|difference| difference.field).collect();
                format!("since somebody agreed to it, it has another {}", fields.join(", another "))
            }
            Why::Renamed { from } => format!("it looks like `{}` under another name", visible(&from.name)),
            Why::Moved => "its server is not reached as it was when somebody agreed to it".to_owned(),
            Why::Suspicious => {
                let first = self.findings.first().map(|finding| finding.suspicion.sentence());
                format!("its definition {}", first.unwrap_or("is suspicious"))
            }
            Why::NotAnId => "its name cannot be part of a tool's id".to_owned(),
            Why::Repeated => "its server lists that name more than once".to_owned(),
            Why::Rejected => "a person rejected it".to_owned(),
        }
    }

    /// What is to be agreed to: every field that differs from what was agreed to before, all of them where there was
    /// nothing.
    pub fn differences(&self) -> Vec<Difference> {
        differences(self.why().and_then(Why::from), &self.definition)
    }
}

/// One field of a definition that is not what it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Which.
    pub field: &'static str,
    /// What it was; nothing where it was not there.
    pub before: Option<String>,
    /// What it is; nothing where it is there no more.
    pub after: Option<String>,
}

impl Difference {
    /// The lines that go and come.
    pub fn unified(&self) -> String {
        let lines =
            |text: &Option<String>| text.as_ref().map_or_else(String::new, |text| format!("{text}\n"));
        unified(self.field, &lines(&self.before), &lines(&self.after))
    }
}

/// The fields that differ. Texts are given as a person can see them.
pub(super) fn differences(from: Option<&Definition>, to: &Definition) -> Vec<Difference> {
    let json = |value: &Value| {
        let text = serde_json::to_string_pretty(value).unwrap_or_default();
        text.lines().map(visible).collect::<Vec<_>>().join("\n")
    };
    let lines = |text: &String| text.lines().map(visible).collect::<Vec<_>>().join("\n");
    let fields = |it: &Definition| {
        let annotations = it.annotations.clone().map(Value::Object);
        [
            ("name", Some(visible(&it.name))),
            ("title", it.title.as_ref().map(lines)),
            ("description", it.description.as_ref().map(lines)),
            ("parameters", Some(json(&it.input_schema))),
            ("result", it.output_schema.as_ref().map(json)),
            ("annotations", annotations.as_ref().map(json)),
        ]
    };
    let before = from.map(fields).map_or_else(|| [const { None }; 6], |fields| fields.map(|(_, text)| text));
    let pairs = before.into_iter().zip(fields(to));
    let differing = pairs.filter(|(before, (_, after))| before != after);
    differing.map(|(before, (field, after))| Difference { field, before, after }).collect()
}
