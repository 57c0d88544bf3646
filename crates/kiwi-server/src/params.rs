//! What is wrong with the parameters of a request whose method is known.
//!
//! The protocol library takes a request whose parameters do not fit for one that it does not know, and says that there is no
//! such method.

use rmcp::ErrorData;
use rmcp::model::ErrorCode;
use serde_json::{Map, Value};

/// What a parameter is.
#[derive(Debug, Clone, Copy)]
enum Form {
    Text,
    Object,
}

impl Form {
    fn fits(self, value: &Value) -> bool {
        match self {
            Self::Text => value.is_string(),
            Self::Object => value.is_object(),
        }
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Text => "a string",
            Self::Object => "an object",
        }
    }
}

/// A parameter, what it is, and whether it has to be there.
type Parameter = (&'static str, Form, bool);

/// The methods that are served, and what each takes.
const METHODS: [(&str, &[Parameter]); 13] = [
    ("tools/call", &[("name", Form::Text, true), ("arguments", Form::Object, false)]),
    ("prompts/get", &[("name", Form::Text, true), ("arguments", Form::Object, false)]),
    ("resources/read", &[("uri", Form::Text, true)]),
    ("resources/subscribe", &[("uri", Form::Text, true)]),
    ("resources/unsubscribe", &[("uri", Form::Text, true)]),
    ("completion/complete", &[("ref", Form::Object, true), ("argument", Form::Object, true)]),
    ("logging/setLevel", &[("level", Form::Text, true)]),
    (
        "initialize",
        &[
            ("protocolVersion", Form::Text, true),
            ("capabilities", Form::Object, true),
            ("clientInfo", Form::Object, true),
        ],
    ),
    ("subscriptions/listen", &[("notifications", Form::Object, true)]),
    ("tools/list", &[("cursor", Form::Text, false)]),
    ("prompts/list", &[("cursor", Form::Text, false)]),
    ("resources/list", &[("cursor", Form::Text, false)]),
    ("resources/templates/list", &[("cursor", Form::Text, false)]),
];

/// What is said of a request that the library does not know, unless what it asks for is served.
pub(crate) fn refused(method: &str, params: Option<&Value>, is_served: bool) -> ErrorData {
    misfit(method, params).filter(|_| is_served).unwrap_or_else(|| {
        let shown: String = method.chars().take(100).collect();
        ErrorData::new(ErrorCode::METHOD_NOT_FOUND, shown, None)
    })
}

/// What is said of the parameters of a request that the library cannot read; nothing where the method is not known.
pub(crate) fn misfit(method: &str, params: Option<&Value>) -> Option<ErrorData> {
    let (_, parameters) = METHODS.iter().find(|(known, _)| *known == method)?;
    let problem = problem(parameters, params);
    let problem = problem.unwrap_or_else(|| "they are not as the protocol has them".to_owned());
    Some(ErrorData::invalid_params(format!("the parameters of `{method}`: {problem}"), None))
}

fn problem(parameters: &[Parameter], params: Option<&Value>) -> Option<String> {
    let nothing = Map::new();
    let given = match params {
        None => &nothing,
        Some(Value::Object(given)) => given,
        Some(_) => return Some("`params` must be an object".to_owned()),
    };
    let meta: Parameter = ("_meta", Form::Object, false);
    parameters.iter().chain([&meta]).find_map(|(name, form, is_required)| match given.get(*name) {
        None if *is_required => Some(format!("`{name}` is missing")),
        // What is not required may be nothing.
        Some(Value::Null) if !is_required => None,
        Some(value) if !form.fits(value) => Some(format!("`{name}` must be {}", form.as_str())),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(method: &str, params: &Value, (code, why): (i32, &str)) {
        let error = refused(method, Some(params).filter(|it| !it.is_null()), true);
        assert_eq!((error.code.0, error.message.as_ref()), (code, why), "{method} {params}");
    }

    #[test]
    fn what_is_wrong_with_parameters_is_told() {
        let of_call = |why: &str| format!("the parameters of `tools/call`: {why}");
        for (params, why) in [
            (json!({"name": "a", "arguments": []}), "`arguments` must be an object"),
            (json!({}), "`name` is missing"),
            (Value::Null, "`name` is missing"),
            (json!({"name": 5}), "`name` must be a string"),
            (json!({"name": null}), "`name` must be a string"),
            (json!([]), "`params` must be an object"),
            (json!({"name": "a", "_meta": 1}), "`_meta` must be an object"),
            (json!({"name": "a", "requestState": 1}), "they are not as the protocol has them"),
        ] {
            check("tools/call", &params, (-32602, &of_call(why)));
        }
        check(
            "tools/list",
            &json!({"cursor": 5}),
            (-32602, "the parameters of `tools/list`: `cursor` must be a string"),
        );
        check("some/thing", &json!({}), (-32601, "some/thing"));
        assert_eq!(refused("initialize", None, false).code.0, -32601);
    }
}
