//! Recognises programs that failed because a sandbox has no network.

use crate::engine::last_words::last_words;
use crate::execution::Failure;

/// Bytes of standard error that are searched: the end has the reason.
const TAIL_BYTES: usize = 4 * 1024;

/// How resolvers, Python, Node.js and curl report a missing network. A refused connection is none: loopback exists.
const SIGNS: [&str; 12] = [
    "Temporary failure in name resolution",
    "Name or service not known",
    "No address associated with hostname",
    "Network is unreachable",
    "socket.gaierror",
    "NameResolutionError",
    "ENOTFOUND",
    "EAI_AGAIN",
    "ENETUNREACH",
    // Its cause, which Node.js does not print.
    "TypeError: fetch failed",
    "Could not resolve host",
    "unable to resolve host address",
];

/// Whether a failed program said at its end that it lacked a network.
pub(super) fn lacked_network(failure: &Failure, stderr: &[u8]) -> bool {
    let Some(tail) = last_words(failure, stderr, TAIL_BYTES) else {
        return false;
    };
    SIGNS
        .iter()
        .any(|sign| failure.message.contains(sign) || tail.contains(sign))
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
        lacked_network(&failure, stderr.as_bytes())
    }

    #[test]
    fn recognises_missing_network_of_each_language() {
        for said in [
            "urllib.error.URLError: <urlopen error [Errno -3] Temporary failure in name resolution>",
            "urllib3.exceptions.NameResolutionError: HTTPSConnection(host='example.com', port=443)",
            "TypeError: fetch failed\n    at async <code>:1:1",
            "Error: getaddrinfo EAI_AGAIN example.com",
            "Error: connect ENETUNREACH 192.0.2.1:443",
            "OSError: [Errno 101] Network is unreachable",
            "curl: (6) Could not resolve host: example.com",
        ] {
            assert!(lacks("exit_code", said), "{said}");
        }
    }

    #[test]
    fn other_failures_need_no_network() {
        assert!(!lacks(
            "exit_code",
            "ConnectionRefusedError: [Errno 111] Connection refused"
        ));
        assert!(!lacks("exit_code", "ValueError: no such thing"));
        assert!(!lacks("timeout", "getaddrinfo EAI_AGAIN example.com"));
        let early = format!("EAI_AGAIN, tried another way\n{}", "x".repeat(TAIL_BYTES));
        assert!(!lacks("exit_code", &early));
    }
}
