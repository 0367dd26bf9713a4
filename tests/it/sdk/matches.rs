//! Each client library has every field, value, code and route of the API document, and no other.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use super::declared::{Declared, Sdk};

/// Routes that no library calls, and why: they operate a server or edit skills, for which there is the command line.
const ROUTES_LEFT_OUT: &[(&str, &str)] = &[
    ("GET /", "for people"),
    ("GET /healthz", "`Health` asks /readyz, which says more"),
    ("GET /metrics", "for Prometheus"),
    ("GET /openapi.json", "for generators"),
    ("GET /proto/skillbox/v1/skillbox.proto", "for generators"),
    ("GET /sdk", "for people who fetch a library"),
    ("GET /sdk/{path}", "for people who fetch a library"),
    ("GET /v1/audit", "administration"),
    ("GET /v1/deps", "administration"),
    ("POST /v1/deps/prefetch", "administration"),
    ("DELETE /v1/deps/{key}", "administration"),
    (
        "GET /v1/events",
        "for the dashboard; a program follows its own executions",
    ),
    ("POST /v1/executions/prune", "administration"),
    (
        "GET /v1/executions/{id}/deliveries",
        "for the operator of a receiver",
    ),
    ("GET /v1/keys", "administration"),
    ("POST /v1/keys", "administration"),
    ("DELETE /v1/keys/{id}", "administration"),
    ("POST /v1/keys/{id}/rotate", "administration"),
    ("GET /v1/prove", "administration"),
    ("POST /v1/prove", "administration"),
    ("GET /v1/secrets", "administration"),
    ("PUT /v1/secrets/{name}", "administration"),
    ("DELETE /v1/secrets/{name}", "administration"),
    ("GET /v1/server", "for the dashboard"),
    ("GET /v1/session", "for browsers"),
    ("POST /v1/session", "for browsers"),
    ("DELETE /v1/session", "for browsers"),
    ("POST /v1/session/links", "for browsers"),
    ("GET /v1/sessions", "administration"),
    ("DELETE /v1/sessions/{id}", "administration"),
    ("GET /v1/skills/lint", "for authors of skills"),
    ("POST /v1/skills/lint", "for authors of skills"),
    ("GET /v1/skills/{name}/diff", "for authors of skills"),
    (
        "GET /v1/skills/{name}/{version}/files",
        "for authors of skills; the archive has all",
    ),
    (
        "GET /v1/skills/{name}/{version}/files/{path}",
        "for authors of skills; the archive has all",
    ),
    ("GET /v1/skills/{name}/{version}/lint", "for authors of skills"),
    (
        "PUT /v1/skills/{name}/{version}/requirements",
        "for authors of skills",
    ),
    ("GET /v1/stats", "for the dashboard"),
    ("GET /v1/usage", "for the dashboard"),
    ("GET /v1/webhooks/deliveries", "for the operator of a receiver"),
    (
        "POST /v1/webhooks/deliveries/{id}/redeliver",
        "for the operator of a receiver",
    ),
    ("GET /v1/webhooks/secret", "administration"),
    ("POST /v1/webhooks/secret/rotate", "administration"),
];

/// Schemas that routes of the libraries use, and that need no type of their own, with the reason.
const SCHEMAS_LEFT_OUT: &[(&str, &str)] = &[
    ("Args", "a list or an object, declared with the request"),
    ("Raw", "bytes"),
    ("SkillForm", "the archive is the body"),
    ("ToolDefinition", "an object in the format of another product"),
    ("List_Summary", "a page; the method returns all its items"),
    ("List_SkillSummary", "a page; the method returns all its items"),
    ("List_BlobInfo", "a page; the method returns all its items"),
    ("List_ToolDefinition", "a page; the method returns all its items"),
    // Values that a library passes on as text.
    ("Dialect", "text"),
    ("EnvelopePart", "text"),
    ("Level", "text"),
    ("LogSource", "text"),
    ("Origin", "text"),
    ("ExceptionIfAny", "declared with `Failure`"),
];

fn source(sdk: Sdk) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("web/sdk");
    let read = |name: &&str| {
        std::fs::read_to_string(folder.join(name)).unwrap_or_else(|error| panic!("web/sdk/{name}: {error}"))
    };
    sdk.sources().iter().map(read).collect::<Vec<_>>().join("\n\n")
}

/// `GET /v1/skills` and its operation.
fn operations(document: &Value) -> Vec<(String, &Value)> {
    let paths = document["paths"].as_object().unwrap();
    let mut found = Vec::new();
    for (path, item) in paths {
        for (method, verb) in [
            ("get", "GET"),
            ("post", "POST"),
            ("put", "PUT"),
            ("delete", "DELETE"),
        ] {
            if let Some(operation) = item.get(method) {
                found.push((format!("{verb} {path}"), operation));
            }
        }
    }
    found
}

