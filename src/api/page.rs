//! Pages of lists.

use serde::{Deserialize, Serialize};

use crate::engine::PageRequest;
use crate::error::Error;
use crate::limits;
use crate::store::{Cursor, Page};

/// A page of a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct List<T> {
    /// Rows of this page.
    pub items: Vec<T>,
    /// Send as `page_token` for the next page; `null` on the last page.
    #[schema(required)]
    pub next_page_token: Option<String>,
}

/// Parses `limit` and `page_token`.
pub fn page_request(limit: Option<&str>, page_token: Option<&str>) -> Result<PageRequest, Error> {
    let rows = match limit {
        None => limits::PAGE_ROWS,
        Some(text) => match text.parse::<i64>() {
            Ok(rows @ 1..) => u32::try_from(rows).unwrap_or(u32::MAX).min(limits::PAGE_ROWS_MAX),
            Ok(..=0) | Err(_) => return Err(Error::invalid("limit: must be a whole number from 1")),
        },
    };
    let after = page_token
        .map(|token| {
            token
                .parse::<Cursor>()
                .map_err(|error| Error::invalid(format!("page_token: {error}")))
        })
        .transpose()?;
    Ok(PageRequest { after, rows })
}

impl<T> List<T> {
    pub(super) fn of<R>(page: &Page<R>) -> Self
    where
        T: for<'a> From<&'a R>,
    {
        Self {
            next_page_token: page.next.as_ref().map(Cursor::to_string),
            ..Self::all(&page.items)
        }
    }

    /// A list of one page.
    pub(super) fn all<'a, R: 'a>(records: impl IntoIterator<Item = &'a R>) -> Self
    where
        T: From<&'a R>,
    {
        Self {
            items: records.into_iter().map(T::from).collect(),
            next_page_token: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Code;

    ///
    #[test]
    fn checks_and_clamps_limit() {
        let rows = |limit| {
            page_request(limit, None)
                .map(|page| page.rows)
                .map_err(|e| e.code())
        };
        assert_eq!(rows(None), Ok(limits::PAGE_ROWS));
        assert_eq!(rows(Some("1")), Ok(1));
        assert_eq!(rows(Some("1000000000")), Ok(limits::PAGE_ROWS_MAX));
        assert_eq!(rows(Some("10000000000")), Ok(limits::PAGE_ROWS_MAX));
        for wrong in [
            "0",
            "-1",
            "",
            "ten",
            "1.5",
            "0x10",
            "99999999999999999999999",
            "9223372036854775808",
            " 1",
        ] {
            assert_eq!(rows(Some(wrong)), Err(Code::Invalid), "{wrong:?}");
        }
    }

    ///
    #[test]
    fn rejects_an_unknown_page_token() {
        for wrong in ["", "x", "' or 1=1 --", &"a".repeat(10_000)] {
            assert!(page_request(None, Some(wrong)).is_err(), "{wrong:?}");
        }
    }
}
