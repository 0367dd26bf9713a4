//! Recognises programs that failed for want of a package, and names the package.

use crate::engine::last_words::last_words;
use crate::execution::Failure;
use crate::skill::python_package;

/// Bytes of standard error that are searched: the end has the reason.
const TAIL_BYTES: usize = 16 * 1024;
/// Length of a name that can be one of a package.
const NAME_BYTES_MAX: usize = 100;

/// Modules of Python itself that some builds lack; no package has them.
const NOT_PACKAGED: [&str; 6] = ["_curses", "_sqlite3", "_ssl", "_tkinter", "curses", "tkinter"];

/// The package that a failed program lacked, if it said so at the end.
pub(super) fn missing_package(failure: &Failure, stderr: &[u8]) -> Option<String> {
    let tail = last_words(failure, stderr, TAIL_BYTES)?;
    package_of_python(&failure.message)
        .or_else(|| package_of_python(&tail))
        .or_else(|| node_package(&failure.message))
        .or_else(|| node_package(&tail))
}

fn package_of_python(text: &str) -> Option<String> {
    let named = quoted_after(text, "No module named '")?;
    let module = named.split('.').next().unwrap_or(named);
    let is_name = module
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if module.is_empty() || !is_name || NOT_PACKAGED.contains(&module) {
        return None;
    }
    Some(python_package(module).to_owned())
}

/// Of `pdf-lib/es` and `@scope/name/part` the package; relative paths and Node's own modules have none.
fn node_package(text: &str) -> Option<String> {
    let named =
        quoted_after(text, "Cannot find package '").or_else(|| quoted_after(text, "Cannot find module '"))?;
    let parts = if named.starts_with('@') { 2 } else { 1 };
    let package = named.split('/').take(parts).collect::<Vec<_>>().join("/");
    let is_name = package.bytes().all(|byte| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_' | b'.' | b'@' | b'/')
    });
    let is_own = package.starts_with('.') || package.is_empty() || package == "node:";
    (is_name && !is_own).then_some(package)
}

/// The text between the last occurrence of `before` and the next quote.
fn quoted_after<'a>(text: &'a str, before: &str) -> Option<&'a str> {
    let (_, after) = text.rsplit_once(before)?;
    let (named, _) = after.split_once('\'')?;
    (named.len() <= NAME_BYTES_MAX).then_some(named)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(message: &str, stderr: &str) -> Option<String> {
        let failure = Failure {
            code: "exit_code".to_owned(),
            message: message.to_owned(),
            exception: None,
        };
        missing_package(&failure, stderr.as_bytes())
    }

    #[test]
    fn names_package_of_missing_module() {
        for (said, expected) in [
            ("ModuleNotFoundError: No module named 'pypdf'", "pypdf"),
            ("ModuleNotFoundError: No module named 'PIL'", "pillow"),
            (
                "ModuleNotFoundError: No module named 'sklearn.tree'",
                "scikit-learn",
            ),
            (
                "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'pdf-lib' imported from /skills/x/a.mjs",
                "pdf-lib",
            ),
            (
                "Error: Cannot find module '@scope/name/part'\nRequire stack:",
                "@scope/name",
            ),
        ] {
            assert_eq!(
                package("the program exited with code 1", said).as_deref(),
                Some(expected)
            );
            assert_eq!(package(said, "").as_deref(), Some(expected));
        }
    }

    /// Standard error is untrusted.
    #[test]
    fn names_nothing_else() {
        for said in [
            "No module named 'tkinter'",
            "No module named 'a; rm -rf /'",
            "No module named 'x",
            "Cannot find module './helper.js'",
            "Cannot find module '/workspace/x.js'",
            "Cannot find package 'A\u{1b}[2J'",
            "ok",
        ] {
            assert_eq!(package("the program exited with code 1", said), None, "{said}");
        }
        let long = format!("No module named '{}'", "x".repeat(NAME_BYTES_MAX + 1));
        assert_eq!(package(&long, &long), None);
    }
}