/// Adds the schemas that `value` refers to, and those that they refer to.
fn add_schemas(document: &Value, value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            if let Some(name) = members.get("$ref").and_then(Value::as_str) {
                let name = name.rsplit('/').next().unwrap();
                if found.insert(name.to_owned()) {
                    add_schemas(document, &document["components"]["schemas"][name], found);
                }
            }
            for member in members.values() {
                add_schemas(document, member, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| add_schemas(document, item, found)),
        _ => {}
    }
}

/// The values of an enumeration, or the names of all members.
fn names(document: &Value, schema: &Value) -> BTreeSet<String> {
    if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
        return names(document, document.pointer(&target[1..]).unwrap());
    }
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return values.iter().map(text).collect();
    }
    let members = schema.get("properties").and_then(Value::as_object);
    let mut found: BTreeSet<String> = members
        .into_iter()
        .flat_map(|members| members.keys().cloned())
        .collect();
    for part in schema
        .get("allOf")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        found.extend(names(document, part));
    }
    found
}

/// Enumerations of parameters, which have no name in the document: path and parameter.
const PARAMETERS: &[(&str, &str, &str)] = &[
    ("ToolFormat", "/v1/tools", "format"),
    ("ResultForm", "/v1/executions/{id}/results/{n}/{form}", "form"),
];

/// The names of a schema, or of an enumeration that stands in another one.
fn documented(document: &Value, name: &str) -> Option<BTreeSet<String>> {
    let schema = if name == "ErrorCode" {
        document.pointer("/components/schemas/Problem/properties/code")
    } else if let Some((_, path, parameter)) = PARAMETERS.iter().find(|(of, _, _)| *of == name) {
        let parameters = document["paths"][*path]["get"]["parameters"].as_array()?;
        parameters
            .iter()
            .find(|found| found["name"] == *parameter)
            .map(|found| &found["schema"])
    } else {
        document["components"]["schemas"].get(name)
    };
    schema.map(|schema| names(document, schema))
}

#[test]
fn every_sdk_declares_documented_fields_and_codes() {
    let document = skillbox::http::document();
    for sdk in Sdk::ALL {
        let declared = Declared::of(sdk, &source(sdk));
        for (schema, names) in &declared.schemas {
            let expected = documented(&document, schema);
            let expected = expected.unwrap_or_else(|| panic!("{sdk:?}: the document has no {schema}"));
            assert_eq!(*names, expected, "{sdk:?}: {schema}");
        }
        assert!(
            declared.schemas.contains_key("ErrorCode"),
            "{sdk:?} lacks the codes"
        );
        let mut used = BTreeSet::from(["Problem".to_owned(), "Events".to_owned()]);
        for (route, operation) in operations(&document) {
            if declared.routes.contains(&route) {
                add_schemas(&document, operation, &mut used);
            }
        }
        let left_out = |name: &String| SCHEMAS_LEFT_OUT.iter().any(|(schema, _)| schema == name);
        let missing: Vec<_> = used
            .iter()
            .filter(|name| !declared.schemas.contains_key(*name) && !left_out(name))
            .collect();
        assert!(missing.is_empty(), "{sdk:?} lacks {missing:?}");
    }
}

#[test]
fn every_sdk_calls_each_route_that_is_not_left_out() {
    let document = skillbox::http::document();
    let routes: BTreeSet<String> = operations(&document)
        .into_iter()
        .map(|(route, _)| route)
        .collect();
    for (route, why) in ROUTES_LEFT_OUT {
        assert!(routes.contains(*route) && !why.is_empty(), "{route}");
    }
    let expected: BTreeSet<String> = routes
        .into_iter()
        .filter(|route| !ROUTES_LEFT_OUT.iter().any(|(left_out, _)| left_out == route))
        .collect();
    for sdk in Sdk::ALL {
        let declared = Declared::of(sdk, &source(sdk));
        assert_eq!(declared.routes, expected, "{sdk:?}");
    }
}

#[test]
fn schemas_left_out_exist_and_are_not_in_every_sdk() {
    let document = skillbox::http::document();
    let declared = Sdk::ALL.map(|sdk| Declared::of(sdk, &source(sdk)));
    for (schema, _) in SCHEMAS_LEFT_OUT {
        assert!(documented(&document, schema).is_some(), "{schema}");
        let everywhere = declared.iter().all(|sdk| sdk.schemas.contains_key(*schema));
        assert!(!everywhere, "every library has {schema}: it is not left out");
    }
}
