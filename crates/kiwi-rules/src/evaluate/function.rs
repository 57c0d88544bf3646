//! The functions that take values.

use super::{Evaluator, PIECE, Trouble, integer, text};
use crate::rule::{Expr, Function};
use crate::value::Value;

/// One, in basis points.
const WHOLE: i64 = 10_000;

impl<'a> Evaluator<'a> {
    pub(super) fn call(&mut self, function: Function, arguments: &'a [Expr]) -> Result<Value<'a>, Trouble> {
        let mut values = Vec::with_capacity(arguments.len());
        for argument in arguments {
            values.push(self.value(argument)?);
        }
        let length = if let Some(Value::Text(text)) = values.first() { text.len() } else { 0 };
        self.spend(1 + length / PIECE)?;
        let taker = taker(function);
        match (function, values.as_slice()) {
            (Function::StartsWith, [subject, start]) => {
                let (subject, start) = (text(*subject, taker)?, text(*start, taker)?);
                Ok(Value::Bool(subject.starts_with(start)))
            }
            (Function::Contains, [subject, part]) => {
                let (subject, part) = (text(*subject, taker)?, text(*part, taker)?);
                Ok(Value::Bool(subject.contains(part)))
            }
            (Function::Len, [subject]) => {
                let count = text(*subject, taker)?.chars().count();
                i64::try_from(count).map(Value::Integer).map_err(|_| Trouble::Overflow)
            }
            (_, values) => {
                let numbers: Vec<i64> =
                    values.iter().map(|value| integer(*value, taker)).collect::<Result<_, _>>()?;
                self.numbers(function, &numbers).map(Value::Integer)
            }
        }
    }

    fn numbers(&mut self, function: Function, numbers: &[i64]) -> Result<i64, Trouble> {
        match (function, numbers) {
            (Function::Min, numbers) => numbers.iter().copied().min().ok_or(Trouble::Overflow),
            (Function::Max, numbers) => numbers.iter().copied().max().ok_or(Trouble::Overflow),
            (Function::BpsMul, [a, b]) => scale(*a, *b, WHOLE),
            (Function::BpsDiv, [a, b]) => scale(*a, WHOLE, *b),
            (Function::Decay, [value, rate, rounds]) => self.decay(*value, *rate, *rounds),
            // The checker has counted the arguments.
            _ => Err(Trouble::Overflow),
        }
    }

    /// Each round is paid for, so a rule cannot ask for more of them than it has operations.
    fn decay(&mut self, value: i64, rate: i64, rounds: i64) -> Result<i64, Trouble> {
        if rounds < 0 {
            return Err(Trouble::NegativeRounds);
        }
        let mut value = value;
        for _ in 0..rounds {
            self.spend(1)?;
            let kept = WHOLE.checked_sub(rate).ok_or(Trouble::Overflow)?;
            value = scale(value, kept, WHOLE)?;
        }
        Ok(value)
    }
}

/// `a * b / c`, each step as the language would do it.
fn scale(a: i64, b: i64, c: i64) -> Result<i64, Trouble> {
    let product = a.checked_mul(b).ok_or(Trouble::Overflow)?;
    if c == 0 {
        return Err(Trouble::DivisionByZero);
    }
    product.checked_div(c).ok_or(Trouble::Overflow)
}

fn taker(function: Function) -> &'static str {
    match function {
        Function::StartsWith => "`starts_with`",
        Function::Contains => "`contains`",
        Function::Len => "`len`",
        Function::Min => "`min`",
        Function::Max => "`max`",
        Function::BpsMul => "`bps_mul`",
        Function::BpsDiv => "`bps_div`",
        Function::Decay => "`decay`",
    }
}
