//! Names of secrets, which are also their environment variables.

use std::fmt;
use std::str::FromStr;

use crate::ids::serde_as_text;
use crate::limits;

/// The name of a secret and of its environment variable: `[A-Za-z_][A-Za-z0-9_]*`, at most 64 characters, and not
/// reserved by an interpreter, a loader or Skillbox.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SecretName(String);

/// The rule for a secret's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSecretName {
    /// Not the name of a variable.
    #[error(
        "secret name must be 1 to 64 of A-Z, a-z, 0-9 and '_', not starting with a digit (for example `API_TOKEN`)"
    )]
    Malformed,
    /// Would change how programs run (P11).
    #[error("secret name `{0}` is a variable that interpreters, loaders or the sandbox read; choose another")]
    Reserved(String),
}

/// Variables of Skillbox, and variables that change an interpreter or the loader (S-29).
const RESERVED: [&str; 60] = [
    "PATH",
    "HOME",
    "LANG",
    "LANGUAGE",
    "TMPDIR",
    "TMP",
    "TEMP",
    "TZ",
    "TZDIR",
    "SHELL",
    "USER",
    "PWD",
    "OLDPWD",
    "CDPATH",
    "IFS",
    "ENV",
    "EDITOR",
    "PAGER",
    "INPUTRC",
    "SHELLOPTS",
    "BASHOPTS",
    "GLOBIGNORE",
    "EXECIGNORE",
    "POSIXLY_CORRECT",
    "PROMPT_COMMAND",
    "PS0",
    "PS1",
    "PS2",
    "PS4",
    "GCONV_PATH",
    "GETCONF_DIR",
    "LOCPATH",
    "NLSPATH",
    "HOSTALIASES",
    "LOCALDOMAIN",
    "RES_OPTIONS",
    "RESOLV_HOST_CONF",
    "PERL5LIB",
    "PERL5OPT",
    "PERL5DB",
    "PERLLIB",
    "PERLIO",
    "RUBYLIB",
    "RUBYOPT",
    "LUA_INIT",
    "CLASSPATH",
    "JDK_JAVA_OPTIONS",
    "JAVA_TOOL_OPTIONS",
    "_JAVA_OPTIONS",
    "GIT_EXEC_PATH",
    "IPYTHONDIR",
    "JUPYTER_PATH",
    "JUPYTER_CONFIG_DIR",
    "MATPLOTLIBRC",
    "MPLBACKEND",
    "MPLCONFIGDIR",
    "UV_THREADPOOL_SIZE",
    "SSLKEYLOGFILE",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];
const RESERVED_PREFIXES: [&str; 18] = [
    "LD_",
    "DYLD_",
    "LC_",
    "GLIBC_",
    "MALLOC_",
    "BASH_",
    "XDG_",
    "OPENSSL_",
    "GIT_CONFIG",
    "GIT_SSH",
    "TS_NODE_",
    "PYTHON",
    "NODE_",
    "NPM_",
    "npm_",
    "PIP_",
    "SANDBOX_",
    "SKILL_",
];

/// Variables that start other programs or load code, besides those above. Secrets that were set before they were listed
/// keep their names.
const RESERVED_SINCE: [&str; 24] = [
    "VISUAL",
    "BROWSER",
    "LESS",
    "LESSOPEN",
    "LESSCLOSE",
    "MANPAGER",
    "ZDOTDIR",
    "GIT_ASKPASS",
    "SSH_ASKPASS",
    "SUDO_ASKPASS",
    "GIT_EDITOR",
    "GIT_SEQUENCE_EDITOR",
    "GIT_PAGER",
    "GIT_EXTERNAL_DIFF",
    "GIT_PROXY_COMMAND",
    "GIT_TEMPLATE_DIR",
    "FONTCONFIG_FILE",
    "FONTCONFIG_PATH",
    "AWKPATH",
    "AWKLIBPATH",
    "GS_LIB",
    "MAKEFLAGS",
    "R_PROFILE",
    "R_ENVIRON",
];
const RESERVED_PREFIXES_SINCE: [&str; 5] = ["UV_", "DOTNET_", "CORECLR_", "MAGICK_", "TERMINFO"];

