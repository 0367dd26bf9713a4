//! `skillbox secret`: set, list and delete secrets. A value is read from a file, a pipe or the keyboard, never from
//! the command line.

use std::io::{self, IsTerminal as _};

use clap::Subcommand;

use crate::cli::arguments;
use crate::cli::client::Client;
use crate::cli::console::{Console, Format, Rows};
use crate::cli::exec::rows;
use crate::cli::exit::Exit;
use crate::cli::failure::{Failure, Result};
use crate::limits;
use crate::secret::SecretValue;
use crate::skill::SecretName;
use crate::store::Saved;

#[derive(Debug, Subcommand)]
pub(crate) enum SecretCommand {
    /// Set a secret, or replace the one of this name
    #[command(after_help = "\
Without --value-file the value is asked for and not shown. It cannot be given as an argument: the shell would keep it in \
its history, and other users would see it in the list of processes.

Examples:
  skillbox secret set API_TOKEN
  skillbox secret set SSH_KEY --value-file id_ed25519
  pass show api | skillbox secret set API_TOKEN --value-file -")]
    Set {
        /// Name of the secret, and of the variable in programs
        name: SecretName,
        /// Rejected: the value is not an argument
        #[arg(hide = true)]
        value: Option<String>,
        /// Read the value from this file, or from standard input if it is -; one trailing line break is removed
        #[arg(long, value_name = "FILE|-")]
        value_file: Option<String>,
        /// Keep a trailing line break
        #[arg(long, requires = "value_file")]
        exact: bool,
    },
    /// List the names of secrets; values are never shown
    #[command(after_help = "Example:\n  skillbox secret list --format json")]
    List {
        /// Maximum number of rows
        #[arg(long, default_value_t = limits::PAGE_ROWS as usize, value_parser = rows)]
        limit: usize,
    },
    /// Delete a secret permanently
    #[command(after_help = "Example:\n  skillbox secret delete API_TOKEN")]
    Delete {
        /// Name of the secret
        name: SecretName,
    },
}

pub(crate) fn secret(command: SecretCommand, client: &Client, console: &Console) -> Result<Exit> {
    match command {
        SecretCommand::Set {
            name,
            value,
            value_file,
            exact,
        } => {
            if value.is_some() {
                let message = "the value is not an argument: the shell would keep it in its history";
                return Err(Failure::new(Exit::Usage, message).hint(VALUE_FILE));
            }
            let mut text = match value_file {
                Some(file) => arguments::value(&file)?,
                None => asked(&name)?,
            };
            if !exact {
                text.truncate(without_line_end(&text).len());
            }
            let value = SecretValue::new(text)
                .map_err(|error| Failure::refused(format!("the value of `{name}` {error}")))?;
            match client.set_secret(&name, &value)? {
                Saved::New => console.success(format!("set secret {name}")),
                Saved::Existing => console.success(format!("replaced secret {name}")),
            }
        }
        SecretCommand::List { limit } => {
            let listed = client.secrets(limit)?;
            console.data(Format::Table, &listed.items, |secrets| Rows {
                heading: &["secret", "created", "updated"],
                optional: &["created"],
                rows: secrets
                    .iter()
                    .map(|secret| {
                        let (first, last) = (
                            console.moment(secret.created_at),
                            console.moment(secret.updated_at),
                        );
                        vec![secret.name.to_string(), first, last]
                    })
                    .collect(),
            })?;
            if listed.more {
                console.say("more rows exist; raise --limit");
            }
        }
        SecretCommand::Delete { name } => {
            client.delete_secret(&name)?;
            console.success(format!("deleted secret {name}"));
        }
    }
    Ok(Exit::Success)
}

/// Asks on the terminal without echo.
fn asked(name: &SecretName) -> Result<String> {
    if !io::stdin().is_terminal() {
        return Err(no_terminal());
    }
    // Fails where standard input is a terminal, but not the one of this process.
    rpassword::prompt_password(format!("Value of {name} (not shown): ")).map_err(|_| no_terminal())
}

fn no_terminal() -> Failure {
    Failure::new(Exit::Usage, "cannot ask for the value without a terminal").hint(VALUE_FILE)
}

const VALUE_FILE: &str = "use --value-file FILE, or --value-file - for standard input";

/// Editors and `echo` append a line break that is not part of the value.
fn without_line_end(text: &str) -> &str {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.strip_suffix('\r').unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strips_one_trailing_line_break() {
        for (text, value) in [
            ("a\n", "a"),
            ("a\r\n", "a"),
            ("a\n\n", "a\n"),
            ("a b ", "a b "),
            ("\n", ""),
        ] {
            assert_eq!(without_line_end(text), value);
        }
    }
}
