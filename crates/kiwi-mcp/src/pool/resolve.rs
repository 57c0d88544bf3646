//! From a server's entry to how it is really reached: variables are looked up when it is contacted.

use kiwi_model::Isolation;
use std::collections::BTreeMap;
use std::path::PathBuf;

use super::surroundings::Surroundings;
use crate::error::McpError;
use crate::server::{HttpAuth, Reach, Server};

/// How a server is reached, with nothing left to look up. Callers for whom the variables mean something else have another
/// way, and so another connection.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) enum Way {
    Stdio {
        command: String,
        args: Vec<String>,
        env: BTreeMap<String, String>,
        cwd: PathBuf,
        isolation: Isolation,
        /// Whether something of the entry came from a variable: then it may be a secret.
        has_secrets: bool,
    },
    Http {
        url: String,
        headers: BTreeMap<String, String>,
        auth: HttpAuth,
    },
}

impl Way {
    /// Looks up every variable the entry names.
    pub fn resolve(server: &Server, around: &Surroundings) -> Result<Self, McpError> {
        let look = |text: &str| {
            expand(text, &|name| (around.lookup)(name)).map_err(|problem| McpError::Unavailable {
                server: server.name.to_string(),
                problem,
                stderr: String::new(),
            })
        };
        let look_all = |map: &BTreeMap<String, String>| {
            map.iter().map(|(name, value)| Ok((name.clone(), look(value)?))).collect::<Result<_, McpError>>()
        };
        Ok(match &server.reach {
            Reach::Stdio { command, args, env, cwd } => {
                let texts = args.iter().chain(env.values()).chain([command]);
                let has_secrets = texts.into_iter().any(|text| text.contains("${")) || !env.is_empty();
                let cwd = cwd.as_deref().map(look).transpose()?;
                Self::Stdio {
                    command: look(command)?,
                    args: args.iter().map(|arg| look(arg)).collect::<Result<_, _>>()?,
                    env: look_all(env)?,
                    cwd: cwd.map_or_else(|| around.project.clone(), |cwd| around.project.join(cwd)),
                    isolation: server.isolation,
                    has_secrets,
                }
            }
            Reach::Http { url, headers, auth } => {
                Self::Http { url: look(url)?, headers: look_all(headers)?, auth: *auth }
            }
        })
    }
}

/// Replaces `${NAME}` and `${NAME:-otherwise}`. What is wrong is told as the end of a sentence about the server.
fn expand(text: &str, lookup: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        out.push_str(before);
        let (inside, behind) =
            after.split_once('}').ok_or("names a variable in its entry without a closing `}`")?;
        let (name, otherwise) =
            inside.split_once(":-").map_or((inside, None), |(name, otherwise)| (name, Some(otherwise)));
        let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if name.is_empty() || !is_name {
            return Err(format!("names `{name}` in its entry, which cannot be a variable"));
        }
        // As a shell does it, an empty value is none where there is another.
        let value = lookup(name).filter(|value| otherwise.is_none() || !value.is_empty());
        match value.or_else(|| otherwise.map(str::to_owned)) {
            Some(value) => out.push_str(&value),
            None => return Err(format!("needs the variable `{name}`, which is not set")),
        }
        rest = behind;
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_looked_up() {
        let lookup = |name: &str| match name {
            "A" => Some("1".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        };
        for (text, expected) in [
            ("x", Ok("x")),
            ("${A}", Ok("1")),
            ("a${A}b${A}$c", Ok("a1b1$c")),
            ("${EMPTY}", Ok("")),
            ("${B:-2}${EMPTY:-3}${A:-4}", Ok("231")),
            ("${B:-}", Ok("")),
            ("${B}", Err("needs the variable `B`, which is not set")),
            ("${A", Err("names a variable in its entry without a closing `}`")),
            ("${a b}", Err("names `a b` in its entry, which cannot be a variable")),
        ] {
            assert_eq!(expand(text, &lookup), expected.map(str::to_owned).map_err(str::to_owned), "{text}");
        }
    }
}
