//! Where the next page of a list starts: opaque to callers, and valid for that one list only.

use std::fmt::{self, Display};
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;

use crate::ids::{Digest, Tenant};
use crate::limits;
use crate::skill::SkillName;
use crate::store::{ExecutionFilter, InvalidCursor};

/// One page of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Page<T> {
    pub items: Vec<T>,
    /// Where the next page starts; `None` at the end of the list.
    pub next: Option<Cursor>,
}

/// A position in a list. It contains nothing that the page before did not show, so it needs no signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    list: Mark,
    position: String,
}

type Mark = [u8; 8];

/// What identifies a list: a cursor of one is rejected by every other.
pub(super) enum List<'a> {
    Skills(&'a Tenant),
    Versions(&'a Tenant, &'a SkillName),
    Executions(&'a Tenant, &'a ExecutionFilter),
    Keys(&'a Tenant),
    Secrets(&'a Tenant),
    Sessions(&'a Tenant),
    Blobs(&'a Tenant),
    Packages(&'a Tenant),
    Deliveries(&'a Tenant),
    Audit(&'a Tenant),
}

/// A position in a list that is ordered by time and id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment<Id> {
    pub(super) at: Timestamp,
    pub(super) id: Id,
}

impl<Id> Moment<Id> {
    pub(super) fn new(at: Timestamp, id: Id) -> Self {
        Self { at, id }
    }
}

/// How many rows a page has: at least one, at most the limit.
pub(super) fn page_rows(requested: u32) -> u32 {
    requested.clamp(1, limits::PAGE_ROWS_MAX)
}

impl List<'_> {
    /// Reads `cursor` as a position in this list.
    pub(super) fn position<P: FromStr>(&self, cursor: Option<Cursor>) -> Result<Option<P>, InvalidCursor> {
        let Some(cursor) = cursor else { return Ok(None) };
        if cursor.list != self.mark() {
            return Err(InvalidCursor);
        }
        cursor.position.parse().map(Some).map_err(|_| InvalidCursor)
    }

    /// Makes a page of `found`, which has one row more than `rows` if the list continues.
    pub(super) fn page<Row, Item: From<Row>, P: Display>(
        &self,
        mut found: Vec<Row>,
        rows: u32,
        position_of: fn(&Row) -> P,
    ) -> Page<Item> {
        let rows = usize::try_from(rows).unwrap_or(usize::MAX);
        let continues = found.len() > rows;
        found.truncate(rows);
        let next = found.last().filter(|_| continues).map(|last| Cursor {
            list: self.mark(),
            position: position_of(last).to_string(),
        });
        Page {
            items: found.into_iter().map(Item::from).collect(),
            next,
        }
    }

    fn mark(&self) -> Mark {
        // The parts cannot hold a line break, so no two lists are written alike.
        let text = match self {
            Self::Skills(tenant) => format!("skills\n{tenant}"),
            Self::Versions(tenant, name) => format!("versions\n{tenant}\n{name}"),
            Self::Executions(tenant, filter) => format!("executions\n{tenant}\n{filter:?}"),
            Self::Keys(tenant) => format!("keys\n{tenant}"),
            Self::Blobs(tenant) => format!("blobs\n{tenant}"),
            Self::Secrets(tenant) => format!("secrets\n{tenant}"),
            Self::Sessions(tenant) => format!("sessions\n{tenant}"),
            Self::Packages(tenant) => format!("packages\n{tenant}"),
            Self::Deliveries(tenant) => format!("deliveries\n{tenant}"),
            Self::Audit(tenant) => format!("audit\n{tenant}"),
        };
        let mut mark = Mark::default();
        mark.copy_from_slice(&Digest::of(text.as_bytes()).as_bytes()[..8]);
        mark
    }
}

impl Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = [&self.list, self.position.as_bytes()].concat();
        f.write_str(&URL_SAFE_NO_PAD.encode(bytes))
    }
}

impl FromStr for Cursor {
    type Err = InvalidCursor;

    fn from_str(text: &str) -> Result<Self, InvalidCursor> {
        if text.len() > limits::CURSOR_CHARS_MAX {
            return Err(InvalidCursor);
        }
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| InvalidCursor)?;
        let (list, position) = bytes.split_first_chunk().ok_or(InvalidCursor)?;
        let position = std::str::from_utf8(position).map_err(|_| InvalidCursor)?;
        Ok(Self {
            list: *list,
            position: position.to_owned(),
        })
    }
}

impl<Id: Display> Display for Moment<Id> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.at.as_microsecond(), self.id)
    }
}

