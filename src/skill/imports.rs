//! Packages that scripts import.

/// Modules of Python itself, of all supported versions (`sys.stdlib_module_names`).
const PYTHON_MODULES: &str = include_str!("python_modules.txt");
/// Modules of Node itself (`module.builtinModules`, without parts).
const NODE_MODULES: [&str; 43] = [
    "assert",
    "async_hooks",
    "buffer",
    "child_process",
    "cluster",
    "console",
    "constants",
    "crypto",
    "dgram",
    "diagnostics_channel",
    "dns",
    "domain",
    "events",
    "fs",
    "http",
    "http2",
    "https",
    "inspector",
    "module",
    "net",
    "os",
    "path",
    "perf_hooks",
    "process",
    "punycode",
    "querystring",
    "readline",
    "repl",
    "sea",
    "sqlite",
    "stream",
    "string_decoder",
    "sys",
    "test",
    "timers",
    "tls",
    "trace_events",
    "tty",
    "url",
    "util",
    "v8",
    "vm",
    "worker_threads",
];
const NODE_MODULES_OF_OLD: [&str; 2] = ["wasi", "zlib"];

/// Python modules whose package has another name.
const OTHER_NAMES: [(&str, &str); 28] = [
    ("Bio", "biopython"),
    ("Crypto", "pycryptodome"),
    ("OpenSSL", "pyopenssl"),
    ("PIL", "pillow"),
    ("attr", "attrs"),
    ("bs4", "beautifulsoup4"),
    ("cairo", "pycairo"),
    ("cv2", "opencv-python-headless"),
    ("dateutil", "python-dateutil"),
    ("distutils", "setuptools"),
    ("docx", "python-docx"),
    ("dotenv", "python-dotenv"),
    ("fitz", "pymupdf"),
    ("git", "gitpython"),
    ("jwt", "pyjwt"),
    ("magic", "python-magic"),
    ("multipart", "python-multipart"),
    ("pkg_resources", "setuptools"),
    ("pptx", "python-pptx"),
    ("psycopg2", "psycopg2-binary"),
    ("serial", "pyserial"),
    ("skimage", "scikit-image"),
    ("sklearn", "scikit-learn"),
    ("slugify", "python-slugify"),
    ("socks", "pysocks"),
    ("win32com", "pywin32"),
    ("yaml", "pyyaml"),
    ("zmq", "pyzmq"),
];

/// The package of a Python module that is not part of Python.
#[must_use]
pub fn python_package(module: &str) -> &str {
    let other = OTHER_NAMES.iter().find(|(name, _)| *name == module);
    other.map_or(module, |(_, package)| package)
}

/// A module or package that a script imports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Import {
    /// The first part of a Python module, or the name of a Node package.
    pub(super) name: String,
    /// From 1.
    pub(super) line: u32,
}

/// A `try` whose imports may fail.
struct Try {
    indentation: usize,
    /// Index of the first import inside.
    first: usize,
}

/// Modules that a Python script imports from elsewhere, except those that it can do without: inside a `try` with an `except` for
/// missing modules. Reads lines, not the language: imports inside of texts in triple quotes are skipped, others are found.
pub(super) fn python(text: &str) -> Vec<Import> {
    let (mut imports, mut tries, mut quotes) = (Vec::new(), Vec::<Try>::new(), None);
    for (line, full) in (1..).zip(text.lines()) {
        if let Some(open) = quotes {
            quotes = (!full.contains(open)).then_some(open);
            continue;
        }
        let statement = full.trim_start();
        let indentation = full.len() - statement.len();
        quotes = ["\"\"\"", "'''"]
            .into_iter()
            .find(|open| full.matches(open).count() % 2 == 1);
        if statement.is_empty() || statement.starts_with('#') {
            continue;
        }
        if statement.starts_with("except") {
            let misses = ["ImportError", "ModuleNotFoundError", "Exception", "except:"];
            if let Some(at) = tries.iter().rposition(|one| one.indentation == indentation)
                && misses.iter().any(|name| statement.contains(name))
            {
                imports.truncate(tries[at].first);
                // What replaces a missing module may be missing, too.
                continue;
            }
        }
        while tries
            .last()
            .is_some_and(|one| one.indentation >= indentation && !is_clause(statement))
        {
            tries.pop();
        }
        if statement.starts_with("try:") {
            tries.push(Try {
                indentation,
                first: imports.len(),
            });
        }
        imports.extend(
            python_names(statement)
                .into_iter()
                .map(|name| Import { name, line }),
        );
    }
    imports.retain(|import| !PYTHON_MODULES.lines().any(|module| module == import.name));
    imports
}

