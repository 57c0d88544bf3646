//! Long output: kept for a while, so that its reader can page through it.

use kiwi_gate::Session;
use kiwi_model::{ErrorKind, Fault};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::random::unguessable;

/// What is longer is cut.
pub(crate) const PAGE: usize = 24 << 10;
/// How long it is kept.
const KEPT: Duration = Duration::from_mins(15);
/// How much is kept in all; the oldest goes first.
const MOST_BYTES: usize = 64 << 20;
const MOST: usize = 512;

/// What is kept, by handle. Only the session that made it can read it.
#[derive(Default)]
pub(crate) struct Outputs {
    kept: Mutex<HashMap<String, Output>>,
}

struct Output {
    session: Session,
    text: String,
    since: Instant,
}

/// The beginning of something long.
pub(crate) struct Cut {
    /// As much as is shown.
    pub page: String,
    /// How to get the rest.
    pub rest: Value,
}

impl Outputs {
    /// Keeps a text and gives its first page. What cannot be kept is only cut.
    pub fn keep(&self, session: Session, text: String) -> Cut {
        let handle = unguessable();
        let page = page(&text, 0).to_owned();
        let rest = told(handle.as_deref().filter(|_| text.len() <= MOST_BYTES), page.len(), text.len());
        if let Some(handle) = handle.filter(|_| text.len() <= MOST_BYTES) {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.retain(|_, output| output.since.elapsed() < KEPT);
            while kept.len() >= MOST
                || kept.values().map(|output| output.text.len()).sum::<usize>() + text.len() > MOST_BYTES
            {
                let oldest = kept.iter().min_by_key(|(_, output)| output.since);
                let Some(oldest) = oldest.map(|(handle, _)| handle.clone()) else { break };
                kept.remove(&oldest);
            }
            kept.insert(handle, Output { session, text, since: Instant::now() });
        }
        Cut { page, rest }
    }

    /// A page of what is kept: `HANDLE`, or `HANDLE@OFFSET`.
    pub fn read(&self, session: Session, id: &str) -> Result<Value, Fault> {
        let (handle, offset) = match id.split_once('@') {
            Some((handle, offset)) => (handle, offset.parse().map_err(|_| bad(id))?),
            None => (id, 0_usize),
        };
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|_, output| output.since.elapsed() < KEPT);
        let output = kept.get(handle).filter(|output| output.session == session);
        let output = output.ok_or_else(|| {
            let shown: String = handle.chars().take(80).collect();
            Fault::new(ErrorKind::NotFound, format!("no output is kept as `{shown}`"))
                .with_hint("output is kept for a quarter of an hour; make the call again")
        })?;
        if offset > output.text.len() || !output.text.is_char_boundary(offset) {
            return Err(bad(id));
        }
        let text = page(&output.text, offset);
        let end = offset + text.len();
        let next = (end < output.text.len()).then(|| format!("{handle}@{end}"));
        Ok(json!({
            "type": "output", "id": handle, "offset": offset, "text": text,
            "total_bytes": output.text.len(), "next": next,
        }))
    }
}

/// The page that starts there. It ends between two characters.
fn page(text: &str, offset: usize) -> &str {
    let mut end = offset.saturating_add(PAGE).min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(offset..end).unwrap_or_default()
}

fn told(handle: Option<&str>, end: usize, total: usize) -> Value {
    let next = handle.map(|handle| format!("{handle}@{end}"));
    json!({"handle": handle, "shown_bytes": end, "total_bytes": total, "next": next})
}

fn bad(id: &str) -> Fault {
    let shown: String = id.chars().take(100).collect();
    Fault::new(ErrorKind::InvalidParams, format!("`{shown}` is no page of an output"))
        .with_hint("give the `next` of the page before as item_id")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_give_the_whole_text_to_its_session_alone() {
        let outputs = Outputs::default();
        let (mine, other) = (Session::start(), Session::start());
        let text = "ä€".repeat(PAGE);
        let cut = outputs.keep(mine, text.clone());
        let mut read = cut.page;
        let mut next = cut.rest["next"].as_str().map(str::to_owned);
        assert!(outputs.read(other, next.as_deref().expect("next")).is_err());
        while let Some(id) = next {
            let page = outputs.read(mine, &id).expect("page");
            read.push_str(page["text"].as_str().expect("text"));
            next = page["next"].as_str().map(str::to_owned);
        }
        assert_eq!(read, text);
        let handle = cut.rest["handle"].as_str().expect("handle");
        for bad in ["x", &format!("{handle}@1"), &format!("{handle}@-1"), &format!("{handle}@99999999")] {
            assert!(outputs.read(mine, bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_kept_has_a_bound() {
        let outputs = Outputs::default();
        for _ in 0..MOST + 20 {
            outputs.keep(Session::start(), "x".repeat(PAGE + 1));
        }
        assert_eq!(outputs.kept.lock().expect("kept").len(), MOST);
        let huge = outputs.keep(Session::start(), "x".repeat(MOST_BYTES + 1));
        assert_eq!(huge.rest["handle"], Value::Null);
    }
}
