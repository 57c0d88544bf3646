//! A generator of JSON documents built to trip a canonical form, and a CPython to compare with.

mod generate;
mod python;

pub use generate::Generator;
pub use python::python;
