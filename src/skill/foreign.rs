//! Our keys with another meaning in other products, whose skills must load, too.

use crate::skill::{Language, Origin, yaml};

/// Whether a top-level value certainly belongs to another product.
pub(super) fn wanted_instead(key: &str, node: &yaml::Node) -> Option<&'static str> {
    let text = match &node.value {
        yaml::Value::Scalar { text, .. } => text.as_str(),
        yaml::Value::Null | yaml::Value::List(_) | yaml::Value::Map(_) => "",
    };
    match key {
        "language" if !is_programming(text) => Some("none of `python`, `node`, `bash`"),
        "lang" if is_spoken(text) => Some("no programming language"),
        "image" if is_picture(text) => Some("no name of a container image"),
        "entrypoint" if is_document(text) => Some("no file that Python, Node.js or bash can run"),
        _ => None,
    }
}

/// Whether `resources` or `permissions` is a list or text, as in other products. A quantity is a mistake to report.
pub(super) fn is_other_group(node: &yaml::Node, origin: Origin) -> bool {
    match &node.value {
        yaml::Value::List(_) => true,
        yaml::Value::Scalar { text, .. } => {
            origin == Origin::FrontMatter && text.starts_with(|c: char| c.is_alphabetic())
        }
        yaml::Value::Null | yaml::Value::Map(_) => false,
    }
}

fn is_programming(text: &str) -> bool {
    Language::from_alias(&text.to_ascii_lowercase()).is_some()
}

/// `en`, `zh-CN`, `pt_BR`.
fn is_spoken(text: &str) -> bool {
    let mut parts = text.split(['-', '_']);
    let first = parts.next().unwrap_or_default();
    first.len() == 2
        && first.bytes().all(|b| b.is_ascii_lowercase())
        && !is_programming(first)
        && parts.all(|part| (2..=4).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_alphanumeric()))
}

fn is_picture(text: &str) -> bool {
    text.contains("://") || ends_with_any(text, &[".png", ".jpg", ".jpeg", ".svg", ".webp", ".gif", ".ico"])
}

fn is_document(text: &str) -> bool {
    ends_with_any(text, &[".md", ".ts", ".tsx", ".json", ".yaml", ".yml", ".txt"])
}

fn ends_with_any(text: &str, ends: &[&str]) -> bool {
    let text = text.to_ascii_lowercase();
    ends.iter().any(|end| text.ends_with(end))
}