impl<Id: FromStr> FromStr for Moment<Id> {
    type Err = InvalidCursor;

    fn from_str(text: &str) -> Result<Self, InvalidCursor> {
        let (at, id) = text.split_once('/').ok_or(InvalidCursor)?;
        let at = at.parse().map_err(|_| InvalidCursor)?;
        Ok(Self {
            at: Timestamp::from_microsecond(at).map_err(|_| InvalidCursor)?,
            id: id.parse().map_err(|_| InvalidCursor)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ExecutionId;
    use crate::store::ExecutionSource;

    fn cursor_of(list: &List<'_>) -> Cursor {
        list.page::<_, i32, _>(vec![1, 2], 1, |n| *n).next.unwrap()
    }

    ///
    #[test]
    fn cursor_survives_display_and_parse() {
        let tenant = Tenant::default_tenant();
        let cursor = cursor_of(&List::Keys(&tenant));
        assert_eq!(cursor.to_string().parse(), Ok(cursor.clone()));
        assert_eq!(List::Keys(&tenant).position(Some(cursor)), Ok(Some(1)));
    }

    ///
    #[test]
    fn rejects_cursor_of_another_list() {
        let (tenant, other) = (Tenant::default_tenant(), "other".parse().unwrap());
        let (name, all) = ("a".parse().unwrap(), ExecutionFilter::default());
        let narrow = ExecutionFilter {
            source: "a".parse().ok().map(ExecutionSource::Skill),
            ..ExecutionFilter::default()
        };
        let lists = [
            List::Skills(&tenant),
            List::Skills(&other),
            List::Versions(&tenant, &name),
            List::Executions(&tenant, &all),
            List::Executions(&tenant, &narrow),
            List::Keys(&tenant),
            List::Secrets(&tenant),
            List::Sessions(&tenant),
            List::Audit(&tenant),
            List::Blobs(&tenant),
        ];
        for (i, of) in lists.iter().enumerate() {
            for (j, list) in lists.iter().enumerate() {
                let position = list.position::<u32>(Some(cursor_of(of)));
                assert_eq!(position.is_ok(), i == j, "cursor {i} in list {j}");
            }
        }
    }

    ///
    #[test]
    fn rejects_malformed_cursor() {
        let tenant = Tenant::default_tenant();
        let list = List::Keys(&tenant);
        let good = cursor_of(&list).to_string();
        let long = "A".repeat(limits::CURSOR_CHARS_MAX + 1);
        for text in ["", "AAAA", "%%%", "ä", " ", &format!("{good}="), &long] {
            assert_eq!(text.parse::<Cursor>(), Err(InvalidCursor), "{text:?}");
        }
        for position in [
            "",
            "x",
            "1/",
            "1/x",
            "99999999999999999999/x",
            "-9223372036854775808/x",
        ] {
            let forged = Cursor {
                list: list.mark(),
                position: position.to_owned(),
            };
            assert_eq!(
                list.position::<Moment<ExecutionId>>(Some(forged)),
                Err(InvalidCursor),
                "{position:?}"
            );
        }
    }

    #[test]
    fn last_page_has_no_cursor() {
        let tenant = Tenant::default_tenant();
        assert_eq!(
            List::Keys(&tenant).page::<_, i32, _>(vec![1, 2], 2, |n| *n).next,
            None
        );
    }
}