fn is_clause(statement: &str) -> bool {
    ["except", "else:", "finally:"]
        .iter()
        .any(|clause| statement.starts_with(clause))
}

fn python_names(statement: &str) -> Vec<String> {
    let first = |text: &str| {
        let name: String = text
            .trim()
            .chars()
            .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
            .collect();
        (!name.is_empty()).then_some(name)
    };
    if let Some(rest) = statement.strip_prefix("import ") {
        let rest = rest.split(['#', ';']).next().unwrap_or_default();
        return rest.split(',').filter_map(first).collect();
    }
    // A relative import begins with a dot.
    let from = statement
        .strip_prefix("from ")
        .filter(|rest| rest.contains(" import "));
    from.and_then(first).into_iter().collect()
}

/// Packages that a Node script imports.
pub(super) fn node(text: &str) -> Vec<Import> {
    let mut imports = Vec::new();
    let mut is_comment = false;
    for (line, full) in (1..).zip(text.lines()) {
        let code = full.trim_start();
        if is_comment || code.starts_with("/*") {
            is_comment = !code.contains("*/");
            continue;
        }
        if code.starts_with("//") {
            continue;
        }
        let named = ["require(", "import(", " from ", "import "]
            .iter()
            .filter_map(|before| {
                let (ahead, after) = code.split_once(before)?;
                let is_statement = before.ends_with('(')
                    || ahead.is_empty()
                    || ahead.starts_with("import")
                    || ahead.starts_with("export")
                    || ahead.starts_with('}');
                is_statement.then(|| quoted(after.trim_start())).flatten()
            });
        imports.extend(named.filter_map(node_package).map(|name| Import { name, line }));
    }
    imports.dedup();
    imports
}

fn quoted(text: &str) -> Option<&str> {
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    text[1..].split_once(quote).map(|(inside, _)| inside)
}

/// Of `pdf-lib/es` and `@scope/name/part` the package; files, `#internal` names and Node's own modules have none.
fn node_package(named: &str) -> Option<String> {
    let parts = if named.starts_with('@') { 2 } else { 1 };
    let package = named.split('/').take(parts).collect::<Vec<_>>().join("/");
    let begins_like_one = package.starts_with(|c: char| c == '@' || c.is_ascii_alphanumeric());
    let own = NODE_MODULES.iter().chain(&NODE_MODULES_OF_OLD);
    let is_own = named.contains(':') || own.into_iter().any(|module| *module == package);
    (begins_like_one && !is_own).then_some(package)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(imports: Vec<Import>) -> Vec<(String, u32)> {
        imports
            .into_iter()
            .map(|import| (import.name, import.line))
            .collect()
    }

    fn found(expected: &[(&str, u32)]) -> Vec<(String, u32)> {
        expected
            .iter()
            .map(|(name, line)| ((*name).to_owned(), *line))
            .collect()
    }

    #[test]
    fn finds_modules_that_python_lacks() {
        let text = "#!/usr/bin/env python3\n\"\"\"Does it.\n\nimport nothing\n\"\"\"\nimport os, pypdf as p, sys  # import x\n\
                    from PIL.Image import open\nfrom . import beside\nif True:\n    import yaml; print()\n\
                    print('import none')\nfrom_here = 1\n";
        assert_eq!(
            names(python(text)),
            found(&[("pypdf", 6), ("PIL", 7), ("yaml", 10)])
        );
    }

    #[test]
    fn skips_modules_that_python_script_can_do_without() {
        let text = "try:\n    import fast\n    import fast2\nexcept ImportError:\n    import slow\n    fast = None\n\
                    import needed\ntry:\n    import other\nexcept ValueError:\n    pass\n";
        assert_eq!(
            names(python(text)),
            found(&[("slow", 5), ("needed", 7), ("other", 9)])
        );
    }

    #[test]
    fn finds_packages_that_node_lacks() {
        let text = "// require('none')\n/* import 'none';\n*/\nconst fs = require('fs');\nimport x from 'pdf-lib/es';\n\
                    import { y } from \"@scope/name/part\";\nimport './beside.mjs';\nimport 'node:test';\n\
                    const z = await import('lodash');\nexport * from 'last';\n";
        assert_eq!(
            names(node(text)),
            found(&[("pdf-lib", 5), ("@scope/name", 6), ("lodash", 9), ("last", 10)])
        );
    }
}
