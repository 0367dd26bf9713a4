//! Syntax errors in the scripts of a skill. The interpreters of this machine parse the files and run nothing.

use std::path::Path;
use std::process::Stdio;

use tokio::io::AsyncReadExt as _;
use tokio::process::Command;

use crate::bundle::Listing;
use crate::limits;
use crate::skill::{Language, LintFinding, RuleSet, Severity, language_of_file};

/// Prints position of the file, line and message for each file with an error.
const PYTHON: &str = r#"
import sys, warnings
warnings.simplefilter("ignore")
version = "Python %d.%d" % sys.version_info[:2]
for number, path in enumerate(sys.argv[1:]):
    try:
        with open(path, "rb") as file:
            compile(file.read(), path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        message = " ".join(str(getattr(error, "msg", None) or error).split())
        print(number, getattr(error, "lineno", None) or 0, "%s (%s)" % (message, version), sep="\t")
    except (RecursionError, MemoryError):
        pass
"#;

/// A file that does not parse.
#[derive(Debug, PartialEq, Eq)]
struct SyntaxError {
    line: Option<u32>,
    message: String,
}

/// Warnings about the scripts of an unpacked skill, by language and path. A language is left out if this machine lacks its interpreter.
pub(crate) fn syntax_errors(folder: &Path, listing: &Listing) -> Vec<LintFinding> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let Ok(runtime) = runtime else { return Vec::new() };
    let mut findings = Vec::new();
    for language in [Language::Python, Language::Node, Language::Bash] {
        let entries = listing.entries().iter();
        let scripts: Vec<&str> = entries
            .filter(|entry| entry.size <= limits::LINTED_SCRIPT_BYTES_MAX)
            .map(|entry| entry.path.as_str())
            .filter(|path| language_of_file(path, b"") == Some(language))
            .take(limits::LINTED_SCRIPTS_MAX)
            .collect();
        let errors = runtime.block_on(errors(language, folder, &scripts));
        findings.extend(errors.into_iter().map(|(path, error)| LintFinding {
            rule_set: RuleSet::Skillbox,
            severity: Severity::Warning,
            file: path.to_owned(),
            line: error.line,
            message: format!("syntax error: {}", error.message),
        }));
    }
    findings
}

async fn errors<'a>(language: Language, folder: &Path, scripts: &[&'a str]) -> Vec<(&'a str, SyntaxError)> {
    let mut found = Vec::new();
    match language {
        Language::Python if scripts.is_empty() => {}
        Language::Python => {
            let mut python = Command::new("python3");
            python.args(["-I", "-S", "-c", PYTHON]);
            python.args(scripts.iter().map(|script| folder.join(script)));
            let printed = printed_by(python, Channel::Stdout).await.unwrap_or_default();
            found.extend(printed.lines().filter_map(|line| python_error(line, scripts)));
        }
        Language::Node | Language::Bash => {
            let (program, check) = match language {
                Language::Bash => ("bash", "-n"),
                Language::Node | Language::Python => ("node", "--check"),
            };
            for script in scripts {
                let mut command = Command::new(program);
                command.arg(check).arg(folder.join(script));
                let Some(printed) = printed_by(command, Channel::Stderr).await else {
                    break;
                };
                let error = match language {
                    Language::Bash => bash_error(&printed),
                    Language::Node | Language::Python => node_error(&printed),
                };
                found.extend(error.map(|error| (*script, error)));
            }
        }
    }
    found
}

#[derive(Clone, Copy)]
enum Channel {
    Stdout,
    Stderr,
}

