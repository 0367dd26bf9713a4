//! Limits of connections, requests and responses.

use std::time::Duration;

use super::{KIB, MIB};

/// JSON body without input.
pub const BODY_BYTES_MAX: u64 = 64 * KIB;
/// Body of `POST /v1/executions`: the maximum input, files as base64, and the rest.
pub const EXECUTION_BODY_BYTES_MAX: u64 = 48 * MIB;
/// Time for the headers of a connection's first request.
pub const HEADER_READ_MAX: Duration = Duration::from_secs(10);
/// Maximum pause within a request body.
pub const BODY_IDLE_MAX: Duration = Duration::from_secs(20);
/// Time for a request body.
pub const BODY_READ_MAX: Duration = Duration::from_secs(300);
/// Header lines of a request.
pub const HEADERS_MAX: usize = 100;
/// Bytes of a request's headers.
pub const HEADER_BYTES_MAX: usize = 32 * 1024;
/// Concurrent connections; fewer if the process may open fewer files.
pub const CONNECTIONS_MAX: usize = 4096;
/// Further connections, for health checks and administrators; the next ones wait in the listen backlog.
pub const CONNECTIONS_RESERVED: usize = 32;
/// Time without a request after which such a connection is closed.
pub const RESERVED_IDLE_MAX: Duration = Duration::from_secs(5);
/// Files of the database, the log, the runtime and the listeners.
pub const FILES_OF_SERVER: u64 = 192;
/// Files of one execution with its sandbox.
pub const FILES_PER_EXECUTION: u64 = 24;
/// A connection, and a file that it sends or receives.
pub const FILES_PER_CONNECTION: u64 = 2;
/// Time after which a connection without a running request and without outgoing data is closed.
pub const CONNECTION_IDLE_MAX: Duration = Duration::from_secs(60);
/// Size of the pieces of a response. With [`CONNECTION_IDLE_MAX`] it sets the slowest client: 273 bytes per second.
pub const ANSWER_PIECE_BYTES: usize = 16 * 1024;
/// Interval at which idle connections are detected.
pub const CONNECTION_CHECK_EVERY: Duration = Duration::from_secs(1);
/// Concurrent requests per HTTP/2 connection.
pub const STREAMS_MAX: u32 = 100;
/// Buffered bytes per HTTP/2 response. hyper's default of 400 KiB is too much for thousands of streams.
pub const STREAM_BUFFER_BYTES: usize = 64 * 1024;
/// Pause after `accept` failed without descriptors or memory.
pub const ACCEPT_BACKOFF: Duration = Duration::from_millis(200);
/// All JSON bodies in memory; a further request is answered `busy`. As with each such limit, a tenant alone gets
/// three quarters of it, and next to others at most half.
pub const BODIES_BYTES_MAX: u64 = 512 * MIB;
/// All large JSON responses and logs that clients have not read yet; a further request is answered `busy`.
pub const ANSWERS_BYTES_MAX: u64 = 512 * MIB;
/// Responses up to this size are not counted: [`CONNECTIONS_MAX`] of them fit into memory.
pub const ANSWER_UNCOUNTED_BYTES_MAX: u64 = 64 * KIB;
/// Size of one write of received data to disk.
pub const UPLOAD_WRITE_BYTES: usize = 256 * 1024;
/// Concurrent uploads; a further request is answered `busy`.
pub const UPLOADS_MAX: u64 = 16;
/// Executions that one request deletes.
pub const PRUNED_PER_CALL: u64 = 10_000;
/// Open event and log streams; a further one is answered `busy`.
pub const READERS_MAX: u64 = 2048;
/// Interval of keep-alive comments in event streams; shorter than [`CONNECTION_IDLE_MAX`].
pub const EVENTS_KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Time after which clients reconnect to an interrupted stream.
pub const EVENTS_RETRY: Duration = Duration::from_secs(1);
/// Interval at which a stream retries to send a large result.
pub const BUDGET_RETRY_EVERY: Duration = Duration::from_secs(1);
/// Time for reading the rest of a rejected body, so that the client receives the response.
pub const LINGER_MAX: Duration = Duration::from_secs(10);
/// Maximum bytes of that rest.
pub const LINGER_BYTES_MAX: u64 = 128 * MIB;
/// Larger JSON bodies are parsed on a thread of their own.
pub const INLINE_PARSE_BYTES_MAX: u64 = 256 * KIB;
/// A message of a gRPC stream, such as a chunk of an archive.
pub const GRPC_CHUNK_BYTES_MAX: usize = 4 * 1024 * 1024;
/// A single gRPC message, whose size the route has limited before.
pub const GRPC_DECODED_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Message of a gRPC status. With its details, which repeat it, it fits into the 8 KiB of metadata that clients accept.
pub const GRPC_MESSAGE_BYTES_MAX: usize = 768;
/// Detail of the problem in a gRPC status.
pub const GRPC_DETAIL_BYTES_MAX: usize = 2048;
/// Faults of the problem in a gRPC status.
pub const GRPC_FAULTS_BYTES_MAX: usize = 1024;
/// Longest deadline of a gRPC call; a later one is reduced.
pub const GRPC_DEADLINE_MAX: Duration = Duration::from_secs(24 * 3600);
/// Clients that watch the health of the gRPC API.
pub const HEALTH_WATCHERS_MAX: usize = 64;
/// Interval at which a watched health is checked.
pub const HEALTH_WATCHED_EVERY: Duration = Duration::from_secs(5);
/// Pause that clients are asked for while a supervisor restarts a server whose database failed.
pub const STORAGE_RETRY_AFTER: Duration = Duration::from_secs(5);
/// Time for which a readiness check is cached.
pub const READINESS_AGE_MAX: Duration = Duration::from_secs(2);
/// Size of one read of a download.
pub const DOWNLOAD_CHUNK_BYTES: usize = 64 * 1024;
/// Characters of an error message that quotes a request.
pub const DETAIL_CHARS_MAX: usize = 300;
/// Addresses with a counter of wrong keys.
pub const WRONG_KEY_SOURCES_MAX: usize = 4096;
/// Characters of a client's request id.
pub const REQUEST_ID_CHARS_MAX: usize = 64;
/// Default rows of a page.
pub const PAGE_ROWS: u32 = 50;
/// Maximum rows of a page.
pub const PAGE_ROWS_MAX: u32 = 200;
/// Default lifetime of a signed link.
pub const LINK_LIFE: Duration = Duration::from_secs(3600);
