//! Expressions: one function per level of the grammar, chains kept flat.

use super::{Lost, MAX_NESTING, Parsed, Parser};
use crate::Token;
use crate::syntax::{CallSyntax, Name, Node, NodeKind, Operator};
use crate::token::RESERVED;

/// The three levels of operators between values, loosest first.
const LEVELS: usize = 3;

impl Parser<'_> {
    /// `Or = And {"or" And}`.
    pub(super) fn expression(&mut self) -> Parsed<Node> {
        if self.depth >= MAX_NESTING {
            let message = format!("this is nested more than {MAX_NESTING} levels deep");
            self.complain(self.here(), message, "split the condition into several guards or rules");
            return Err(Lost);
        }
        self.depth += 1;
        let node = self.list("or", |parser| parser.list("and", Self::not, NodeKind::All), NodeKind::Any);
        self.depth -= 1;
        node
    }

    /// Parts with a word between them; a single part stands for itself.
    fn list(
        &mut self,
        word: &str,
        part: impl Fn(&mut Self) -> Parsed<Node>,
        kind: impl Fn(Vec<Node>) -> NodeKind,
    ) -> Parsed<Node> {
        let first = part(self)?;
        let start = first.span;
        if self.peek_word() != Some(word) {
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.take_word(word) {
            parts.push(part(self)?);
        }
        Ok(Node { kind: kind(parts), span: start.to(self.behind()) })
    }

    fn not(&mut self) -> Parsed<Node> {
        let start = self.here();
        if !self.take_word("not") {
            return self.chain(0);
        }
        let inner = self.chain(0)?;
        Ok(Node { kind: NodeKind::Not(Box::new(inner)), span: start.to(self.behind()) })
    }

    /// `Cmp`, `Add` and `Mul` differ in their operators only.
    fn chain(&mut self, level: usize) -> Parsed<Node> {
        if level >= LEVELS {
            return self.unary();
        }
        let first = self.chain(level + 1)?;
        let start = first.span;
        let mut rest = Vec::new();
        while let Some(operator) = self.peek().and_then(|token| operator(token, level)) {
            self.bump();
            rest.push((operator, self.chain(level + 1)?));
        }
        if rest.is_empty() {
            return Ok(first);
        }
        let kind = NodeKind::Chain { first: Box::new(first), rest };
        Ok(Node { kind, span: start.to(self.behind()) })
    }

    fn unary(&mut self) -> Parsed<Node> {
        let start = self.here();
        if !self.take(&Token::Minus) {
            return self.primary();
        }
        let inner = self.primary()?;
        Ok(Node { kind: NodeKind::Negate(Box::new(inner)), span: start.to(self.behind()) })
    }

    fn primary(&mut self) -> Parsed<Node> {
        let span = self.here();
        let kind = match self.peek() {
            Some(Token::Integer(integer)) => NodeKind::Integer(*integer),
            Some(Token::Text(text)) => NodeKind::Text(text.clone()),
            Some(Token::Variable(path)) => NodeKind::Variable(path.clone()),
            Some(Token::Word(word)) if word == "true" || word == "false" => NodeKind::Bool(word == "true"),
            Some(Token::Word(word)) if !RESERVED.contains(&word.as_str()) => {
                self.bump();
                let call = self.call(Name { text: word.clone(), span })?;
                let span = call.span;
                return Ok(Node { kind: NodeKind::Call(call), span });
            }
            Some(Token::OpenParen) => {
                self.bump();
                let inner = self.expression()?;
                self.expect(&Token::CloseParen, "")?;
                return Ok(inner);
            }
            _ => {
                return self.lost(
                    "a value",
                    "values are integers, strings, `true`, `false`, `$variables` and calls",
                );
            }
        };
        self.bump();
        Ok(Node { kind, span })
    }

    /// What follows the name of a function or an effect.
    pub(super) fn call(&mut self, name: Name) -> Parsed<CallSyntax> {
        let hint = format!("a call is written `{0}(…)`; a variable is written `${0}`", name.text);
        self.expect(&Token::OpenParen, &hint)?;
        let mut arguments = Vec::new();
        if !self.take(&Token::CloseParen) {
            loop {
                arguments.push(self.expression()?);
                if self.take(&Token::CloseParen) {
                    break;
                }
                if !self.take(&Token::Comma) {
                    return self.lost("`,` or `)`", "");
                }
            }
        }
        let span = name.span.to(self.behind());
        Ok(CallSyntax { name, arguments, span })
    }
}

fn operator(token: &Token, level: usize) -> Option<Operator> {
    let (own, operator) = match token {
        Token::Equal => (0, Operator::Equal),
        Token::NotEqual => (0, Operator::NotEqual),
        Token::Less => (0, Operator::Less),
        Token::Greater => (0, Operator::Greater),
        Token::LessEqual => (0, Operator::LessEqual),
        Token::GreaterEqual => (0, Operator::GreaterEqual),
        Token::Plus => (1, Operator::Add),
        Token::Minus => (1, Operator::Subtract),
        Token::Star => (2, Operator::Multiply),
        Token::Slash => (2, Operator::Divide),
        Token::Percent => (2, Operator::Remainder),
        _ => return None,
    };
    (own == level).then_some(operator)
}
