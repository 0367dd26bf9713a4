//! Repairs front matter that is invalid YAML because a plain text contains `: ` or starts like a list. Published
//! skills have it, and other products accept it.

use crate::limits;
use crate::skill::yaml;

/// A front matter with such values in quotes, with unchanged line numbers, and the keys and lines of those values.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Repaired {
    pub(super) front_matter: String,
    pub(super) quoted: Vec<(String, u32)>,
}

/// Repairs values that can only be text; `None` if there are none.
pub(super) fn repair(front_matter: &str) -> Option<Repaired> {
    let mut repaired = Repaired {
        front_matter: String::with_capacity(front_matter.len() + 64),
        quoted: Vec::new(),
    };
    let mut line = 1;
    let mut tries = limits::REPAIRS_MAX;
    for block in blocks(front_matter) {
        let candidate = as_text(block).filter(|_| tries > 0);
        tries -= usize::from(candidate.is_some());
        if let Some((key, text)) = candidate.filter(|_| yaml::parse(block).is_err()) {
            repaired.front_matter += &format!("{key}: {}", serde_json::Value::from(text));
            repaired.quoted.push((key.to_owned(), line));
            repaired.front_matter += &"\n".repeat(block.matches('\n').count());
        } else {
            repaired.front_matter += block;
        }
        line += u32::try_from(block.matches('\n').count()).unwrap_or(u32::MAX);
    }
    (!repaired.quoted.is_empty()).then_some(repaired)
}

/// Each top-level line with the indented and empty lines below it.
fn blocks(text: &str) -> Vec<&str> {
    let mut starts = vec![0];
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let continues = line.starts_with([' ', '\t']) || line.trim().is_empty();
        if at > 0 && !continues {
            starts.push(at);
        }
        at += line.len();
    }
    starts.push(text.len());
    starts.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect()
}

/// The key and the folded text of a block `key: text`.
fn as_text(block: &str) -> Option<(&str, String)> {
    let (key, value) = block.split_once(':')?;
    // A value that starts on the next line is a mapping or a list; tabs have an error of their own.
    if value.lines().next().is_none_or(|first| first.trim().is_empty()) || value.contains("\n\t") {
        return None;
    }
    let is_key = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let value = value.trim();
    let bounded = (1..=limits::REPAIRED_BYTES_MAX).contains(&value.len());
    if key.is_empty() || !key.chars().all(is_key) || !bounded {
        return None;
    }
    if value.starts_with(['"', '\'']) {
        return badly_quoted(value).map(|text| (key, folded(text)));
    }
    let may_fail = value.contains(": ") || value.contains(":\n") || value.ends_with(':');
    if !may_fail && !value.starts_with(['@', '`', '[', '*']) {
        return None;
    }
    let starts_as_text =
        value.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '@' | '`' | '(' | '<' | '*'));
    if !starts_as_text && !is_list_and_more(value) {
        return None;
    }
    Some((key, folded(value)))
}

/// The lines as one.
fn folded(value: &str) -> String {
    let lines = value.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join(" ")
}

/// `'it's'` without its quotes, or `"Title" and more` unchanged. An unclosed quote is an error.
fn badly_quoted(value: &str) -> Option<&str> {
    let quote = value.chars().next()?;
    let rest = &value[1..];
    match rest.strip_suffix(quote) {
        Some(inner) => Some(inner),
        None => rest.contains(quote).then_some(value),
    }
}

/// `[file] [--flag]`: a usage hint, not a list.
fn is_list_and_more(value: &str) -> bool {
    let rest = value.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    rest.is_some_and(|(first, more)| !first.contains('[') && !more.trim().is_empty() && !value.contains('\n'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_text_in_place() {
        let front_matter = "---\nname: a\ndescription: Use it when: a PDF\n  is there # or not: so\nargument-hint: [file] [--all]\nlicense: MIT\n";
        let repaired = repair(front_matter).unwrap();
        assert_eq!(
            repaired.front_matter,
            "---\nname: a\ndescription: \"Use it when: a PDF is there # or not: so\"\n\nargument-hint: \"[file] [--all]\"\nlicense: MIT\n"
        );
        let quoted = [("description".to_owned(), 3), ("argument-hint".to_owned(), 5)];
        assert_eq!(repaired.quoted, quoted);
        assert_eq!(yaml::parse(&repaired.front_matter).unwrap().line, 2);
    }

    #[test]
    fn reads_text_in_wrong_quotes() {
        let front_matter = "---\na: 'it's here'\nb: \"Title\" and: more\nc: \"C:\\path\"\n";
        assert_eq!(
            repair(front_matter).unwrap().front_matter,
            "---\na: \"it's here\"\nb: \"\\\"Title\\\" and: more\"\nc: \"C:\\\\path\"\n"
        );
    }

    /// Z-18, Z-19, Z-20: what is wrong in another way stays wrong.
    #[test]
    fn repairs_nothing_else() {
        for wrong in [
            "name: a\nname: b\n",
            "license: !!python/object:os.system x\n",
            "a: &a [x, *a]\n",
            "hooks:\n  - a: b: c\n",
            &format!("a: {}\n", "[".repeat(5000)),
            &format!("a: b: {}\n", "x".repeat(limits::REPAIRED_BYTES_MAX)),
            "a: 'b\n",
        ] {
            assert_eq!(repair(wrong), None, "{wrong:.40}");
        }
    }
}
