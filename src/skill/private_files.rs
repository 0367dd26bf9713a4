//! Warns of files that are usually private, because everyone who may run a skill can read it.

use crate::error::quoted;

const NAMES: [&str; 12] = [
    ".dockercfg",
    ".env",
    ".git-credentials",
    ".htpasswd",
    ".netrc",
    ".npmrc",
    ".pgpass",
    ".pypirc",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "id_rsa",
];
const EXTENSIONS: [&str; 7] = ["jks", "kdbx", "key", "keystore", "p12", "pem", "pfx"];
/// Endings of templates.
const EXAMPLES: [&str; 5] = ["dist", "example", "sample", "template", "tmpl"];

/// Maximum number of these warnings.
const WARNED_MAX: usize = 10;

/// One warning per file.
pub(super) fn warnings(files: &[&str]) -> impl Iterator<Item = String> {
    files.iter().filter(|path| is_private(path)).take(WARNED_MAX).map(|path| {
        let path = quoted(path);
        format!(
            "{path} looks like a file with keys or passwords, which everyone who may run the skill can read; remove it, and declare secrets in `permissions.secrets`"
        )
    })
}

fn is_private(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    NAMES.contains(&name.as_str())
        || EXTENSIONS.contains(&extension)
        || (name.starts_with(".env.") && !EXAMPLES.contains(&extension))
        || path.ends_with(".aws/credentials")
        || path.ends_with(".docker/config.json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detects_private_files_by_name() {
        for path in [
            ".env",
            "a/.env.production",
            "certs/Server.PEM",
            ".ssh/id_rsa",
            ".npmrc",
            "x/.aws/credentials",
        ] {
            assert!(is_private(path), "{path}");
        }
        for path in [
            ".env.example",
            "id_rsa.pub",
            "environment.py",
            "key",
            "keys.md",
            "credentials.md",
            ".envrc.md",
        ] {
            assert!(!is_private(path), "{path}");
        }
    }
}
