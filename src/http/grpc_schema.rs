//! The schema of the gRPC API, from which clients are generated.

use axum::http::header;
use axum::response::IntoResponse;

/// gRPC schema
///
/// The Protocol Buffers file of the gRPC API.
#[utoipa::path(get, path = "/proto/skillbox/v1/skillbox.proto", tag = "server", operation_id = "grpc_schema",
    responses((status = OK, description = "The file", body = String, content_type = "text/plain")))]
pub(crate) async fn schema() -> impl IntoResponse {
    (
        [(header::CONTENT_TYPE, "text/plain; charset=utf-8")],
        include_str!("../../proto/skillbox/v1/skillbox.proto"),
    )
}