impl SecretName {
    /// Whether a new secret may have this name.
    ///
    /// # Errors
    ///
    /// [`InvalidSecretName::Reserved`].
    pub fn check_new(&self) -> Result<(), InvalidSecretName> {
        let name = self.0.to_ascii_uppercase();
        let has_prefix = RESERVED_PREFIXES_SINCE
            .iter()
            .any(|prefix| name.starts_with(prefix));
        if has_prefix || RESERVED_SINCE.contains(&name.as_str()) {
            return Err(InvalidSecretName::Reserved(self.0.clone()));
        }
        Ok(())
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for SecretName {
    type Err = InvalidSecretName;

    fn from_str(text: &str) -> Result<Self, InvalidSecretName> {
        let legal = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let starts = text.bytes().next().is_some_and(|first| !first.is_ascii_digit());
        if !starts || text.len() > limits::SECRET_NAME_CHARS_MAX || !text.bytes().all(legal) {
            return Err(InvalidSecretName::Malformed);
        }
        let upper = text.to_ascii_uppercase();
        let prefixed = RESERVED_PREFIXES.iter().any(|prefix| text.starts_with(prefix));
        if prefixed || RESERVED.contains(&upper.as_str()) || upper.ends_with("_PROXY") {
            return Err(InvalidSecretName::Reserved(text.to_owned()));
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for SecretName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
serde_as_text!(SecretName);

#[cfg(test)]
mod tests {
    use super::*;

    /// S-29, A-08: no secret becomes a variable that decides what runs.
    #[test]
    fn rejects_names_that_change_how_programs_run() {
        for name in [
            "LD_PRELOAD",
            "PYTHONPATH",
            "PYTHONSTARTUP",
            "NODE_OPTIONS",
            "BASH_ENV",
            "GCONV_PATH",
            "LOCPATH",
            "LC_ALL",
            "GLIBC_TUNABLES",
            "OPENSSL_CONF",
            "OPENSSL_MODULES",
            "PERL5LIB",
            "PERL5OPT",
            "RUBYOPT",
            "MPLBACKEND",
            "PYTHONHASHSEED",
            "NODE_PATH",
            "NODE_EXTRA_CA_CERTS",
            "UV_THREADPOOL_SIZE",
            "XDG_CONFIG_HOME",
            "PATH",
            "SANDBOX_INPUT",
            "https_proxy",
        ] {
            let refused = InvalidSecretName::Reserved(name.to_owned());
            assert_eq!(name.parse::<SecretName>(), Err(refused), "{name}");
        }
        for name in [
            "GIT_EXTERNAL_DIFF",
            "GIT_ASKPASS",
            "GIT_PAGER",
            "LESSOPEN",
            "visual",
            "BROWSER",
            "FONTCONFIG_FILE",
            "ZDOTDIR",
            "DOTNET_STARTUP_HOOKS",
            "UV_USE_IO_URING",
        ] {
            let stored: SecretName = name.parse().unwrap();
            let refused = InvalidSecretName::Reserved(name.to_owned());
            assert_eq!(stored.check_new(), Err(refused), "{name}");
        }
        for name in ["", "1A", "A-B", "A=B", "A\nB", "A\0", "Ä", &"A".repeat(65)] {
            let refused = name.parse::<SecretName>();
            assert_eq!(refused, Err(InvalidSecretName::Malformed), "{name:?}");
        }
        for name in [
            "API_TOKEN",
            "_x",
            "GIT_TOKEN",
            "RUBYGEMS_API_KEY",
            "openweather_key",
            &"A".repeat(64),
        ] {
            assert!(name.parse::<SecretName>().is_ok(), "{name}");
        }
    }
}
