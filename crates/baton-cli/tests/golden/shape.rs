//! The shape of JSON values: a line for each path with the types found there, without any value.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use serde_json::Value;

/// What was found at each path, of all values that were added.
#[derive(Default)]
pub(crate) struct Shape(BTreeMap<String, BTreeSet<&'static str>>);

impl Shape {
    pub(crate) fn of(values: impl IntoIterator<Item = Value>) -> Self {
        let mut shape = Self::default();
        values.into_iter().for_each(|value| shape.add(&value));
        shape
    }

    pub(crate) fn add(&mut self, value: &Value) {
        self.at("", value);
    }

    fn at(&mut self, path: &str, value: &Value) {
        let kind = match value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(items) => {
                items.iter().for_each(|item| self.at(&format!("{path}[]"), item));
                "list"
            }
            Value::Object(fields) => {
                for (name, field) in fields {
                    self.at(&format!("{path}.{name}"), field);
                }
                "object"
            }
        };
        self.0.entry(path.to_owned()).or_default().insert(kind);
    }

    /// The paths, a line each; those of lists and objects only where nothing is in them.
    pub(crate) fn lines(&self) -> String {
        let mut text = String::new();
        for (path, kinds) in &self.0 {
            let mut below = self.0.range(path.clone()..).skip(1).map(|(it, _)| it);
            let has_more = below
                .next()
                .is_some_and(|it| it.starts_with(&format!("{path}.")) || it.starts_with(&format!("{path}[")));
            let kinds: Vec<&str> =
                kinds.iter().copied().filter(|it| !has_more || !["list", "object"].contains(it)).collect();
            if !kinds.is_empty() {
                let path = if path.is_empty() { "." } else { path };
                writeln!(text, "{path}: {}", kinds.join(" or ")).ok();
            }
        }
        text
    }
}

#[test]
fn a_shape_has_paths_and_types_and_no_values() {
    let shape = Shape::of([
        serde_json::json!({"a": [{"b": 1}, {"b": null, "c": {}}], "d": []}),
        serde_json::json!({"a": null, "d": ["x"]}),
    ]);
    let lines = shape.lines();
    let lines: Vec<&str> = lines.lines().collect();
    assert_eq!(lines, [".a: null", ".a[].b: null or number", ".a[].c: object", ".d[]: string"]);
    assert_eq!(Shape::of([serde_json::json!(1)]).lines(), ".: number\n");
}
