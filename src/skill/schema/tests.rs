use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::*;

fn faults(schema: &Value, text: &str) -> Vec<(String, String)> {
    let faults = Schema::compile(schema).unwrap().faults(text);
    faults.into_iter().map(|fault| (fault.pointer, fault.message)).collect()
}

fn refused(schema: &Value) -> String {
    Schema::compile(schema).unwrap_err().to_string()
}

#[test]
fn a_fault_has_its_place_and_not_its_value() {
    let schema = json!({"type": "object", "required": ["name"], "properties": {"rows": {"items": {"type": "integer"}}}});
    assert_eq!(faults(&schema, r#"{"name": 1, "rows": [1, 2.0]}"#), []);
    let found = faults(&schema, r#"{"rows": [1, "my secret"]}"#);
    assert_eq!(
        found,
        [
            ("/rows/1".to_owned(), "value is not of type \"integer\"".to_owned()),
            (String::new(), "\"name\" is a required property".to_owned()),
        ]
    );
}
