//! Expressions. Operands first, from left to right; then the price; then the types; then the result.

use super::{Evaluator, PIECE, Trouble, integer, text};
use crate::rule::Expr;
use crate::syntax::Operator;
use crate::value::{Value, read};

impl<'a> Evaluator<'a> {
    pub(super) fn value(&mut self, expression: &'a Expr) -> Result<Value<'a>, Trouble> {
        Ok(match expression {
            Expr::Integer(integer) => Value::Integer(*integer),
            Expr::Bool(truth) => Value::Bool(*truth),
            Expr::Text(text) => Value::Text(text),
            Expr::Variable(variable) => {
                read(self.request, variable).map_err(|why| Trouble::unusable(variable, why))?
            }
            Expr::Not(inner) => {
                let value = self.value(inner)?;
                self.spend(1)?;
                Value::Bool(!truth(value, "`not`")?)
            }
            Expr::Negate(inner) => {
                let value = self.value(inner)?;
                self.spend(1)?;
                Value::Integer(integer(value, "`-`")?.checked_neg().ok_or(Trouble::Overflow)?)
            }
            Expr::All(parts) => Value::Bool(self.list(parts, "`and`", false)?),
            Expr::Any(parts) => Value::Bool(self.list(parts, "`or`", true)?),
            Expr::Chain { first, rest } => {
                let mut left = self.value(first)?;
                for (operator, part) in rest {
                    let right = self.value(part)?;
                    left = self.apply(*operator, left, right)?;
                }
                left
            }
            Expr::Has(variable) => {
                self.spend(1)?;
                Value::Bool(read(self.request, variable).is_ok())
            }
            Expr::Matches { text: subject, glob } => {
                let subject = self.value(subject)?;
                let length = if let Value::Text(text) = subject { text.len() } else { 0 };
                self.spend(1 + length.saturating_mul(glob.weight()) / PIECE)?;
                Value::Bool(glob.matches(text(subject, "`matches`")?))
            }
            Expr::Call { function, arguments } => self.call(*function, arguments)?,
        })
    }

    /// The value of a condition.
    pub(super) fn truth(&mut self, expression: &'a Expr, taker: &'static str) -> Result<bool, Trouble> {
        let value = self.value(expression)?;
        truth(value, taker)
    }

    /// `and` and `or`: parts from the left until one settles the answer; the others are not looked at.
    fn list(&mut self, parts: &'a [Expr], taker: &'static str, settles: bool) -> Result<bool, Trouble> {
        for (number, part) in parts.iter().enumerate() {
            if number > 0 {
                self.spend(1)?;
            }
            if self.truth(part, taker)? == settles {
                return Ok(settles);
            }
        }
        Ok(!settles)
    }

    fn apply(&mut self, operator: Operator, left: Value<'a>, right: Value<'a>) -> Result<Value<'a>, Trouble> {
        let pieces = match (left, right) {
            (Value::Text(left), Value::Text(right)) => left.len().min(right.len()) / PIECE,
            _ => 0,
        };
        self.spend(1 + pieces)?;
        match operator {
            Operator::Equal => equal(operator, left, right).map(Value::Bool),
            Operator::NotEqual => equal(operator, left, right).map(|same| Value::Bool(!same)),
            _ => {
                let name = taker(operator);
                let (left, right) = (integer(left, name)?, integer(right, name)?);
                arithmetic(operator, left, right)
            }
        }
    }
}

fn truth(value: Value<'_>, taker: &'static str) -> Result<bool, Trouble> {
    match value {
        Value::Bool(truth) => Ok(truth),
        other => Err(Trouble::Type { taker, wanted: "a boolean", found: other.type_name() }),
    }
}

fn equal(operator: Operator, left: Value<'_>, right: Value<'_>) -> Result<bool, Trouble> {
    match (left, right) {
        (Value::Integer(left), Value::Integer(right)) => Ok(left == right),
        (Value::Bool(left), Value::Bool(right)) => Ok(left == right),
        (Value::Text(left), Value::Text(right)) => Ok(left == right),
        _ => Err(Trouble::Unequal {
            operator: operator.as_str(),
            left: left.type_name(),
            right: right.type_name(),
        }),
    }
}

/// Division truncates toward zero, as in the formulas of the effects; `-7 / 2` is `-3` and `-7 % 2` is `-1`.
fn arithmetic<'a>(operator: Operator, left: i64, right: i64) -> Result<Value<'a>, Trouble> {
    let result = match operator {
        Operator::Less => return Ok(Value::Bool(left < right)),
        Operator::Greater => return Ok(Value::Bool(left > right)),
        Operator::LessEqual => return Ok(Value::Bool(left <= right)),
        Operator::GreaterEqual => return Ok(Value::Bool(left >= right)),
        Operator::Equal => return Ok(Value::Bool(left == right)),
        Operator::NotEqual => return Ok(Value::Bool(left != right)),
        Operator::Add => left.checked_add(right),
        Operator::Subtract => left.checked_sub(right),
        Operator::Multiply => left.checked_mul(right),
        Operator::Divide | Operator::Remainder if right == 0 => return Err(Trouble::DivisionByZero),
        Operator::Divide => left.checked_div(right),
        Operator::Remainder => left.checked_rem(right),
    };
    result.map(Value::Integer).ok_or(Trouble::Overflow)
}

/// The operator as sentences name it.
fn taker(operator: Operator) -> &'static str {
    match operator {
        Operator::Equal => "`==`",
        Operator::NotEqual => "`!=`",
        Operator::Less => "`<`",
        Operator::Greater => "`>`",
        Operator::LessEqual => "`<=`",
        Operator::GreaterEqual => "`>=`",
        Operator::Add => "`+`",
        Operator::Subtract => "`-`",
        Operator::Multiply => "`*`",
        Operator::Divide => "`/`",
        Operator::Remainder => "`%`",
    }
}
