//! Guidance: the texts in `help/` of the system space.

use kiwi_model::{ErrorKind, Explain as _, Fault};
use kiwi_space::Spaces;
use serde_json::{Value, json};
use strsim::jaro_winkler;

/// Names less alike than this are not meant.
const NEAR: f64 = 0.7;

/// What is known about a topic, or which topics there are.
pub(super) fn guidance(spaces: &Spaces, topic: Option<&str>) -> Result<Value, Fault> {
    let topics = topics(spaces);
    let Some(topic) = topic else {
        return Ok(
            json!({"status": "guidance", "topics": topics, "suggestion": "help(action=\"guidance\", topic=\"getting_started\")"}),
        );
    };
    let name = topic.trim().to_ascii_lowercase().replace([' ', '-'], "_");
    let known = topics.iter().find(|known| **known == name);
    let bytes = match known {
        Some(known) => spaces.system_file(&format!("help/{known}.md")).map_err(|error| error.fault())?,
        None => None,
    };
    let Some(bytes) = bytes else { return Err(unknown(topic, &name, &topics)) };
    let text = String::from_utf8_lossy(bytes);
    Ok(json!({"status": "guidance", "topic": name, "text": text, "topics": topics}))
}

/// The names of the topics.
pub(super) fn topics(spaces: &Spaces) -> Vec<&'static str> {
    let paths = spaces.system_files("help").into_iter();
    paths.filter_map(|path| path.strip_prefix("help/")?.strip_suffix(".md")).collect()
}

fn unknown(topic: &str, name: &str, topics: &[&str]) -> Fault {
    let mut near: Vec<(f64, &str)> = topics.iter().map(|known| (jaro_winkler(name, known), *known)).collect();
    near.retain(|(likeness, _)| *likeness >= NEAR);
    near.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    let nearest: Vec<&str> = near.into_iter().map(|(_, known)| known).take(3).collect();
    let hint = match nearest.first() {
        Some(first) => format!("did you mean `{first}`? topics: {}", topics.join(", ")),
        None => format!("topics: {}", topics.join(", ")),
    };
    let shown: String = topic.chars().take(80).collect();
    Fault::new(ErrorKind::NotFound, format!("there is no help about `{shown}`"))
        .with_hint(hint)
        .with_details(json!({"topics": topics, "nearest": nearest}))
}
