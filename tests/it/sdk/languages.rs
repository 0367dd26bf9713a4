//! The tests of the libraries for Python and TypeScript against a server. Those for Go need its compiler and run in `tests/sdks.sh`.

use std::path::Path;
use std::process::Command;

use crate::cli_shell::{CommandOutput, command_output};
use crate::server::Server;
use crate::world::{Backend, World, missing};

/// Runs a program in a copy of the package, as a user who has a server; `None` where something is missing.
async fn run_tests(package: &str, program: &[&str]) -> Option<CommandOutput> {
    if Command::new(program[0]).arg("--version").output().is_err() {
        missing(program[0], "the tests of a client library use it");
        return None;
    }
    World::on(Backend::Native).await?;
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("package");
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("web/sdk")
        .join(package);
    let copied = Command::new("cp")
        .arg("-r")
        .arg(source)
        .arg(&copy)
        .status()
        .unwrap();
    assert!(copied.success());
    let server = Server::start_with(
        &folder.path().join("data"),
        &[("SKILLBOX_SANDBOX_BACKEND", "native")],
    );
    let output = Command::new(program[0])
        .args(&program[1..])
        .current_dir(copy)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", folder.path())
        .env("SKILLBOX_SERVER_URL", &server.url)
        .env("SKILLBOX_API_KEY", server.key())
        .output()
        .unwrap();
    Some(command_output(output))
}

#[tokio::test(flavor = "multi_thread")]
async fn tests_of_python_library_pass() {
    let Some(said) = run_tests("python", &["/usr/bin/python3", "-m", "unittest"]).await else {
        return;
    };
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert!(!said.stderr.contains("Ran 0 tests"), "{}", said.stderr);
}

/// Without those of archives, which take ten seconds of CPU time and run in `tests/sdks.sh`.
#[tokio::test(flavor = "multi_thread")]
async fn tests_of_typescript_library_pass() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("web/sdk/typescript/tests");
    let files = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    let files: Vec<String> = files
        .map(|name| format!("tests/{}", name.into_string().unwrap()))
        .filter(|name| name.ends_with(".test.js") && name != "tests/archives.test.js")
        .collect();
    let program: Vec<&str> = ["node", "--test"]
        .into_iter()
        .chain(files.iter().map(String::as_str))
        .collect();
    let Some(said) = run_tests("typescript", &program).await else {
        return;
    };
    assert_eq!(said.code, 0, "{}{}", said.stdout, said.stderr);
    assert!(!said.stdout.contains("pass 0"), "{}", said.stdout);
}
