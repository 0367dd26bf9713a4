//! Refuses tuples as parameters: they hide how many parameters a function has, and name none of them.

use super::sources;

/// Functions whose signature the trait of a library dictates: file, name, trait.
const EXEMPT: &[(&str, &str, &str)] = &[];

/// A function and the text between its parentheses.
struct Signature<'a> {
    name: &'a str,
    parameters: &'a str,
}

/// The text without comments and without what literals contain, so that brackets and commas are code.
fn without_literals(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let skipped = literal_length(rest, code.chars().last());
        rest = match skipped {
            0 => {
                code.push(first);
                &rest[first.len_utf8()..]
            }
            length => {
                code.push(' ');
                &rest[length..]
            }
        };
    }
    code
}

/// How many bytes of a comment, string or character begin here; 0 for code.
fn literal_length(text: &str, before: Option<char>) -> usize {
    let end_of = |closing: &str, from: usize| {
        let length = text[from..].find(closing).map(|at| from + at + closing.len());
        length.unwrap_or(text.len())
    };
    if text.starts_with("//") {
        return text.find('\n').unwrap_or(text.len());
    }
    if text.starts_with("/*") {
        return end_of("*/", 2);
    }
    let in_word = before.is_some_and(|before| before.is_alphanumeric() || before == '_');
    let raw = text
        .strip_prefix('b')
        .unwrap_or(text)
        .strip_prefix('r')
        .filter(|_| !in_word);
    if let Some(raw) = raw {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        if raw[hashes..].starts_with('"') {
            let begin = text.len() - raw.len() + hashes + 1;
            return end_of(&format!("\"{}", "#".repeat(hashes)), begin);
        }
    }
    match text.as_bytes() {
        [b'"', ..] => escaped_end(text, '"'),
        [b'\'', b'\\', ..] => escaped_end(text, '\''),
        // A lifetime has no second quote.
        [b'\'', ..] => match text[1..].chars().nth(1) {
            Some('\'') => text.char_indices().nth(3).map_or(text.len(), |(at, _)| at),
            _ => 0,
        },
        _ => 0,
    }
}

fn escaped_end(text: &str, closing: char) -> usize {
    let mut escaped = false;
    for (at, letter) in text.char_indices().skip(1) {
        if !escaped && letter == closing {
            return at + 1;
        }
        escaped = !escaped && letter == '\\';
    }
    text.len()
}

fn signatures(code: &str) -> Vec<Signature<'_>> {
    let starts = code.match_indices("fn ").map(|(at, word)| (at, at + word.len()));
    starts
        .filter(|(at, _)| !code[..*at].ends_with(|before: char| before.is_alphanumeric() || before == '_'))
        .filter_map(|(_, after)| {
            let name = code[after..]
                .split(|c: char| !c.is_alphanumeric() && c != '_')
                .next()?;
            let generics = &code[after + name.len()..];
            let open = split_at_depth_0(generics, '(').next()?.len();
            let inside = generics.get(open + 1..)?;
            let parameters = split_at_depth_0(inside, ')').next()?;
            (!name.is_empty()).then_some(Signature { name, parameters })
        })
        .collect()
}

/// Splits where `separator` is outside of all brackets; the `>` of an arrow is none.
fn split_at_depth_0(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let mut depth = 0_usize;
    let mut before = ' ';
    text.split(move |letter: char| {
        let arrow = before == '-' && letter == '>';
        before = letter;
        if depth == 0 && letter == separator {
            return true;
        }
        match letter {
            '(' | '[' | '{' | '<' => depth += 1,
            ')' | ']' | '}' | '>' if !arrow => depth = depth.saturating_sub(1),
            _ => {}
        }
        false
    })
}

