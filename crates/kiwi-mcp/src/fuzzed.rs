//! For fuzzing alone: the readers of what servers say.

use kiwi_model::Space;
use std::collections::{BTreeMap, BTreeSet};

use crate::definition::Definition;
use crate::scan::{scan, scan_text};
use crate::server::{Reach, Server, ServerName};

/// How many messages a server's output holds that are for the protocol library.
pub fn frames(bytes: &[u8]) -> usize {
    crate::pool::messages_in(bytes)
}

/// The identity of the tool that a definition makes, if it is one and makes one. It is scanned on the way.
pub fn definition(bytes: &[u8]) -> Option<String> {
    scan_text("text", &String::from_utf8_lossy(bytes));
    let definition = serde_json::from_slice::<Definition>(bytes).ok()?;
    let own = BTreeSet::from([definition.name.as_str()]);
    let findings = scan(&definition, &own, &BTreeSet::new()).len();
    let reach = Reach::Stdio { command: "x".into(), args: Vec::new(), env: BTreeMap::new(), cwd: None };
    let server = Server::new(ServerName::parse("up").ok()?, Space::User, reach);
    let tool = crate::upstreams::tool_of(&server, &definition)?;
    Some(format!("{} {} {findings}", tool.integrity, definition.digest()))
}
