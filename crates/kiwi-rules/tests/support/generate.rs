//! Rulesets and requests from a seed: the same on every machine, in every run.

use serde_json::{Value, json};

use super::tree::{RuleTree, Then, Tree};

/// A deterministic source (SplitMix64 underneath).
pub struct Generator(u64);

const TOOLS: [&str; 8] = ["fs.read", "fs.write", "fs/x", "net.get", "shell.run", "fs", "", "fs.read.deep.er"];
const GLOBS: [&str; 10] =
    ["fs.*", "*", "**", "fs.read", "*.run", "?s.*", "fs/**", "f*.*e*", "**x", "net.get*"];
const VARS: [&str; 22] = [
    "caller",
    "tool",
    "mode",
    "tool_type",
    "space",
    "mutates",
    "interactive",
    "permission.allowed",
    "permission.answer",
    "args.n",
    "args.s",
    "args.b",
    "args.none",
    "args.null",
    "args.f",
    "args.list",
    "args.o",
    "args.o.n",
    "args.s.deeper",
    "args.huge",
    "state.calls",
    "state.reputation.alice",
];
const INTS: [i64; 14] = [0, 1, 2, 3, 7, -1, -2, -7, 10_000, 9_999, 100, i64::MAX, -i64::MAX, i64::MAX / 2];
const STRS: [&str; 9] = ["", "a", "fs.read", "fs", "alice", "normal", "readonly", "allow", "q\"\\\né"];
const PATHS: [&str; 15] = [
    "state.calls",
    "state.calls",
    "state.new.deep",
    "state.reputation.alice",
    "state.reputation",
    "state.name",
    "state.name.below",
    "calls",
    "audit.log",
    "permission.allowed",
    "mode",
    "state",
    "args.n",
    "reputation",
    "fresh",
];

