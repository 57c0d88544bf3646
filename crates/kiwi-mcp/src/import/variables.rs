//! Variables in other clients' words.

use crate::client::Client;

/// A text with its variables in our spelling, `${NAME}`.
pub(super) fn respell(client: Client, text: &str, notes: &mut Vec<String>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['$', '{']) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let found = braced(from, "${").map(|found| (found, true));
        let found = found.or_else(|| {
            let is_opencode = client == Client::Opencode;
            braced(from, "{")
                .filter(|(inner, _)| is_opencode && inner.contains(':'))
                .map(|found| (found, false))
        });
        if let Some(((inner, behind), _)) = found {
            out.push_str(&variable(inner, notes));
            rest = behind;
            continue;
        }
        // Gemini takes `$NAME` as well.
        let mut characters = from.chars();
        let first = characters.next();
        let name_length = characters.as_str().find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let name =
            characters.as_str().get(..name_length.unwrap_or(characters.as_str().len())).unwrap_or_default();
        if client == Client::Gemini && first == Some('$') && is_name(name) {
            out.extend(["${", name, "}"]);
            rest = characters.as_str().get(name.len()..).unwrap_or_default();
            continue;
        }
        out.extend(first);
        rest = characters.as_str();
    }
    out.push_str(rest);
    out
}

/// What stands in braces behind an opening, and what follows.
fn braced<'a>(text: &'a str, opening: &str) -> Option<(&'a str, &'a str)> {
    text.strip_prefix(opening)?.split_once('}')
}

fn is_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

fn variable(inner: &str, notes: &mut Vec<String>) -> String {
    let mut note = |text: String| {
        if !notes.contains(&text) {
            notes.push(text);
        }
    };
    if let Some(name) = inner.strip_prefix("env:") {
        return format!("${{{name}}}");
    }
    if let Some(id) = inner.strip_prefix("input:") {
        let upper = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
        let name: String = id.chars().map(upper).collect();
        note(format!("it asked for `{id}` there: here the variable `{name}` is looked up"));
        return format!("${{{name}}}");
    }
    if let Some((name, default)) = inner.split_once(":-").filter(|(name, _)| is_name(name)) {
        note(format!("`{name}` was `{default}` there when it was not set: here it must be set"));
        return format!("${{{name}}}");
    }
    match inner {
        "workspaceFolder" | "workspaceRoot" => {
            note("the workspace's folder is the folder it starts in".to_owned());
            ".".to_owned()
        }
        "userHome" => "${HOME}".to_owned(),
        "pathSeparator" | "/" => "/".to_owned(),
        name if is_name(name) => format!("${{{name}}}"),
        other => {
            note(format!("`${{{other}}}` means something there that it does not mean here"));
            format!("${{{other}}}")
        }
    }
}
