//! Lists in pages.

use serde::{Deserialize, Serialize};

use crate::engine::PageRequest;
use crate::error::Error;
use crate::limits;
use crate::store::{Cursor, Page};

/// One page of a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct List<T> {
    /// The rows.
    pub items: Vec<T>,
    /// Send it as `page_token` for the next page; `null` at the end.
    #[schema(required)]
    pub next_page_token: Option<String>,
}

/// The part of a list that `limit` and `page_token` mean.
pub fn page_request(limit: Option<&str>, page_token: Option<&str>) -> Result<PageRequest, Error> {
    let rows = match limit {
        None => limits::PAGE_ROWS,
        Some(text) => match text.parse::<u64>() {
            Ok(rows @ 1..) => u32::try_from(rows).unwrap_or(u32::MAX).min(limits::PAGE_ROWS_MAX),
            Ok(0) | Err(_) => return Err(Error::invalid("limit: must be a whole number from 1")),
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
    fn a_limit_is_checked_and_clamped() {
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
            " 1",
        ] {
            assert_eq!(rows(Some(wrong)), Err(Code::Invalid), "{wrong:?}");
        }
    }

    ///
    #[test]
    fn a_token_that_no_list_gave_out_is_refused() {
        for wrong in ["", "x", "' or 1=1 --", &"a".repeat(10_000)] {
            assert!(page_request(None, Some(wrong)).is_err(), "{wrong:?}");
        }
    }
}