impl Generator {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).expect("small")
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub fn request(&mut self) -> Value {
        let mut args = json!({
            "n": self.pick(&INTS), "s": self.pick(&STRS), "b": self.one_in(2), "null": null, "f": 1.5,
            "list": [1], "o": {"n": self.below(5)}, "huge": u64::MAX,
        });
        if self.one_in(40) {
            args["s"] = "fs.read ".repeat(1 << self.below(10)).into();
        }
        for key in ["n", "s", "b"] {
            if self.one_in(6) {
                args.as_object_mut().expect("a map").remove(key);
            }
        }
        json!({
            "caller": self.pick(&["alice", "bob", ""]),
            "tool": self.pick(&TOOLS),
            "mode": self.pick(&["normal", "readonly", "admin"]),
            "args": args,
            "tool_type": self.pick(&["script", "api"]),
            "space": self.pick(&["project", "user", "system"]),
            "mutates": self.one_in(2),
            "state": {
                "calls": self.pick(&[0, 1, 5, i64::MAX]),
                "reputation": {"alice": self.pick(&[0, 50, 10_000])},
                "name": "x",
            },
            "interactive": self.one_in(2),
            "permission": {"allowed": self.one_in(2), "answer": self.pick(&["allow", "ask", "deny"])},
        })
    }

    /// Rules whose names differ; whether the set loads is for the crate to say.
    pub fn ruleset(&mut self) -> Vec<RuleTree> {
        let count = 1 + self.below(5);
        (0..count).map(|number| self.rule(format!("{}{number}", self.pick_name()))).collect()
    }

    fn pick_name(&self) -> char {
        char::from(b'a' + u8::try_from(self.0 % 26).expect("a letter"))
    }

    fn rule(&mut self, name: String) -> RuleTree {
        let mut guards: Vec<(Option<Tree>, Then)> = Vec::new();
        for _ in 0..self.below(4) {
            let condition = self.condition();
            guards.push((Some(condition), self.then()));
        }
        if self.one_in(4) {
            guards.push((None, self.then()));
        }
        let effects =
            if self.one_in(3) { (0..=self.below(3)).map(|_| self.effect()).collect() } else { vec![] };
        RuleTree { name, guards, effects }
    }

    fn then(&mut self) -> Then {
        match self.below(7) {
            0 => Then::Reject(self.pick(&STRS).to_owned()),
            1 => Then::Ask(self.pick(&STRS).to_owned()),
            _ => Then::Admit,
        }
    }

    /// Mostly conditions about a tool, as people write them; sometimes anything at all.
    fn condition(&mut self) -> Tree {
        let head = match self.below(6) {
            0 => Tree::Op("==", Box::new(Tree::Var("tool")), Box::new(Tree::Str(self.pick(&TOOLS).into()))),
            1 => Tree::Op("==", Box::new(Tree::Str(self.pick(&TOOLS).into())), Box::new(Tree::Var("tool"))),
            2 => Tree::Call("matches", vec![Tree::Var("tool"), Tree::Str(self.pick(&GLOBS).into())]),
            3 => Tree::Call("starts_with", vec![Tree::Var("tool"), Tree::Str(self.pick(&TOOLS).into())]),
            _ => return self.boolean(4),
        };
        match self.below(4) {
            0 => head,
            1 => Tree::Op("or", Box::new(head), Box::new(self.condition())),
            _ => Tree::Op("and", Box::new(head), Box::new(self.boolean(3))),
        }
    }

    /// Now and then of another type than it should be.
    fn boolean(&mut self, depth: usize) -> Tree {
        if self.one_in(40) {
            return self.integer(0);
        }
        if depth == 0 {
            return match self.below(4) {
                0 => Tree::Var(self.pick(&["mutates", "interactive", "permission.allowed", "args.b"])),
                1 => Tree::Var(self.pick(&VARS)),
                _ => Tree::Bool(self.one_in(2)),
            };
        }
        match self.below(9) {
            0 => Tree::Not(Box::new(self.boolean(depth - 1))),
            1 | 2 => {
                let word = self.pick(&["and", "or"]);
                Tree::Op(word, Box::new(self.boolean(depth - 1)), Box::new(self.boolean(depth - 1)))
            }
            3 | 4 => {
                let sign = self.pick(&["==", "!=", "<", ">", "<=", ">="]);
                Tree::Op(sign, Box::new(self.integer(depth - 1)), Box::new(self.integer(depth - 1)))
            }
            5 => {
                let sign = self.pick(&["==", "!="]);
                Tree::Op(sign, Box::new(self.text()), Box::new(self.text()))
            }
            6 => Tree::Call("matches", vec![self.text(), Tree::Str(self.pick(&GLOBS).into())]),
            7 => Tree::Call("has", vec![Tree::Var(self.pick(&VARS))]),
            _ => Tree::Call(self.pick(&["contains", "starts_with"]), vec![self.text(), self.text()]),
        }
    }

    fn text(&mut self) -> Tree {
        match self.below(12) {
            0 => self.integer(0),
            1..=4 => Tree::Str(self.pick(&STRS).to_owned()),
            5 => Tree::Var(self.pick(&VARS)),
            _ => Tree::Var(self.pick(&["tool", "caller", "mode", "args.s"])),
        }
    }

    fn integer(&mut self, depth: usize) -> Tree {
        if self.one_in(60) {
            return Tree::Str("not a number".into());
        }
        if depth == 0 {
            return match self.below(4) {
                0 => Tree::Var(self.pick(&["args.n", "state.calls", "state.reputation.alice", "args.o.n"])),
                _ => Tree::Int(self.pick(&INTS)),
            };
        }
        if self.one_in(200) {
            let first = Tree::Int(self.pick(&INTS));
            return (0..15 + self.below(3))
                .fold(first, |inner, _| Tree::Call("max", vec![inner, Tree::Int(1)]));
        }
        match self.below(8) {
            0 => Tree::Neg(Box::new(self.integer(depth - 1))),
            1..=3 => {
                let sign = self.pick(&["+", "-", "*", "/", "%"]);
                Tree::Op(sign, Box::new(self.integer(depth - 1)), Box::new(self.integer(depth - 1)))
            }
            4 => {
                let count = if self.one_in(60) { 9 } else { 2 + self.below(3) };
                let list = (0..count).map(|_| self.integer(depth - 1)).collect();
                Tree::Call(self.pick(&["min", "max"]), list)
            }
            5 => {
                let name = self.pick(&["bps_mul", "bps_div"]);
                Tree::Call(name, vec![self.integer(depth - 1), self.integer(depth - 1)])
            }
            6 => {
                // Long ones are dear to compare and all alike.
                let rounds = if self.one_in(40) { &[9_997, 9_999, 20_000][..] } else { &[0, 1, 3, 20, -1] };
                let rounds = Tree::Int(self.pick(rounds));
                Tree::Call("decay", vec![self.integer(depth - 1), Tree::Int(self.pick(&INTS)), rounds])
            }
            _ => Tree::Call("len", vec![self.text()]),
        }
    }

    fn effect(&mut self) -> (&'static str, Vec<Tree>) {
        let path = |generator: &mut Self| {
            let path = generator.pick(&PATHS);
            match generator.below(12) {
                0 => generator.integer(0),
                1..=3 => Tree::Var(path),
                _ => Tree::Str(path.to_owned()),
            }
        };
        match self.below(4) {
            0 => ("set", vec![path(self), self.value()]),
            1 => {
                let name = if self.one_in(8) { Tree::Str("audit.x".into()) } else { self.text() };
                let count = if self.one_in(20) { 8 } else { self.below(3) };
                ("emit", std::iter::once(name).chain((0..count).map(|_| self.value())).collect())
            }
            _ => {
                let delta = if self.one_in(3) { self.integer(1) } else { Tree::Int(self.pick(&[1, 2, -1])) };
                ("apply", vec![path(self), delta])
            }
        }
    }

    fn value(&mut self) -> Tree {
        match self.below(3) {
            0 => self.text(),
            1 => self.boolean(1),
            _ => self.integer(2),
        }
    }
}
