//! Recognises programs that failed because a file of the user's machine is not in the sandbox.

use crate::engine::last_words::last_words;
use crate::execution::Failure;

/// Bytes of standard error that are searched: the end has the reason.
const TAIL_BYTES: usize = 4 * 1024;

/// How Python, Node.js and `cat` name a file that does not exist, before and after its path.
const SIGNS: [(&str, &str); 3] = [
    ("No such file or directory: '", "'"),
    ("no such file or directory, open '", "'"),
    ("cat: ", ": No such file or directory"),
];

/// Folders of the sandbox itself: what is missing there was not a file of the user.
const OWN_FOLDERS: [&str; 9] = [
    "/sandbox",
    "/workspace",
    "/skills",
    "/tmp",
    "/usr",
    "/etc",
    "/proc",
    "/sys",
    "/dev",
];

/// Whether a failed program said at its end that it lacked a file.
pub(super) fn lacked_file(failure: &Failure, stderr: &[u8]) -> bool {
    last_words(failure, stderr, TAIL_BYTES)
        .is_some_and(|tail| names_file(&failure.message) || names_file(&tail))
}

fn names_file(text: &str) -> bool {
    SIGNS.iter().any(|(before, after)| {
        let path = text
            .rsplit_once(before)
            .and_then(|(_, rest)| rest.split_once(after));
        path.is_some_and(|(path, _)| is_users(path))
    })
}

fn is_users(path: &str) -> bool {
    let is_own = |folder: &&str| {
        path.strip_prefix(*folder)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    !path.is_empty() && !path.contains('\n') && !OWN_FOLDERS.iter().any(is_own)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lacks(code: &str, stderr: &str) -> bool {
        let failure = Failure {
            code: code.to_owned(),
            message: "the program exited with code 1".to_owned(),
            exception: None,
        };
        lacked_file(&failure, stderr.as_bytes())
    }

    #[test]
    fn recognises_missing_files_of_each_language() {
        for stderr in [
            "FileNotFoundError: [Errno 2] No such file or directory: 'cities.csv'\n",
            "Error: ENOENT: no such file or directory, open '/home/me/cities.csv'\n    at f\n",
            "cat: cities.csv: No such file or directory\n",
        ] {
            assert!(lacks("exit_code", stderr), "{stderr}");
            assert!(lacks("exception", stderr), "{stderr}");
            assert!(!lacks("timeout", stderr), "{stderr}");
        }
        for stderr in [
            "",
            "No such file or directory",
            "FileNotFoundError: [Errno 2] No such file or directory: '/usr/bin/git'\n",
            "FileNotFoundError: [Errno 2] No such file or directory: '/sandbox/out/x'\n",
        ] {
            assert!(!lacks("exit_code", stderr), "{stderr}");
        }
    }
}
