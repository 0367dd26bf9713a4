//! `skillbox sdk` prints a library, and writes its package.

use std::path::Path;

use super::declared::Sdk;
use crate::cli_shell::Shell;

fn in_repository(file: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("web/sdk").join(file)).unwrap()
}

#[test]
fn prints_library_and_writes_package_of_each_language() {
    for (sdk, language, package) in [
        (Sdk::Go, "go", "go.mod"),
        (Sdk::Python, "python", "pyproject.toml"),
        (Sdk::TypeScript, "typescript", "package.json"),
    ] {
        let shell = Shell::new();
        let printed = shell.run(&["sdk", language]);
        assert_eq!(printed.code, 0, "{}", printed.stderr);
        assert_eq!(
            printed.stdout.into_bytes(),
            in_repository(sdk.sources()[0]),
            "{language}"
        );

        let written = shell.run(&["sdk", language, "--out", "new/package"]);
        assert_eq!(written.code, 0, "{}", written.stderr);
        let folder = shell.folder().join("new/package");
        for file in sdk.sources().iter().copied().chain([
            format!("{language}/{package}").as_str(),
            format!("{language}/README.md").as_str(),
        ]) {
            let name = file.split_once('/').unwrap().1;
            assert_eq!(
                std::fs::read(folder.join(name)).unwrap(),
                in_repository(file),
                "{file}"
            );
        }

        std::fs::write(folder.join(package), "mine").unwrap();
        let again = shell.run(&["sdk", language, "--out", "new/package"]);
        assert_eq!(again.code, 3, "{}", again.stderr);
        assert!(again.stderr.contains("already exists"), "{}", again.stderr);
        assert_eq!(std::fs::read_to_string(folder.join(package)).unwrap(), "mine");
    }
}
