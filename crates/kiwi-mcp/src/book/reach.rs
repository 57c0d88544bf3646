//! How a server is reached, as far as an agreement is about it.

use kiwi_model::{Digest, canonical};
use serde_json::json;

use crate::server::{Reach, Server};

/// A package that a runner fetches and starts.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its version, where the arguments say it.
    pub version: Option<String>,
}

impl Server {
    /// The identity of how it is reached: program, arguments, folder and package, or address. Values of variables and
    /// headers are not part of it: they are secrets, and change.
    pub fn reach_digest(&self) -> Digest {
        let document = match &self.reach {
            Reach::Stdio { command, args, cwd, .. } => {
                json!({"command": command, "args": args, "cwd": cwd, "package": self.package()})
            }
            Reach::Http { url, .. } => json!({"url": url}),
        };
        // Texts and lists of texts always have a canonical form.
        Digest::of(canonical(&document).unwrap_or_else(|_| document.to_string()).as_bytes())
    }

    /// The package its command fetches, where that can be told: `npx -y NAME@1.2.3`, `uvx NAME==1.2`.
    pub fn package(&self) -> Option<Package> {
        let Reach::Stdio { command, args, .. } = &self.reach else { return None };
        let program = command.rsplit('/').next().unwrap_or(command);
        let (skipped, separator, value_flags): (&[&str], _, &[&str]) = match program {
            "npx" | "bunx" | "pnpx" => (&[], "@", &["-c", "--call", "--prefix"]),
            "pnpm" | "yarn" => (&["dlx"], "@", &[]),
            "npm" => (&["exec", "x"], "@", &[]),
            "uvx" => (&[], "==", &["--python", "-p", "--with", "--index-url", "--index", "--default-index"]),
            "uv" => (&["tool", "run"], "==", &["--python", "-p", "--with", "--index"]),
            "pipx" => (&["run"], "==", &["--python", "--index-url", "--pip-args"]),
            _ => return None,
        };
        let mut words = args.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "-p" | "--package" | "--from" | "--spec" if !value_flags.contains(&word.as_str()) => {
                    return words.next().map(|word| split(word, separator));
                }
                flag if value_flags.contains(&flag) => {
                    words.next();
                }
                flag if flag.starts_with('-') => {
                    if let Some((_, value)) = flag
                        .split_once('=')
                        .filter(|(name, _)| matches!(*name, "--package" | "--from" | "--spec"))
                    {
                        return Some(split(value, separator));
                    }
                }
                word if skipped.contains(&word) => {}
                word => return Some(split(word, separator)),
            }
        }
        None
    }
}

fn split(word: &str, separator: &str) -> Package {
    // The first `@` of `@scope/name` is no separator; uv takes `name@1.2` as well.
    let from = usize::from(word.starts_with('@'));
    let rest = word.get(from..).unwrap_or_default();
    let place =
        rest.find(separator).map(|at| (at, separator.len())).or_else(|| rest.find('@').map(|at| (at, 1)));
    match place {
        Some((at, length)) => Package {
            name: word.get(..from + at).unwrap_or(word).to_owned(),
            version: word.get(from + at + length..).filter(|version| !version.is_empty()).map(str::to_owned),
        },
        None => Package { name: word.to_owned(), version: None },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::ServerName;
    use kiwi_model::Space;
    use std::collections::BTreeMap;

    fn server(line: &str) -> Server {
        let mut words = line.split(' ').map(str::to_owned);
        let command = words.next().unwrap();
        let reach = Reach::Stdio { command, args: words.collect(), env: BTreeMap::new(), cwd: None };
        Server::new(ServerName::parse("a").unwrap(), Space::User, reach)
    }

    #[test]
    fn packages_are_told_from_arguments() {
        for (line, name, version) in [
            ("npx -y pkg@1.2.3", "pkg", Some("1.2.3")),
            ("npx -y @x/server", "@x/server", None),
            ("npx @x/server@2.0.0 --flag", "@x/server", Some("2.0.0")),
            ("npx --package=@x/y@1 cmd", "@x/y", Some("1")),
            ("npx -p @x/y@1 cmd", "@x/y", Some("1")),
            ("/usr/bin/uvx mcp-server-git==1.2", "mcp-server-git", Some("1.2")),
            ("uvx --python 3.12 mcp-server-git@1.2", "mcp-server-git", Some("1.2")),
            ("uvx --from pkg==3 cmd", "pkg", Some("3")),
            ("uv tool run pkg", "pkg", None),
            ("pipx run pkg==1", "pkg", Some("1")),
            ("pnpm dlx pkg@1", "pkg", Some("1")),
        ] {
            let expect = Package { name: name.to_owned(), version: version.map(str::to_owned) };
            assert_eq!(server(line).package(), Some(expect), "{line}");
        }
        assert_eq!(server("node server.js").package(), None);
        assert_eq!(server("npx").package(), None);
    }

    #[test]
    fn the_digest_is_of_the_way_not_of_secrets() {
        let one = server("npx -y pkg@1.2.3");
        let mut same = one.clone();
        let Reach::Stdio { env, .. } = &mut same.reach else { panic!("stdio") };
        env.insert("TOKEN".into(), "x".into());
        same.description = Some("another".into());
        assert_eq!(one.reach_digest(), same.reach_digest());
        for other in ["npx -y pkg@1.2.4", "npx pkg@1.2.3", "bunx -y pkg@1.2.3"] {
            assert_ne!(one.reach_digest(), server(other).reach_digest(), "{other}");
        }
        let mut elsewhere = one.clone();
        let Reach::Stdio { cwd, .. } = &mut elsewhere.reach else { panic!("stdio") };
        *cwd = Some("/x".into());
        assert_ne!(one.reach_digest(), elsewhere.reach_digest());
    }
}
