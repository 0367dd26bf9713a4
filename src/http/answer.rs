//! Answers that can be large: each holds its share of memory until the client has taken it.

use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::budget::{Budget, Held};
use crate::error::Error;
use crate::ids::Tenant;
use crate::limits;

/// `value` as JSON for `tenant`.
pub(crate) fn json(budget: &Budget, tenant: &Tenant, value: &impl Serialize) -> Result<Response, Error> {
    let text = serde_json::to_vec(value).map_err(Error::internal)?;
    let kind = [(header::CONTENT_TYPE, "application/json")];
    Ok((kind, body(budget, tenant, text)?).into_response())
}

/// `content` for `tenant` as it is.
pub(crate) fn body(budget: &Budget, tenant: &Tenant, content: Vec<u8>) -> Result<Body, Error> {
    let bytes = content.len() as u64;
    if bytes <= limits::ANSWER_UNCOUNTED_BYTES_MAX {
        return Ok(Body::from(content));
    }
    let held = budget.hold(tenant, bytes)?;
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
        let budget = Budget::new("answers", 7 * limits::MIB);
        let answer = |bytes: usize| body(&budget, &Tenant::default_tenant(), vec![b'x'; bytes]);
        let first = answer(3 << 20).unwrap();
        assert_eq!(answer(3 << 20).unwrap_err().code(), Code::Busy);
        assert!(answer(1000).is_ok(), "small ones are not counted");
        let taken = first.collect().await.unwrap().to_bytes();
        assert_eq!(answer(3 << 20).unwrap_err().code(), Code::Busy);
        drop(taken);
        assert!(answer(3 << 20).is_ok());
    }
}