/// What a command prints; `None` if it cannot be started or takes too long.
async fn printed_by(mut command: Command, channel: Channel) -> Option<String> {
    let (stdout, stderr) = match channel {
        Channel::Stdout => (Stdio::piped(), Stdio::null()),
        Channel::Stderr => (Stdio::null(), Stdio::piped()),
    };
    // Variables such as NODE_OPTIONS and BASH_ENV can make an interpreter run code.
    command
        .env_clear()
        .envs(
            ["PATH", "HOME"]
                .into_iter()
                .filter_map(|name| Some((name, std::env::var_os(name)?))),
        )
        .stdin(Stdio::null())
        .stdout(stdout)
        .stderr(stderr)
        .kill_on_drop(true);
    let mut child = command.spawn().ok()?;
    let mut printed = Vec::new();
    let reading = async {
        match channel {
            Channel::Stdout => {
                let stdout = child.stdout.as_mut()?;
                stdout
                    .take(limits::LINTER_OUTPUT_BYTES_MAX)
                    .read_to_end(&mut printed)
                    .await
                    .ok()
            }
            Channel::Stderr => {
                let stderr = child.stderr.as_mut()?;
                stderr
                    .take(limits::LINTER_OUTPUT_BYTES_MAX)
                    .read_to_end(&mut printed)
                    .await
                    .ok()
            }
        }
    };
    tokio::time::timeout(limits::LINTER_TIME_MAX, reading)
        .await
        .ok()??;
    Some(String::from_utf8_lossy(&printed).into_owned())
}

fn python_error<'a>(line: &str, scripts: &[&'a str]) -> Option<(&'a str, SyntaxError)> {
    let mut fields = line.splitn(3, '\t');
    let script = scripts.get(fields.next()?.parse::<usize>().ok()?)?;
    let line = fields.next()?.parse().ok().filter(|line| *line > 0);
    let message = fields.next()?.to_owned();
    Some((script, SyntaxError { line, message }))
}

/// Of `node --check`: `PATH:LINE`, the line, `SyntaxError: MESSAGE`, and at the end the version.
fn node_error(printed: &str) -> Option<SyntaxError> {
    let message = printed
        .lines()
        .find_map(|line| line.strip_prefix("SyntaxError: "))?;
    // Releases that do not recognize modules by their syntax.
    if message.contains("outside a module") || message.contains("await is only valid") {
        return None;
    }
    let place = printed.lines().next().and_then(|first| first.rsplit_once(':'));
    let version = printed.lines().rev().find(|line| line.starts_with("Node.js v"));
    Some(SyntaxError {
        line: place.and_then(|(_, line)| line.parse().ok()),
        message: version.map_or_else(|| message.to_owned(), |version| format!("{message} ({version})")),
    })
}

/// Of `bash -n`: `PATH: line LINE: MESSAGE`.
fn bash_error(printed: &str) -> Option<SyntaxError> {
    let first = printed.lines().find(|line| line.contains(": line "))?;
    let (line, message) = first.split_once(": line ")?.1.split_once(": ")?;
    Some(SyntaxError {
        line: line.parse().ok(),
        message: message.trim_start_matches("syntax error: ").to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_messages_of_interpreters() {
        let error = |line, message: &str| {
            let message = message.to_owned();
            Some(SyntaxError { line, message })
        };
        let scripts = ["a.py", "b.py"];
        assert_eq!(
            python_error("1\t7\tinvalid syntax (Python 3.11)", &scripts),
            error(Some(7), "invalid syntax (Python 3.11)").map(|error| ("b.py", error))
        );
        assert_eq!(python_error("2\t7\tno such script", &scripts), None);
        let node = "/x/b.mjs:3\nlet = = 1;\n^^^\n\nSyntaxError: Unexpected token '='\n    at checkSyntax\n\nNode.js v20.20.2\n";
        assert_eq!(
            node_error(node),
            error(Some(3), "Unexpected token '=' (Node.js v20.20.2)")
        );
        let module =
            "/x/b.js:1\nimport x from 'y'\n\nSyntaxError: Cannot use import statement outside a module\n";
        assert_eq!(node_error(module), None);
        assert_eq!(
            bash_error("/x: y/c.sh: line 3: syntax error: unexpected end of file\n"),
            error(Some(3), "unexpected end of file")
        );
        assert_eq!(bash_error("bash: no such file\n"), None);
    }
}
