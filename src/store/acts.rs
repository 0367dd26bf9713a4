//! The one macro that declares what a store can do: each act is declared once here and implemented once per backend.

/// Declares the acts of one concern: a private trait for the backends, and the methods of [`Store`](crate::store::Store)
/// that call the open backend.
///
/// A list takes a cursor and returns a page. Its backend gets the position after which to start and how many rows to read: one more
/// than the page has, which tells whether the list continues. Rows become items by `From`, where the two differ.
macro_rules! acts {
    (
        $(#[$about:meta])*
        trait $concern:ident {
            $($(#[$doc:meta])* async fn $act:ident(&self $(, $arg:ident: $arg_type:ty)*) -> $result:ty;)*
        }
        $(lists {
            $($(#[$list_doc:meta])* async fn $list:ident(&self $(, $term:ident: $term_type:ty)*) -> $item:ty $(as $row:ty)?
                = $which:expr, after $position:ty: $position_of:expr;)*
        })?
    ) => {
        $(#[$about])*
        pub(in crate::store) trait $concern {
            $(async fn $act(&self $(, $arg: $arg_type)*) -> $result;)*
            $($(async fn $list(
                &self $(, $term: $term_type)*, after: Option<$position>, rows: u32,
            ) -> Result<Vec<$crate::store::acts::last_type!($item $(, $row)?)>, $crate::store::Error>;)*)?
        }

        impl $crate::store::Store {
            $($(#[$doc])* pub async fn $act(&self $(, $arg: $arg_type)*) -> $result {
                $crate::store::on_backend!(self, backend => $concern::$act(backend $(, $arg)*).await)
            })*
            $($($(#[$list_doc])* pub async fn $list(
                &self $(, $term: $term_type)*, after: Option<$crate::store::Cursor>, rows: u32,
            ) -> Result<$crate::store::Page<$item>, $crate::store::Error> {
                let (list, rows) = ($which, $crate::store::cursor::page_rows(rows));
                let after = list.position(after)?;
                let found = $crate::store::on_backend!(self, backend => $concern::$list(backend $(, $term)*, after, rows + 1).await)?;
                Ok(list.page(found, rows, $position_of))
            })*)?
        }
    };
}

macro_rules! last_type {
    ($only:ty) => {
        $only
    };
    ($first:ty, $last:ty) => {
        $last
    };
}

pub(super) use {acts, last_type};
