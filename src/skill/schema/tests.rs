//! What a schema says of values, and that no schema and no value makes it say so slowly.

use std::time::{Duration, Instant};

use serde_json::{Map, json};

use super::*;

fn faults(schema: &Value, text: &str) -> Vec<(String, String)> {
    let faults = Schema::compile(schema).unwrap().faults(text);
    let told = |fault: Fault| (fault.pointer, fault.message);
    faults.into_iter().map(told).collect()
}

fn fits(schema: &Value, text: &str) -> bool {
    faults(schema, text).is_empty()
}

fn refused(schema: &Value) -> String {
    Schema::compile(schema).unwrap_err().to_string()
}

/// What a test allows for a hostile schema or value, in a build without optimisation on a busy machine.
const LONG: Duration = Duration::from_secs(60);

#[test]
fn reports_place_but_not_value_of_a_violation() {
    let schema = json!({"type": "object", "required": ["name"], "properties": {"rows": {"items": {"type": "integer"}}}});
    assert_eq!(faults(&schema, r#"{"name": 1, "rows": [1, 2.0]}"#), []);
    let found = faults(&schema, r#"{"rows": [1, "my secret"]}"#);
    let wanted = [
        ("", "\"name\" is a required property"),
        ("/rows/1", "value is not of type \"integer\""),
    ];
    assert_eq!(
        found,
        wanted.map(|(pointer, message)| (pointer.to_owned(), message.to_owned()))
    );
}

#[test]
fn names_what_each_alternative_lacks() {
    for keyword in ["oneOf", "anyOf"] {
        let schema = json!({keyword: [{"required": ["text"]}, {"required": ["url"]}]});
        let found = faults(&schema, r#"{"path": "my secret"}"#);
        let (_, message) = &found[0];
        assert!(
            message.ends_with("(1: \"text\" is a required property; 2: \"url\" is a required property)"),
            "{message}"
        );
    }
}

#[test]
fn reports_the_first_violations_shortly() {
    let text = format!("[{}]", vec!["1"; 1000].join(","));
    assert_eq!(
        faults(&json!({"items": {"type": "string"}}), &text).len(),
        limits::SCHEMA_FAULTS_MAX
    );
    let name = "x\\n".repeat(10_000);
    let found = faults(
        &json!({"additionalProperties": {"type": "string"}}),
        &format!("{{\"{name}\": 1}}"),
    );
    assert!(found[0].0.chars().count() <= limits::FAULT_CHARS_MAX + 1);
    assert!(!found[0].0.contains('\n'));
}

/// A-04: a number that parsers read differently is reported.
#[test]
fn compares_integers_within_64_bits_exactly() {
    let integer = json!({"type": "integer"});
    for whole in [
        "9007199254740993",
        "18446744073709551615",
        "18446744073709551616",
        "1.0",
        "-0",
    ] {
        assert!(fits(&integer, whole), "{whole}");
    }
    assert!(!fits(
        &json!({"maximum": 9_007_199_254_740_992_i64}),
        "9007199254740993"
    ));
    assert!(
        faults(&json!({"type": "number"}), "1e400")[0]
            .1
            .starts_with("it cannot be checked")
    );
}

#[test]
fn rejects_invalid_schema_with_its_place() {
    let message = refused(&json!({"properties": {"n": {"type": "int"}}}));
    assert!(message.starts_with("at `/properties/n/type`: "), "{message}");
    assert!(refused(&json!({"$schema": "https://example.com/mine"})).contains("is not supported"));
    assert!(Schema::compile(&json!({"$schema": "http://json-schema.org/draft-07/schema#"})).is_ok());
    // The keyword of another draft is an annotation.
    let older = json!({"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "integer"}]});
    assert!(!fits(&older, "[\"a\"]"));
}

#[test]
fn rejects_external_references() {
    for reference in [
        "https://example.com/schema.json",
        "file:///etc/passwd",
        "other.json",
        "http://169.254.169.254/latest",
        "#/$defs/absent",
        "#absent",
    ] {
        for keyword in ["$ref", "$dynamicRef"] {
            let message = refused(&json!({"properties": {"a": {keyword: reference}}}));
            assert!(
                message.contains("cannot refer to other documents"),
                "{keyword} {reference}: {message}"
            );
        }
    }
    let own = json!({"$id": "https://example.com/mine", "$ref": "https://example.com/mine#/$defs/n",
        "$defs": {"n": {"type": "integer"}}});
    assert!(fits(&own, "1") && !fits(&own, "\"a\""));
}

#[test]
fn limits_schema_size() {
    let mut deep = json!({});
    for _ in 0..limits::SCHEMA_DEPTH_MAX {
        deep = json!({"not": deep});
    }
    assert!(refused(&deep).contains("nested deeper"));
    assert!(refused(&json!({"title": "x".repeat(limits::SCHEMA_BYTES_MAX)})).contains("bytes"));
    let many = |item: Value, count: usize| json!({"allOf": vec![item; count + 1], "$defs": {"a": {}}});
    let references = many(json!({"$ref": "#/$defs/a"}), limits::SCHEMA_REFERENCES_MAX);
    assert!(refused(&references).contains("references"));
    assert!(refused(&many(json!({"pattern": "a"}), limits::SCHEMA_PATTERNS_MAX)).contains("patterns"));
}

#[test]
fn rejects_patterns_without_linear_time() {
    for pattern in ["(?=a)b", "(a)\\1", "(?<!x)y"] {
        let message = refused(&json!({"pattern": pattern}));
        assert!(message.contains("look-around"), "{pattern}: {message}");
    }
    assert!(refused(&json!({"pattern": "((((a{50}){50}){50}){50})"})).contains("pattern"));
    let begun = Instant::now();
    let text = format!("\"{}!\"", "a".repeat(1_000_000));
    for pattern in ["^(a+)+$", "^(a|a)*$", "^(.*a){20}$"] {
        assert!(!fits(&json!({"pattern": pattern}), &text));
    }
    assert!(begun.elapsed() < LONG, "{:?}", begun.elapsed());
}

/// Each definition says the next twice: 2^60 ways.
fn doubling(leaf: &Value, keyword: &str) -> Value {
    let mut definitions = Map::new();
    for n in 0..60 {
        let next = json!({"$ref": format!("#/$defs/d{}", n + 1)});
        definitions.insert(format!("d{n}"), json!({keyword: [next, next]}));
    }
    definitions.insert("d60".to_owned(), leaf.clone());
    json!({"$ref": "#/$defs/d0", "$defs": definitions})
}

#[test]
fn stops_a_slow_schema() {
    let nested = format!("{}1{}", "{\"x\":".repeat(100), "}".repeat(100));
    let twice = json!({"properties": {"x": {"$ref": "#"}}});
    let schemas = [
        doubling(&json!({"type": "string"}), "allOf"),
        doubling(&json!({"type": "string"}), "anyOf"),
        doubling(&json!({"type": "string"}), "oneOf"),
        doubling(&json!({"type": "object"}), "allOf"),
        doubling(&json!(true), "oneOf"),
        json!({"allOf": [twice, twice, {"type": ["object", "string"]}]}),
        json!({"anyOf": [twice, twice], "minProperties": 2}),
        json!({"allOf": [{"$ref": "#"}, {"$ref": "#"}]}),
        json!({"$dynamicAnchor": "a", "allOf": [{"$dynamicRef": "#a"}, {"$dynamicRef": "#a"}], "unevaluatedProperties": false}),
        json!({"$ref": "#"}),
        json!({"not": {"$ref": "#"}}),
    ];
    for schema in schemas {
        let begun = Instant::now();
        // Most are not even taken.
        let Ok(compiled) = Schema::compile(&schema) else {
            continue;
        };
        for text in [nested.as_str(), "1"] {
            // What it says is of no matter; that it ends is.
            let faults = compiled.faults(text);
            assert!(faults.len() <= limits::SCHEMA_FAULTS_MAX);
        }
        println!("{:?} {:.80}", begun.elapsed(), schema.to_string());
        assert!(begun.elapsed() < LONG, "{:?}: {schema}", begun.elapsed());
    }
}

#[test]
fn limits_chains_of_references() {
    let (mut definitions, count) = (Map::new(), limits::SCHEMA_REFERENCES_MAX - 1);
    for n in 0..count {
        let mut next = json!({"$ref": format!("#/$defs/d{}", (n + 1) % count)});
        for _ in 0..25 {
            next = json!({"not": next});
        }
        let last = json!({"properties": {"x": next}});
        definitions.insert(format!("d{n}"), if n + 1 == count { last } else { next });
    }
    let schema = json!({"$ref": "#/$defs/d0", "$defs": definitions});
    let nested = format!("{}1{}", "{\"x\":".repeat(100), "}".repeat(100));
    let thread = std::thread::Builder::new().stack_size(2 * 1024 * 1024);
    let checked = thread.spawn(move || Schema::compile(&schema).map(|schema| schema.faults(&nested)));
    let faults = checked.unwrap().join().unwrap().unwrap();
    assert!(faults[0].message.contains("too long"), "{faults:?}");
}

#[test]
fn stops_a_slow_value() {
    let rows = |row: &str| format!("[{}]", vec![row; 300_000].join(","));
    let shapes: Vec<_> = (0..100)
        .map(|n| format!("{}1{}", "[".repeat(n + 1), "]".repeat(n + 1)))
        .collect();
    let long = format!("\"{}\"", "01".repeat(4_000_000));
    let cases = [
        (json!({"items": {"type": "string"}}), rows("1")),
        (
            json!({"uniqueItems": true}),
            format!("[{}]", vec![shapes.join(","); 100].join(",")),
        ),
        (
            json!({"items": {"enum": (0..5000).collect::<Vec<_>>()}}),
            rows("5001"),
        ),
        (json!({"pattern": "[01]*1[01]{14}2"}), long.clone()),
        (
            json!({"allOf": vec![json!({"pattern": "[01]*1[01]{14}2"}); 90]}),
            long,
        ),
    ];
    for (schema, text) in cases {
        let begun = Instant::now();
        assert!(!fits(&schema, &text), "{schema}");
        assert!(begun.elapsed() < LONG, "{:?}: {schema}", begun.elapsed());
    }
}

#[test]
fn ordinary_schema_takes_few_steps() {
    let schema = json!({"type": "object", "required": ["path"], "additionalProperties": false, "properties": {
        "path": {"type": "string", "minLength": 1}, "columns": {"type": "array", "items": {"type": "string"}},
        "limit": {"type": "integer", "minimum": 1, "maximum": 1000}}});
    let text = r#"{"path": "a.csv", "columns": ["a", "b"], "limit": 5}"#;
    assert!(fits(&schema, text));
    let fastest = (0..20).map(|_| {
        let begun = Instant::now();
        assert!(fits(&schema, text));
        begun.elapsed()
    });
    let fastest = fastest.min().unwrap();
    assert!(fastest < Duration::from_millis(20), "{fastest:?}");
}
