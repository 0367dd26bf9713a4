//! A gRPC client that knows only the schema: messages are JSON in tests.

use std::sync::LazyLock;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, header};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use http_body_util::BodyExt as _;
use percent_encoding::percent_decode_str;
use prost::Message as _;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor, MethodDescriptor, SerializeOptions};
use serde_json::Value;

use crate::http::client::{Call, TestServer};

/// All services of the schemas.
pub(super) static SCHEMA: LazyLock<DescriptorPool> = LazyLock::new(|| {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/proto");
    let schemas = ["grpc/health/v1/health.proto", "skillbox/v1/skillbox.proto"];
    let parsed = protox::compile(schemas, [folder]).unwrap();
    DescriptorPool::from_file_descriptor_set(parsed).unwrap()
});

/// How a call ended.
#[derive(Debug)]
pub(super) struct Outcome {
    /// 0 is OK.
    pub(super) status: i32,
    pub(super) message: String,
    /// The problem in the details.
    pub(super) problem: Value,
    pub(super) messages: Vec<Value>,
    pub(super) headers: HeaderMap,
}

impl Outcome {
    /// The only message of a call that succeeded.
    pub(super) fn only(self) -> Value {
        assert_eq!(
            self.status, 0,
            "{}: {:?} {}",
            self.message, self.headers, self.problem
        );
        assert_eq!(self.messages.len(), 1);
        self.messages.into_iter().next().unwrap()
    }

    /// The code of the problem, or of a call that succeeded `ok`.
    pub(super) fn code(&self) -> &str {
        if self.status == 0 {
            return "ok";
        }
        self.problem["code"].as_str().unwrap_or("no details")
    }
}

/// The method at this path.
pub(super) fn method(path: &str) -> MethodDescriptor {
    let (service, name) = path.trim_start_matches('/').split_once('/').unwrap();
    let service = SCHEMA.get_service_by_name(service).unwrap();
    service.methods().find(|method| method.name() == name).unwrap()
}

/// The path of a method of our own services.
pub(super) fn path(name: &str) -> String {
    if name.starts_with('/') {
        return name.to_owned();
    }
    format!("/skillbox.v1.{name}")
}

pub(super) fn encode(descriptor: MessageDescriptor, message: &Value) -> Vec<u8> {
    DynamicMessage::deserialize(descriptor, message)
        .unwrap_or_else(|error| panic!("{message}: {error}"))
        .encode_to_vec()
}

/// A message with its frame.
pub(super) fn frame(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    [&[0], &length[..], message].concat()
}

/// A call with these messages, of a client without a key.
pub(super) fn call(name: &str, messages: &[Value]) -> Call {
    let input = method(&path(name)).input();
    let frames: Vec<u8> = messages
        .iter()
        .flat_map(|message| frame(&encode(input.clone(), message)))
        .collect();
    raw_call(name, frames)
}

/// A call with these bytes.
pub(super) fn raw_call(name: &str, body: impl Into<Body>) -> Call {
    Call::post(&path(name))
        .header(header::CONTENT_TYPE, "application/grpc")
        .header(header::TE, "trailers")
        .body(body)
}

/// Calls as the administrator.
pub(super) async fn ask(server: &TestServer, name: &str, message: Value) -> Outcome {
    send(server, name, call(name, &[message]).key(&server.admin)).await
}

/// Calls with the identity of `call`.
pub(super) async fn send(server: &TestServer, name: &str, call: Call) -> Outcome {
    let (parts, body) = server.begin_as(call).await.into_parts();
    assert_eq!(parts.status, 200, "gRPC answers with 200");
    assert_eq!(parts.headers[header::CONTENT_TYPE], "application/grpc");
    let read = body.collect().await.unwrap();
    let trailers = read.trailers().cloned().unwrap_or_default();
    outcome(&path(name), parts.headers, &trailers, &read.to_bytes())
}

/// Reads a response.
pub(super) fn outcome(path: &str, headers: HeaderMap, trailers: &HeaderMap, body: &[u8]) -> Outcome {
    let find = |name: &str| {
        let value = trailers.get(name).or_else(|| headers.get(name))?;
        Some(value.to_str().unwrap().to_owned())
    };
    let problem = find("grpc-status-details-bin").map_or(Value::Null, |text| problem(&text));
    Outcome {
        status: find("grpc-status").expect("a status").parse().unwrap(),
        message: percent_decode_str(&find("grpc-message").unwrap_or_default())
            .decode_utf8()
            .unwrap()
            .into_owned(),
        problem,
        messages: messages(method(path).output(), body),
        headers,
    }
}

/// All messages of a body.
pub(super) fn messages(descriptor: MessageDescriptor, mut body: &[u8]) -> Vec<Value> {
    let mut found = Vec::new();
    while let Some((head, rest)) = body.split_first_chunk::<5>() {
        assert_eq!(head[0], 0, "not compressed");
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        let Some((message, rest)) = rest.split_at_checked(length) else {
            break;
        };
        found.push(decode(descriptor.clone(), message));
        body = rest;
    }
    found
}

fn decode(descriptor: MessageDescriptor, bytes: &[u8]) -> Value {
    let message = DynamicMessage::decode(descriptor, bytes).unwrap();
    let options = SerializeOptions::new()
        .use_proto_field_name(true)
        .stringify_64_bit_integers(false)
        .skip_default_fields(false);
    message
        .serialize_with_options(serde_json::value::Serializer, &options)
        .unwrap()
}

/// `google.rpc.Status` with one detail, read by hand: its schema is not ours.
fn problem(text: &str) -> Value {
    let bytes = STANDARD_NO_PAD.decode(text.trim_end_matches('=')).unwrap();
    let mark = b"type.googleapis.com/skillbox.v1.Problem";
    let at = bytes.windows(mark.len()).position(|part| part == mark).unwrap();
    // A tag and the length as a varint follow the name of the type.
    let rest = &bytes[at + mark.len() + 1..];
    let value = &rest[rest.iter().position(|byte| byte & 0x80 == 0).unwrap() + 1..];
    let descriptor = SCHEMA.get_message_by_name("skillbox.v1.Problem").unwrap();
    decode(descriptor, value)
}

/// Bytes of a field, as JSON has them.
pub(super) fn bytes(text: impl AsRef<[u8]>) -> String {
    STANDARD.encode(text)
}

/// The text of a field of bytes.
pub(super) fn text(value: &Value) -> String {
    let bytes = STANDARD.decode(value.as_str().unwrap()).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