/// Whether the pattern or the type is a tuple, also by reference or as an option. Pairs as elements of a collection are none.
fn is_tuple(parameter: &str) -> bool {
    let pattern = split_at_depth_0(parameter, ':').next().unwrap_or(parameter);
    let kind = parameter.get(pattern.len() + 1..).unwrap_or("");
    [pattern, kind].into_iter().any(|part| {
        let mut part = part.trim();
        while let Some(inner) = ["&", "mut ", "Option<", "Result<"]
            .iter()
            .find_map(|prefix| part.strip_prefix(prefix))
        {
            part = inner.trim_start();
            if let Some(lifetime) = part.strip_prefix('\'') {
                part = lifetime.split_once(' ').map_or("", |(_, rest)| rest);
            }
        }
        let inside = part
            .strip_prefix('(')
            .and_then(|rest| split_at_depth_0(rest, ')').next());
        inside.is_some_and(|inside| split_at_depth_0(inside, ',').count() > 1)
    })
}

fn functions_with_tuples(text: &str) -> Vec<String> {
    let code = without_literals(text);
    let found = signatures(&code)
        .into_iter()
        .filter(|signature| split_at_depth_0(signature.parameters, ',').any(is_tuple));
    found.map(|signature| signature.name.to_owned()).collect()
}

fn complaints(files: &[(String, String)], exempt: &[(&str, &str, &str)]) -> Vec<String> {
    let mut found = Vec::new();
    let mut used = Vec::new();
    for (path, text) in files {
        for name in functions_with_tuples(text) {
            match exempt
                .iter()
                .find(|(file, function, _)| file == path && *function == name)
            {
                Some(entry) => used.push(entry),
                None => found.push(format!(
                    "{path}: `{name}` takes a tuple; use named parameters or a struct"
                )),
            }
        }
    }
    let unused = exempt.iter().filter(|entry| !used.contains(entry));
    found.extend(
        unused.map(|(file, function, _)| format!("{file}: `{function}` needs no exemption any more")),
    );
    found
}

#[test]
fn no_function_takes_a_tuple() {
    let files: Vec<(String, String)> = sources().collect();
    let found = complaints(&files, EXEMPT);
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn each_form_of_a_tuple_is_refused() {
    for signature in [
        "fn planted((a, b): (u8, u8)) {}",
        "fn planted(pair: (u8, u8)) {}",
        "pub(crate) async fn planted<T: Into<u8>>(&self, x: u8, (a, b): (&str, T)) {}",
        "fn planted(pair: &'a mut (u8, &str)) {}",
        "fn planted(&(a, b): &(u8, u8)) {}",
        "fn planted(pair: Option<(u8, u8)>) {}",
        "fn planted(pair: Result<(u8, u8), Error>) {}",
        "fn planted(\n    self,\n    x: [u8; 2], // (\n    pair: (\n        A,\n        B,\n    ),\n) -> u8 {}",
        "const C: char = '\"'; fn planted<'a>(pair: (&'a u8, u8)) {}",
    ] {
        assert_eq!(functions_with_tuples(signature), ["planted"], "{signature}");
    }
}

#[test]
fn other_parameters_are_allowed() {
    for signature in [
        "fn planted(self, a: u8, b: ()) -> (u8, u8) { pairs.map(|(a, b): (u8, u8)| a + b) }",
        "fn planted(pairs: &[(u8, u8)], map: impl Iterator<Item = (u8, u8)>) {}",
        "fn planted(f: impl Fn(u8, u8) -> (u8, u8), g: &(dyn Send + Sync)) {}",
        "fn planted(Path((name, version)): Path<(Name, Version)>) {}",
        "// fn planted(pair: (u8, u8))",
        "const TEXT: &str = r#\"fn planted(pair: (u8, u8)) {}\"#;",
        "struct Callback { hook: fn(u8, u8) -> (u8, u8) }",
    ] {
        assert_eq!(functions_with_tuples(signature), [""; 0], "{signature}");
    }
}

#[test]
fn exemptions_are_used() {
    let offending = [("src/x.rs".to_owned(), "fn planted(pair: (u8, u8)) {}".to_owned())];
    assert!(complaints(&offending, &[])[0].contains("takes a tuple"));
    let entry = ("src/x.rs", "planted", "a trait dictates it");
    assert_eq!(complaints(&offending, &[entry]), [""; 0]);
    assert!(complaints(&[], &[entry])[0].contains("needs no exemption"));
}
