//! Rules, their blocks, and where to go on after an error.

use super::{Lost, Parsed, Parser};
use crate::Token;
use crate::syntax::{Action, CallSyntax, ClauseSyntax, ExampleSyntax, FileSyntax, Name, RuleSyntax, Verb};
use crate::token::RESERVED;

/// The blocks that a rule has been seen to hold.
#[derive(Default)]
struct Blocks {
    guards: Option<Vec<ClauseSyntax>>,
    effects: Option<Vec<CallSyntax>>,
    examples: Vec<ExampleSyntax>,
}

impl Parser<'_> {
    pub(super) fn file(&mut self) -> FileSyntax {
        let mut file = FileSyntax::default();
        while self.peek().is_some() && !self.is_full() {
            let step = match self.peek_word() {
                Some("rule") => self.rule().map(|rule| file.rules.push(rule)),
                Some("examples") => self.examples().map(|mut found| file.examples.append(&mut found)),
                _ => self.lost("`rule` or `examples`", "a rule file is a list of `rule NAME { … }`"),
            };
            if step.is_err() {
                self.skip_until(|token| token.is_word("rule"));
            }
        }
        file
    }

    /// Forward to a token that the caller can use, but never past the word that begins a rule.
    fn skip_until(&mut self, found: impl Fn(&Token) -> bool) {
        while let Some(token) = self.peek() {
            if found(token) || token.is_word("rule") {
                return;
            }
            self.bump();
        }
    }

    fn rule(&mut self) -> Parsed<RuleSyntax> {
        let begin = self.here();
        self.bump();
        let name = self.rule_name()?;
        self.expect(&Token::OpenBrace, "a rule is written `rule NAME { guards { … } effects { … } }`")?;
        let mut blocks = Blocks::default();
        let end;
        loop {
            match self.peek_word() {
                Some("guards") if blocks.guards.is_none() && blocks.effects.is_none() => {
                    blocks.guards = Some(self.guards()?);
                }
                Some("effects") if blocks.guards.is_some() && blocks.effects.is_none() => {
                    blocks.effects = Some(self.effects()?);
                }
                Some("examples") => blocks.examples.append(&mut self.examples()?),
                _ if blocks.guards.is_none() => {
                    return self.lost("`guards`", "a rule begins with `guards { CONDITION -> ANSWER }`");
                }
                _ if blocks.effects.is_none() => {
                    return self.lost("`effects`", "a rule without effects says so: `effects { }`");
                }
                _ => {
                    end = self.here();
                    self.expect(&Token::CloseBrace, "`guards` and `effects` stand once each, in this order")?;
                    break;
                }
            }
        }
        let Blocks { guards, effects, examples } = blocks;
        Ok(RuleSyntax {
            span: begin.to(end),
            name,
            guards: guards.unwrap_or_default(),
            effects: effects.unwrap_or_default(),
            examples,
        })
    }

    fn rule_name(&mut self) -> Parsed<Name> {
        let span = self.here();
        match self.peek_word() {
            Some(word) if RESERVED.contains(&word) => {
                self.complain(span, format!("`{word}` is a word of the language"), "choose another name");
                Err(Lost)
            }
            Some(word) => {
                let text = word.to_owned();
                self.bump();
                Ok(Name { text, span })
            }
            None => self.lost("the name of the rule", "a name has letters, digits and `_`"),
        }
    }

    /// The entries of a block up to its closing brace. After a slip it goes on where `resume` has found its feet.
    fn block<T>(
        &mut self,
        entry: impl Fn(&mut Self) -> Parsed<T>,
        resume: impl Fn(&mut Self),
    ) -> Parsed<Vec<T>> {
        self.bump();
        self.expect(&Token::OpenBrace, "")?;
        let mut entries = Vec::new();
        loop {
            if self.take(&Token::CloseBrace) {
                return Ok(entries);
            }
            if self.is_full() {
                return Err(Lost);
            }
            let before = self.at;
            match entry(self) {
                Ok(found) => entries.push(found),
                Err(Lost) if self.peek().is_none() || self.peek_word() == Some("rule") => return Err(Lost),
                Err(Lost) => {
                    resume(self);
                    // Whatever was not understood here is not looked at twice.
                    if self.at == before {
                        self.bump();
                    }
                }
            }
        }
    }

    fn guards(&mut self) -> Parsed<Vec<ClauseSyntax>> {
        self.block(Self::clause, |parser| {
            parser.skip_until(|token| {
                matches!(token, Token::CloseBrace)
                    || ["admit", "ask", "reject"].iter().any(|w| token.is_word(w))
            });
            if parser.take_word("ask") || parser.take_word("reject") {
                if matches!(parser.peek(), Some(Token::Text(_))) {
                    parser.bump();
                }
            } else {
                parser.take_word("admit");
            }
        })
    }

    fn clause(&mut self) -> Parsed<ClauseSyntax> {
        let start = self.here();
        let condition = if self.take_word("else") { None } else { Some(self.expression()?) };
        self.expect(&Token::Arrow, "a guard is written `CONDITION -> admit`")?;
        let action = self.action()?;
        Ok(ClauseSyntax { condition, action, span: start.to(self.behind()) })
    }

    fn action(&mut self) -> Parsed<Action> {
        match self.peek_word() {
            Some("admit") => {
                self.bump();
                Ok(Action::Admit)
            }
            Some("ask") => self.reason("ask").map(Action::Ask),
            Some("reject") => self.reason("reject").map(Action::Reject),
            _ => self.lost("an answer", "the answers are `admit`, `ask \"why\"` and `reject \"why\"`"),
        }
    }

    fn reason(&mut self, word: &str) -> Parsed<String> {
        self.bump();
        match self.peek() {
            Some(Token::Text(text)) => {
                self.bump();
                Ok(text.clone())
            }
            _ => self.lost("the reason", &format!("write `{word} \"why\"`: whoever is stopped reads it")),
        }
    }

    fn effects(&mut self) -> Parsed<Vec<CallSyntax>> {
        self.block(Self::effect, |parser| {
            parser.skip_until(|token| matches!(token, Token::CloseBrace | Token::CloseParen));
            parser.take(&Token::CloseParen);
        })
    }

    fn effect(&mut self) -> Parsed<CallSyntax> {
        let span = self.here();
        match self.peek_word() {
            Some(word) if !RESERVED.contains(&word) => {
                self.bump();
                self.call(Name { text: word.to_owned(), span })
            }
            _ => self.lost(
                "an effect",
                "the effects are `set(path, value)`, `apply(counter, delta)` and `emit(name, …)`",
            ),
        }
    }

    fn examples(&mut self) -> Parsed<Vec<ExampleSyntax>> {
        self.block(Self::example, |parser| {
            parser.skip_until(|token| matches!(token, Token::CloseBrace | Token::Json(_)));
            if matches!(parser.peek(), Some(Token::Json(_))) {
                parser.bump();
            }
        })
    }

    fn example(&mut self) -> Parsed<ExampleSyntax> {
        let start = self.here();
        let verb = match self.peek_word() {
            Some("admits") => Verb::Admits,
            Some("asks") => Verb::Asks,
            Some("rejects") => Verb::Rejects,
            _ => {
                return self.lost(
                    "`admits`, `asks` or `rejects`",
                    "an example is written `admits {\"tool\": \"a\"}`",
                );
            }
        };
        self.bump();
        match self.peek() {
            Some(Token::Json(request)) => {
                self.bump();
                Ok(ExampleSyntax { verb, request: request.clone(), span: start.to(self.behind()) })
            }
            _ => self.lost("a JSON object", "an example is written `admits {\"tool\": \"a\"}`"),
        }
    }
}
