//! The encoder with real weights, against vectors of the library they were made with. `cargo xtask test` installs them.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and needs to know where the model is"
)]

use kiwi_search::{Embedder, MiniLm};
use serde_json::Value;
use std::path::PathBuf;

#[track_caller]
fn folder() -> PathBuf {
    let Some(folder) = std::env::var_os("KIWI_TEST_MINILM") else {
        panic!(
            "KIWI_TEST_MINILM is not set: this suite needs a sentence encoder, which `cargo xtask test` sets up; alone \
             it runs by `cargo xtask minilm cargo test -p kiwi-search --test minilm`"
        )
    };
    folder.into()
}

fn items() -> Vec<Value> {
    let file: Value = serde_json::from_str(include_str!("minilm.json")).unwrap();
    file["items"].as_array().unwrap().clone()
}

fn numbers<T: serde::de::DeserializeOwned>(value: &Value) -> Vec<T> {
    serde_json::from_value(value.clone()).unwrap()
}

fn dot(one: &[f32], other: &[f32]) -> f32 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

/// One reading of the weights for all that is asked of them: it takes a while.
#[test]
fn vectors_are_those_of_the_library() {
    let model = MiniLm::open(&folder()).unwrap();
    assert_eq!(model.dimensions(), 384);
    assert!(model.id().starts_with("bert-6x384-256-"), "{}", model.id());
    let items = items();
    assert!(items.len() >= 20, "{}", items.len());
    for item in &items {
        let text = item["text"].as_str().unwrap();
        assert_eq!(model.tokens(text), numbers::<u32>(&item["ids"]), "{text:?}");
        let vector = model.vector(text);
        assert!((dot(&vector, &vector) - 1.0).abs() < 1e-5, "{text:?}");
        let wanted = numbers::<f32>(&item["vec"]);
        assert_eq!(wanted.len(), 16);
        for (number, wanted) in vector.iter().zip(&wanted) {
            assert!((number - wanted).abs() < 2e-5, "{text:?}: {number} is not {wanted}");
        }
        // Sums over all dimensions, so that none of the others can be wrong unseen.
        for (name, factor) in [("sum", 1.0), ("alternating", -1.0)] {
            let (mut total, mut sign) = (0.0_f64, 1.0_f64);
            for number in &vector {
                total += sign * f64::from(*number);
                sign *= factor;
            }
            let wanted = item[name].as_f64().unwrap();
            assert!((total - wanted).abs() < 2e-4, "{text:?}: {name} is {total} and not {wanted}");
        }
    }
    let ask = |text: &str| model.embed(&[text]).unwrap().remove(0);
    let (question, right, wrong) = (
        ask("tell a colleague by mail"),
        ask("send_email: sends an e-mail"),
        ask("crop_image: cuts a picture"),
    );
    assert!(dot(&question, &right) > dot(&question, &wrong) + 0.2);
}
