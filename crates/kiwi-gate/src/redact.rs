//! Taking secrets out of whatever is shown, kept or passed on.

use kiwi_exec::{Stream, Watch};
use kiwi_model::Fault;
use serde_json::Value;
use std::sync::{Arc, Mutex, PoisonError};

use crate::encodings::shapes;
use crate::stage::Reply;
use crate::vault::Secrets;

/// Shorter ones are in every text by chance.
const SHORTEST: usize = 4;

/// Replaces secrets, also where they were encoded.
#[derive(Debug, Clone, Default)]
pub(crate) struct Redactor {
    /// Longest first, so that a secret inside another is not what is replaced.
    needles: Vec<(Vec<u8>, String)>,
    /// The bytes they begin with: most others need no second look.
    firsts: Vec<u8>,
}

impl Redactor {
    /// For these secrets.
    pub fn new(secrets: &Secrets) -> Self {
        let mut needles = Vec::new();
        for (name, secret) in secrets.iter().filter(|(_, secret)| secret.expose().len() >= SHORTEST) {
            let shown = format!("[secret:{name}]");
            needles.extend(shapes(secret.expose()).into_iter().map(|it| (it.into_bytes(), shown.clone())));
        }
        needles.sort_by_key(|(needle, _)| std::cmp::Reverse(needle.len()));
        let mut firsts: Vec<u8> = needles.iter().filter_map(|(needle, _)| needle.first().copied()).collect();
        firsts.sort_unstable();
        firsts.dedup();
        Self { needles, firsts }
    }

    /// Whether there is nothing to take out.
    pub fn is_idle(&self) -> bool {
        self.needles.is_empty()
    }

    /// A text without secrets.
    pub fn text(&self, text: &str) -> String {
        self.owned(text.to_owned())
    }

    /// Whether there is anything to leave out of a text.
    pub fn finds_in(&self, text: &str) -> bool {
        !self.is_idle() && self.text(text) != text
    }

    /// The same for a text that need not be kept.
    pub fn owned(&self, text: String) -> String {
        if self.is_idle() {
            return text;
        }
        String::from_utf8_lossy(&self.bytes(text.as_bytes(), false).0).into_owned()
    }

    /// Bytes without secrets, and at their end what may be the beginning of one as long as more may follow.
    fn bytes(&self, bytes: &[u8], more: bool) -> (Vec<u8>, Vec<u8>) {
        let mut out = Vec::with_capacity(bytes.len());
        let mut rest = bytes;
        while let Some((first, tail)) = rest.split_first() {
            if !self.firsts.contains(first) {
                out.push(*first);
                rest = tail;
                continue;
            }
            let begins = |needle: &Vec<u8>| needle.len() > rest.len() && needle.starts_with(rest);
            if more && self.needles.iter().any(|(needle, _)| begins(needle)) {
                return (out, rest.to_vec());
            }
            let Some((needle, shown)) = self.needles.iter().find(|(needle, _)| rest.starts_with(needle))
            else {
                out.push(*first);
                rest = tail;
                continue;
            };
            out.extend_from_slice(shown.as_bytes());
            rest = rest.get(needle.len()..).unwrap_or_default();
        }
        (out, Vec::new())
    }

    /// A value without secrets, keys of objects included.
    pub fn value(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(&text)),
            Value::Array(items) => items.into_iter().map(|item| self.value(item)).collect(),
            Value::Object(map) => {
                map.into_iter().map(|(key, item)| (self.text(&key), self.value(item))).collect()
            }
            other => other,
        }
    }

    /// A failure without secrets.
    pub fn fault(&self, fault: Fault) -> Fault {
        Fault {
            kind: fault.kind,
            message: self.text(&fault.message),
            hint: fault.hint.map(|hint| self.text(&hint)),
            details: self.value(fault.details),
        }
    }

    /// A reply without secrets.
    pub fn reply(&self, reply: Reply) -> Reply {
        if self.is_idle() {
            return reply;
        }
        Reply {
            result: self.value(reply.result),
            content: reply.content.map(|content| self.value(content)),
            stderr: self.text(&reply.stderr),
            failure: reply.failure.map(|fault| self.fault(fault)),
            loop_notice: reply.loop_notice,
            warnings: reply.warnings.iter().map(|warning| self.text(warning)).collect(),
            took: reply.took,
        }
    }
}

/// Shows output as it comes, without secrets. What could be the beginning of one waits for what follows.
pub(crate) struct Redacting {
    redactor: Redactor,
    shown: Arc<dyn Watch>,
    waiting: Mutex<[Vec<u8>; 2]>,
}

impl Redacting {
    /// Stands in front of whoever watches.
    pub fn new(redactor: Redactor, shown: Arc<dyn Watch>) -> Self {
        Self { redactor, shown, waiting: Mutex::default() }
    }

    /// Shows what was held back.
    pub fn finish(&self) {
        let waiting = std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
        for (stream, bytes) in [Stream::Stdout, Stream::Stderr].into_iter().zip(waiting) {
            self.show(stream, &self.redactor.bytes(&bytes, false).0);
        }
    }

    fn show(&self, stream: Stream, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.shown.output(stream, bytes);
        }
    }
}

impl Watch for Redacting {
    fn output(&self, stream: Stream, bytes: &[u8]) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let [stdout, stderr] = &mut *waiting;
        let own = match stream {
            Stream::Stdout => stdout,
            Stream::Stderr => stderr,
        };
        own.extend_from_slice(bytes);
        let (ready, rest) = self.redactor.bytes(own, true);
        *own = rest;
        self.show(stream, &ready);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Seen(Mutex<String>);

    impl Watch for Seen {
        fn output(&self, _: Stream, bytes: &[u8]) {
            self.0.lock().expect("lock").push_str(&String::from_utf8_lossy(bytes));
        }
    }

    fn redactor() -> Redactor {
        Redactor::new(&Secrets::of(&[
            ("token", "s3cr3t/value!"),
            ("short", "abc"),
            ("long", "s3cr3t/value!-more"),
        ]))
    }

    #[test]
    fn every_form_is_taken_out() {
        let redactor = redactor();
        let check = |text: &str, expect: &str| assert_eq!(redactor.text(text), expect, "{text}");
        check("a s3cr3t/value! b", "a [secret:token] b");
        check("s3cr3t/value!-more", "[secret:long]");
        check("?k=s3cr3t%2Fvalue%21&", "?k=[secret:token]&");
        check("Basic czNjcjN0L3ZhbHVlIQ==", "Basic [secret:token]");
        check("abc s3cr3t", "abc s3cr3t");
        let value = serde_json::json!({"s3cr3t/value!": ["x s3cr3t/value!", 1]});
        assert_eq!(redactor.value(value), serde_json::json!({"[secret:token]": ["x [secret:token]", 1]}));
    }

    #[test]
    fn a_secret_cut_anywhere_is_taken_out_of_a_stream() {
        let text = "before s3cr3t/value! between s3cr3t/value!-more after s3cr3";
        for cut in 0..text.len() {
            let seen = Arc::new(Seen::default());
            let watch = Redacting::new(redactor(), Arc::clone(&seen) as Arc<dyn Watch>);
            let (first, second) = text.split_at(cut);
            watch.output(Stream::Stdout, first.as_bytes());
            watch.output(Stream::Stdout, second.as_bytes());
            watch.finish();
            let shown = seen.0.lock().expect("lock").clone();
            assert!(!shown.contains("value!") && !shown.contains("-more"), "{cut}: {shown}");
            assert!(
                shown.starts_with("before [secret:") && shown.ends_with(" after s3cr3"),
                "{cut}: {shown}"
            );
        }
    }
}
