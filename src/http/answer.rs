//! Answers that can be large: each holds its share of memory until the client has taken it.

use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::body::{Budget, Held};
use crate::error::Error;
use crate::limits;

/// `value` as JSON.
pub(crate) fn json(budget: &Budget, value: &impl Serialize) -> Result<Response, Error> {
    let text = serde_json::to_vec(value).map_err(Error::internal)?;
    let kind = [(header::CONTENT_TYPE, "application/json")];
    Ok((kind, body(budget, text)?).into_response())
}

/// `content` as it is.
pub(crate) fn body(budget: &Budget, content: Vec<u8>) -> Result<Body, Error> {
    let bytes = content.len() as u64;
    if bytes <= limits::ANSWER_UNCOUNTED_BYTES_MAX {
        return Ok(Body::from(content));
    }
    let held = budget.hold(bytes)?;
    Ok(Body::from(Bytes::from_owner(Counted { content, _held: held })))
}

/// Content that gives its share back when the last piece of it is gone.
struct Counted {
    content: Vec<u8>,
    _held: Held,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.content
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;
    use crate::error::Code;

    #[tokio::test]
    async fn a_large_answer_holds_its_share_until_it_is_taken() {
        let large = || vec![b'x'; 3 << 20];
        let budget = Budget::new(4 * limits::MIB);
        let first = body(&budget, large()).unwrap();
        assert_eq!(body(&budget, large()).unwrap_err().code(), Code::Busy);
        assert!(
            body(&budget, vec![b'x'; 1000]).is_ok(),
            "small ones are not counted"
        );
        let taken = first.collect().await.unwrap().to_bytes();
        assert_eq!(body(&budget, large()).unwrap_err().code(), Code::Busy);
        drop(taken);
        assert!(body(&budget, large()).is_ok());
    }
}
