//! Large responses: each holds its share of the memory budget until the client has read it.

use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::budget::{Budget, BudgetShare};
use crate::error::Error;
use crate::ids::Tenant;
use crate::limits;

/// A JSON response.
pub(crate) fn json(budget: &Budget, tenant: &Tenant, value: &impl Serialize) -> Result<Response, Error> {
    let body = body(budget, tenant, text(value)?)?;
    Ok((JSON, body).into_response())
}

/// As [`json`], but never rejected, since the result of a finished execution must be sent.
pub(crate) fn json_always(
    budget: &Budget,
    tenant: &Tenant,
    value: &impl Serialize,
) -> Result<Response, Error> {
    Ok((JSON, body_always(budget, tenant, text(value)?)).into_response())
}

/// As [`body`], but never rejected.
pub(crate) fn body_always(budget: &Budget, tenant: &Tenant, content: Vec<u8>) -> Body {
    let held = budgeted_size(&content).map(|bytes| budget.take(tenant, bytes));
    Body::from(owned(content, held))
}

const JSON: [(header::HeaderName, &str); 1] = [(header::CONTENT_TYPE, "application/json")];

pub(crate) fn text(value: &impl Serialize) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(value).map_err(Error::internal)
}

/// A response body.
pub(crate) fn body(budget: &Budget, tenant: &Tenant, content: Vec<u8>) -> Result<Body, Error> {
    let held = budgeted_size(&content)
        .map(|bytes| budget.hold(tenant, bytes))
        .transpose()?;
    Ok(Body::from(owned(content, held)))
}

/// The size, if it is large enough to be counted.
fn budgeted_size(content: &[u8]) -> Option<u64> {
    let bytes = content.len() as u64;
    (bytes > limits::ANSWER_UNCOUNTED_BYTES_MAX).then_some(bytes)
}

fn owned(content: Vec<u8>, held: Option<BudgetShare>) -> Bytes {
    Bytes::from_owner(BudgetedBytes { content, _held: held })
}

/// The output of `write`. While the budget is exhausted, waits and then writes again.
pub(crate) async fn wait_for_budget(
    budget: &Budget,
    tenant: &Tenant,
    write: impl Fn() -> Result<Vec<u8>, Error>,
) -> Result<Bytes, Error> {
    let content = write()?;
    let Some(bytes) = budgeted_size(&content) else {
        return Ok(owned(content, None));
    };
    if let Ok(held) = budget.hold(tenant, bytes) {
        return Ok(owned(content, Some(held)));
    }
    drop(content);
    let held = wait_for_share(budget, tenant, bytes).await;
    Ok(owned(write()?, Some(held)))
}

/// A share of the budget, as soon as there is one of this size.
pub(crate) async fn wait_for_share(budget: &Budget, tenant: &Tenant, bytes: u64) -> BudgetShare {
    loop {
        if let Ok(held) = budget.hold(tenant, bytes) {
            return held;
        }
        tokio::time::sleep(limits::BUDGET_RETRY_EVERY).await;
    }
}

/// Content that releases its share of the budget when dropped.
struct BudgetedBytes {
    content: Vec<u8>,
    _held: Option<BudgetShare>,
}

impl AsRef<[u8]> for BudgetedBytes {
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
    async fn holds_the_share_of_a_large_response_until_it_is_sent() {
        let budget = Budget::new("answers", 7 * limits::MIB);
        let answer = |bytes: usize| body(&budget, &Tenant::default_tenant(), vec![b'x'; bytes]);
        let first = answer(3 << 20).unwrap();
        assert_eq!(answer(3 << 20).unwrap_err().code(), Code::Busy);
        assert!(answer(1000).is_ok(), "small responses are not counted");
        let taken = first.collect().await.unwrap().to_bytes();
        assert_eq!(answer(3 << 20).unwrap_err().code(), Code::Busy);
        drop(taken);
        assert!(answer(3 << 20).is_ok());
    }

    /// The next one finds it counted, or a client that reads slowly could pile up any number.
    #[tokio::test]
    async fn sends_and_counts_a_response_beyond_the_budget() {
        let budget = Budget::new("answers", limits::MIB);
        let tenant = Tenant::default_tenant();
        let value = "x".repeat(1 << 20);
        let response = json_always(&budget, &tenant, &value).unwrap();
        assert_eq!(budget.hold(&tenant, 1).unwrap_err().code(), Code::Busy);
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(body.len(), value.len() + 2);
        drop(body);
        assert!(budget.hold(&tenant, 1).is_ok());
    }
}
