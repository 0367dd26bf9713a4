//! Ids as people give them: whole, or a beginning or end that only one has.

use std::fmt::Display;
use std::str::FromStr;

use crate::cli::failure::{Failure, Result};
use crate::error::quoted;
use crate::limits;

/// An id, or the digits of a part of one.
#[derive(Clone, Debug)]
pub(crate) enum IdArgument<T> {
    Whole(T),
    Part(String),
}

impl<T: FromStr> FromStr for IdArgument<T> {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        if let Ok(id) = text.parse() {
            return Ok(Self::Whole(id));
        }
        let digits = digits(&text.to_lowercase());
        let is_part = digits.len() >= limits::ID_PART_DIGITS_MIN
            && digits.len() <= 64
            && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_part {
            return Ok(Self::Part(digits));
        }
        Err(format!(
            "must be an id, or the beginning or end of one: at least {} digits of 0-9 and a-f",
            limits::ID_PART_DIGITS_MIN
        ))
    }
}

impl<T: Display> IdArgument<T> {
    /// The id that is meant. `newest` lists ids, at most [`limits::ID_SEARCH_ROWS`]; older ones must be given whole.
    pub(crate) fn find(self, what: &str, newest: impl FnOnce() -> Result<Vec<T>>) -> Result<T> {
        let part = match self {
            Self::Whole(id) => return Ok(id),
            Self::Part(part) => part,
        };
        let mut found = newest()?;
        found.retain(|id| {
            let digits = digits(&id.to_string());
            digits.starts_with(&part) || digits.ends_with(&part)
        });
        if found.len() > 1 {
            let ids: Vec<_> = found.iter().take(5).map(ToString::to_string).collect();
            let more = if found.len() > ids.len() { ", …" } else { "" };
            let message = format!(
                "{} ids of {} begin or end with {}",
                found.len(),
                plural(what),
                quoted(&part)
            );
            return Err(Failure::refused(message).hint(format!("give more digits: {}{more}", ids.join(", "))));
        }
        found.pop().ok_or_else(|| {
            let rows = limits::ID_SEARCH_ROWS;
            let message = format!(
                "no id of the newest {rows} {} begins or ends with {}",
                plural(what),
                quoted(&part)
            );
            Failure::refused(message).hint(format!("give the whole id of an older {what}"))
        })
    }
}

fn plural(what: &str) -> String {
    match what.strip_suffix('y').filter(|stem| !stem.ends_with('e')) {
        Some(stem) => format!("{stem}ies"),
        None => format!("{what}s"),
    }
}

fn digits(id: &str) -> String {
    id.trim_start_matches("sha256:").replace('-', "")
}

/// What tables on a terminal show of an id: the end, since ids of one minute begin alike.
pub(crate) fn short(id: impl Display) -> String {
    let digits = digits(&id.to_string());
    digits[digits.len().saturating_sub(limits::ID_DIGITS_SHOWN)..].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{Digest, ExecutionId};

    const IDS: [&str; 3] = [
        "019a0000-0000-7000-8000-0000000000aa",
        "019a0000-0000-7000-8000-0000000000ab",
        "019b0000-0000-7000-8000-00000000ccab",
    ];

    fn find(text: &str) -> std::result::Result<String, String> {
        let argument: IdArgument<ExecutionId> = text.parse()?;
        let ids = || Ok(IDS.iter().map(|id| id.parse().unwrap()).collect());
        argument
            .find("execution", ids)
            .map(|id| id.to_string())
            .map_err(|failure| failure.to_string())
    }

    #[test]
    fn part_finds_the_only_id() {
        assert_eq!(find("019b"), Ok(IDS[2].to_owned()));
        assert_eq!(find("00AA"), Ok(IDS[0].to_owned()));
        assert_eq!(find("8000-00000000ccab"), Ok(IDS[2].to_owned()));
        assert_eq!(find(IDS[1]), Ok(IDS[1].to_owned()));
        let digest: IdArgument<Digest> = "sha256:2cf2".parse().unwrap();
        assert!(matches!(digest, IdArgument::Part(part) if part == "2cf2"));
    }

    #[test]
    fn part_of_none_or_of_several_says_what_to_do() {
        let several = find("019a").unwrap_err();
        assert!(several.contains("2 ids of executions"), "{several}");
        assert!(several.contains(IDS[0]) && several.contains(IDS[1]), "{several}");
        let none = find("dddd").unwrap_err();
        assert!(none.contains("give the whole id"), "{none}");
        for text in ["aab", "newest", ""] {
            assert!(find(text).unwrap_err().contains("at least 4 digits"), "{text}");
        }
    }

    #[test]
    fn short_id_is_its_end() {
        assert_eq!(short(IDS[2]), "0000ccab");
        assert_eq!(short(format!("sha256:{}deadbeef", "0".repeat(56))), "deadbeef");
    }
}
