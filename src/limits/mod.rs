//! Every bound of the product in one place, with its unit. What an operator may change lives in `config` and starts from here.

use std::time::Duration;

/// One kibibyte in bytes.
pub const KIB: u64 = 1024;
/// One mebibyte in bytes.
pub const MIB: u64 = 1024 * KIB;

mod packages;
mod queue;
mod webhooks;

pub use packages::*;
pub use queue::*;
pub use webhooks::*;

// ---- one execution -------------------------------------------------------------------------------------------

/// Memory of one sandbox, swap and tmpfs included, unless the skill asks for less.
pub const MEMORY_BYTES: u64 = 512 * MIB;
/// The least memory a skill may ask for: an interpreter, the guest and its scratch fit.
pub const MEMORY_BYTES_MIN: u64 = 48 * MIB;
/// What memory must hold beyond the sum of all tmpfs sizes.
pub const MEMORY_BEYOND_SCRATCH_BYTES: u64 = 16 * MIB;
/// CPU of one sandbox, in thousandths of a core.
pub const CPU_MILLIS: u32 = 1000;
/// The most CPU a skill may ask for, in thousandths of a core: more is a slip of the pen.
pub const CPU_MILLIS_ASKED_MAX: u32 = 1024 * 1000;
/// The most memory or disk a skill may ask for: more is a slip of the pen.
pub const BYTES_ASKED_MAX: u64 = 1024 * 1024 * MIB;
/// The least CPU a skill may ask for, in thousandths of a core.
pub const CPU_MILLIS_MIN: u32 = 50;
/// Processes and threads of one sandbox (promise P5).
pub const PROCESSES_MAX: u32 = 128;
/// Wall clock of one execution unless the skill or the request says otherwise.
pub const TIMEOUT: Duration = Duration::from_secs(120);
/// No execution runs longer, whoever asks (promise P8).
pub const TIMEOUT_MAX: Duration = Duration::from_secs(600);
/// The shortest timeout that can be asked for.
pub const TIMEOUT_MIN: Duration = Duration::from_millis(100);
/// After its deadline a sandbox has this long to say that all is killed; then the engine kills it, well within the
/// second that promise P8 allows.
pub const KILL_GRACE: Duration = Duration::from_millis(600);
/// A sandbox must have answered its first frame within this time of being asked for.
pub const SANDBOX_START_MAX: Duration = Duration::from_secs(30);
/// Reading back output and files may take this long after the program has ended.
pub const COLLECT_MAX: Duration = Duration::from_secs(60);
/// The guest drains the program's pipes for at most this long after everything in the sandbox was killed.
pub const DRAIN_MAX: Duration = Duration::from_secs(2);

/// What a thread reserves for its stack unless told otherwise, and seldom uses.
pub const THREAD_STACK_BYTES: u64 = 8 * MIB;
/// A sandbox that no cgroup bounds is looked at this often.
pub const WATCH_EVERY: Duration = Duration::from_millis(50);
/// Until it has come up, this often.
pub const WATCH_FIRST_AFTER: Duration = Duration::from_millis(5);
/// CPU time that such a sandbox may have in advance: what starts is never stopped before it has begun.
pub const WATCH_BURST: Duration = Duration::from_millis(200);
/// Looks at a sandbox that may fail, one after the other, before it is ended.
pub const WATCH_FAILURES_MAX: u32 = 20;
/// Entries of a sandbox's `/proc` that are looked at: all its processes and as many other names again.
pub const WATCHED_ENTRIES_MAX: usize = 1024;

/// Size of `/workspace`.
pub const WORKSPACE_BYTES: u64 = 256 * MIB;
/// Size of `/sandbox`.
pub const SANDBOX_BYTES: u64 = 64 * MIB;
/// Size of `/tmp`.
pub const TMP_BYTES: u64 = 64 * MIB;
/// Size of `/root`.
pub const ROOT_BYTES: u64 = MIB;
/// Size of `/dev/shm`.
pub const SHM_BYTES: u64 = 64 * MIB;
/// Inodes of each tmpfs.
pub const TMPFS_INODES: u64 = 16_384;
/// Inodes of a tmpfs of so many bytes: one that is larger than a program ever gets has more.
#[must_use]
pub const fn tmpfs_inodes(bytes: u64) -> u64 {
    let of_size = bytes / (16 * KIB);
    if of_size > TMPFS_INODES {
        of_size
    } else {
        TMPFS_INODES
    }
}
/// Bytes of a tmpfs until it is known how many are granted: our own modules fit.
pub const SCRATCH_SEED_BYTES: u64 = 256 * KIB;
/// Its inodes.
pub const SCRATCH_SEED_INODES: u64 = 64;
/// Sandboxes that may wait for a program, unless configured otherwise.
pub const WARM_SLOTS: usize = 8;
/// Bytes that they may take together, unless configured otherwise.
pub const WARM_MEMORY_BYTES: u64 = 256 * MIB;
/// How long one waits in vain, unless configured otherwise: less than anything lives that it holds open.
pub const WARM_IDLE: Duration = Duration::from_secs(300);
/// The most that can be configured.
pub const WARM_SLOTS_MAX: usize = 1024;
/// The longest that one can be left waiting: less than a skill's unpacked files are kept.
pub const WARM_IDLE_MAX: Duration = Duration::from_secs(600);
/// Kinds of them whose demand is remembered.
pub const WARM_KEYS_MAX: usize = 256;
/// What a sandbox takes that waits with nothing started in it.
pub const WARM_SANDBOX_BYTES: u64 = MIB;
/// What a Python interpreter takes that waits (measured: 7 MiB of its own where no other runs).
pub const WARM_PYTHON_BYTES: u64 = 12 * MIB;
/// What a Node interpreter takes that waits (measured: 34 MiB of its own where no other runs, most of it shared where one does).
pub const WARM_NODE_BYTES: u64 = 32 * MIB;
/// Open files of one process in the sandbox.
pub const OPEN_FILES_MAX: u64 = 4096;

/// The input, as JSON text.
pub const INPUT_BYTES_MAX: u64 = 10 * MIB;
/// `SANDBOX_INPUT` and `SKILL_INSTRUCTIONS` hold their text only up to here: one variable above 131,057 bytes makes `execve` fail.
pub const INLINE_TEXT_BYTES_MAX: usize = 64 * 1024;
/// `output.json`.
pub const OUTPUT_BYTES_MAX: u64 = 10 * MIB;
/// Nesting of any JSON that is taken in or handed out.
pub const JSON_DEPTH_MAX: usize = 128;
/// What is kept of stdout, and as much of stderr. The head is kept.
pub const LOG_BYTES_MAX: u64 = MIB;
/// Code that comes with a request.
pub const CODE_BYTES_MAX: usize = 1024 * 1024;
/// Rich results of one execution.
pub const RESULTS_MAX: usize = 100;
/// All rich results of one execution together, as JSON.
pub const RESULTS_BYTES_MAX: u64 = 16 * MIB;
/// Bytes of an exception's name.
pub const EXCEPTION_NAME_BYTES_MAX: usize = 256;
/// Bytes of what an exception says.
pub const EXCEPTION_VALUE_BYTES_MAX: usize = 8 * 1024;
/// Bytes of a traceback.
pub const TRACEBACK_BYTES_MAX: usize = 64 * 1024;
/// What the helpers in a sandbox leave of these when they cut them: as many characters, and so at least as many bytes.
pub const EXCEPTION_NAME_KEPT_BYTES: usize = 200;
/// See [`EXCEPTION_NAME_KEPT_BYTES`].
pub const EXCEPTION_VALUE_KEPT_BYTES: usize = 8000;
/// See [`EXCEPTION_NAME_KEPT_BYTES`].
pub const TRACEBACK_KEPT_BYTES: usize = 60_000;
/// Lines that are kept of what a program logs by the helper `log`. The head is kept.
pub const LOG_LINES_MAX: usize = 1000;
/// Bytes of all those lines. One has at most 4,096: so much is written to a pipe at once or not at all.
pub const LOG_LINES_BYTES_MAX: u64 = 256 * KIB;
/// What a program printed is handed to whoever watches in pieces of at most this many bytes.
pub const EVENT_BYTES_MAX: usize = 16 * 1024;
/// What is printed within this time is handed on together.
pub const EVENTS_APART: Duration = Duration::from_millis(10);
/// What a model is shown of an output at first.
pub const OUTPUT_PREVIEW_BYTES_MAX: usize = 4 * 1024;
/// What a model is shown of the two streams at first.
pub const LOGS_PREVIEW_BYTES_MAX: usize = 2 * 1024;
/// File artifacts of one execution.
pub const FILES_MAX: usize = 1000;
/// All file artifacts of one execution together.
pub const FILES_BYTES_MAX: u64 = 256 * MIB;
/// Directory depth below `out/files` that is collected.
pub const FILES_DEPTH_MAX: usize = 32;
/// Bytes of a collected file's path below `out/files`: as long as Linux lets a program say one at once.
pub const FILE_PATH_BYTES_MAX: usize = 4096;
/// Bytes of all those paths together: a result says each of them three times, and escapes them.
pub const FILE_PATHS_BYTES_MAX: usize = 1024 * 1024;
/// Skipped files that are named in a result; more are only counted.
pub const SKIPPED_NAMED_MAX: usize = 50;
/// Input files of one request.
pub const INPUT_FILES_MAX: usize = 100;
/// Arguments of one request.
pub const ARGS_MAX: usize = 256;
/// Bytes of all arguments of one request: with the environment they must fit into what `execve` takes.
pub const ARGS_BYTES_MAX: usize = 512 * 1024;
/// Bytes of one argument.
pub const ARG_BYTES_MAX: usize = 64 * 1024;

// ---- skills --------------------------------------------------------------------------------------------------

/// A skill's archive as uploaded.
pub const ARCHIVE_BYTES_MAX: u64 = 50 * MIB;
/// A skill's files unpacked.
pub const UNPACKED_BYTES_MAX: u64 = 256 * MIB;
/// Entries of an archive.
pub const ARCHIVE_ENTRIES_MAX: usize = 10_000;
/// Bytes of one path inside an archive (below what a ustar header plus prefix, ext4 and S3 all take).
pub const ARCHIVE_PATH_BYTES_MAX: usize = 240;
/// SKILL.md as a whole.
pub const SKILL_MD_BYTES_MAX: u64 = MIB;
/// The YAML between the `---` lines.
pub const FRONT_MATTER_BYTES_MAX: usize = 64 * 1024;
/// A value of a front matter that is no YAML and is taken as the text that was meant.
pub const REPAIRED_BYTES_MAX: usize = 4096;
/// Values of one front matter that are looked at for that.
pub const REPAIRS_MAX: usize = 64;
/// A file of a skill that is copied for its scripts, into `/workspace` and to where they stand; a larger one is linked.
pub const WORKSPACE_COPY_BYTES_MAX: u64 = 256 * KIB;
/// All such files of one skill together, each in pages of its own.
pub const WORKSPACE_COPIES_BYTES_MAX: u64 = 16 * MIB;
/// Names that a skill's files take in either place, of [`TMPFS_INODES`]; what is beyond is found in `/skills` only.
pub const WORKSPACE_NAMES_MAX: usize = 12_000;
/// Other skills that one execution sees.
pub const MOUNTED_SKILLS_MAX: usize = 16;
/// Secrets that one skill may ask for.
pub const SKILL_SECRETS_MAX: usize = 64;
/// A JSON Schema of a skill, written as JSON.
pub const SCHEMA_BYTES_MAX: usize = 64 * 1024;
/// Nesting of such a schema.
pub const SCHEMA_DEPTH_MAX: usize = 64;
/// `$ref` and its like in such a schema.
pub const SCHEMA_REFERENCES_MAX: usize = 200;
/// Patterns in such a schema.
pub const SCHEMA_PATTERNS_MAX: usize = 100;
/// Memory of one pattern, compiled.
pub const SCHEMA_PATTERN_BYTES: usize = 128 * 1024;
/// Stack for compiling a schema: what is nested calls itself.
pub const SCHEMA_STACK_BYTES: usize = 64 * 1024 * 1024;
/// Stack that checking one value may use: half of what a thread has.
pub const SCHEMA_CHECK_STACK_BYTES: usize = 1024 * 1024;
/// Looks at values, or at 4 bytes of text, that checking one value may take: about half a second.
pub const SCHEMA_STEPS_MAX: usize = 10_000_000;
/// Parts of a schema that one place of a value may be held against.
pub const SCHEMA_WAYS_MAX: usize = 10_000;
/// What one fault costs of them.
pub const SCHEMA_STEPS_OF_FAULT: usize = 500;
/// Faults of one value that are told.
pub const SCHEMA_FAULTS_MAX: usize = 10;
/// Characters of a fault's pointer, and of its message.
pub const FAULT_CHARS_MAX: usize = 200;
/// Nesting of the YAML in a front matter.
pub const YAML_DEPTH_MAX: usize = 32;
/// Parser events of one front matter: bounds the time that a hostile one takes.
pub const YAML_EVENTS_MAX: usize = 8000;
/// Parser events that the aliases of one front matter may repeat.
pub const YAML_REPLAYED_MAX: usize = 2000;
/// Aliases of one front matter.
pub const YAML_ALIASES_MAX: usize = 64;
/// Characters of somebody else's text that one of our error messages quotes.
pub const QUOTED_CHARS_MAX: usize = 100;
/// Scripts of a skill that are described.
pub const ACTIONS_MAX: usize = 200;
/// Bytes of a script that are read to describe it.
pub const ACTION_HEAD_BYTES: u64 = 16 * KIB;
/// Characters of what a script says it does.
pub const ACTION_SUMMARY_CHARS_MAX: usize = 300;
/// Characters of it that the definition of a tool holds.
pub const TOOL_SUMMARY_CHARS_MAX: usize = 120;
/// Bytes of all that one definition of a tool says about scripts.
pub const TOOL_SCRIPTS_BYTES_MAX: usize = 4096;
/// Characters of how a script says it is called.
pub const ACTION_USAGE_CHARS_MAX: usize = 1000;
/// Packages that a script may name for itself; one with more says nothing.
pub const ACTION_DEPENDENCIES_MAX: usize = 100;
/// Warnings that are kept of one SKILL.md.
pub const WARNINGS_MAX: usize = 50;
/// Bytes of an archive's central directory: 10,000 entries with long names and generous extra fields.
pub const ARCHIVE_DIRECTORY_BYTES_MAX: u64 = 8 * MIB;
/// Characters of a skill's name.
pub const SKILL_NAME_CHARS_MAX: usize = 64;
/// Characters of a secret's name.
pub const SECRET_NAME_CHARS_MAX: usize = 64;
/// Characters of a skill's description (the Agent Skills specification's own limit).
pub const DESCRIPTION_CHARS_MAX: usize = 1024;
/// Characters of a skill's `compatibility` (the Agent Skills specification's own limit).
pub const COMPATIBILITY_CHARS_MAX: usize = 500;
/// Characters of an image's name.
pub const IMAGE_CHARS_MAX: usize = 255;
/// Characters of a version.
pub const VERSION_CHARS_MAX: usize = 64;

/// Characters of an API key's name.
pub const KEY_NAME_CHARS_MAX: usize = 100;

// ---- secrets -------------------------------------------------------------------------------------------------

/// The value of a secret: with its name it must fit into one variable, which `execve` takes up to 131,072 bytes.
pub const SECRET_BYTES_MAX: usize = 64 * 1024;
/// Body of `PUT /v1/secrets/{name}`: a value whose every byte is escaped.
pub const SECRET_BODY_BYTES_MAX: u64 = 6 * 64 * KIB + KIB;
/// Secrets of one tenant.
pub const SECRETS_MAX: u32 = 1000;
/// Values of one execution together: with arguments and the other variables they must fit into what `execve` takes.
pub const SECRETS_GRANTED_BYTES_MAX: usize = 512 * 1024;
/// A shorter secret is not masked: text is full of such bytes.
pub const MASKED_BYTES_MIN: usize = 4;

// ---- blobs ---------------------------------------------------------------------------------------------------

/// One blob.
pub const BLOB_BYTES_MAX: u64 = 64 * MIB;
/// Blobs of one request.
pub const INPUT_BLOBS_MAX: usize = 100;
/// Blobs of one request together: they lie in memory.
pub const INPUT_BLOBS_BYTES_MAX: u64 = 64 * MIB;
/// The least size of `/blobs`: a tmpfs of size 0 has no bound.
pub const BLOBS_BYTES_MIN: u64 = 4096;
/// Blobs that one execution leaves.
pub const OUTPUT_BLOBS_MAX: usize = 100;
/// Blobs that one execution leaves together.
pub const OUTPUT_BLOBS_BYTES_MAX: u64 = 64 * MIB;
/// Blobs of one tenant.
pub const BLOBS_MAX: u64 = 100_000;
/// All blobs of one tenant together, unless the operator says otherwise.
pub const BLOBS_QUOTA_BYTES: u64 = 1024 * MIB;
/// Life of a blob unless the operator or the caller says otherwise.
pub const BLOB_LIFE: Duration = Duration::from_secs(7 * 24 * 3600);
/// Longest life that can be asked for.
pub const BLOB_LIFE_MAX: Duration = Duration::from_secs(365 * 24 * 3600);
/// Characters of a blob's media type.
pub const MEDIA_TYPE_CHARS_MAX: usize = 255;
/// Expired blobs that are removed before the database is asked for more.
pub const BLOBS_PRUNED_AT_ONCE: u32 = 1000;
/// Bytes that no blob has after this time never get one: between the two lies one write to the database.
pub const BLOB_BYTES_UNNAMED_MAX: Duration = Duration::from_secs(24 * 3600);
/// How often a process looks for such bytes.
pub const BLOBS_SWEPT_EVERY: Duration = Duration::from_secs(3600);
/// Of one tenant's objects those that are looked at; if there are more, many of them are no blob's.
pub const BLOB_OBJECTS_SEEN_MAX: usize = 200_000;

// ---- doors ---------------------------------------------------------------------------------------------------

/// Body of a JSON request that carries no input.
pub const BODY_BYTES_MAX: u64 = 64 * KIB;
/// Body of `POST /v1/executions`: the input at its cap, files as base64, and room for the rest.
pub const EXECUTION_BODY_BYTES_MAX: u64 = 48 * MIB;
/// Time to send all headers of a connection's first request.
pub const HEADER_READ_MAX: Duration = Duration::from_secs(10);
/// Longest pause between two pieces of a request body.
pub const BODY_IDLE_MAX: Duration = Duration::from_secs(20);
/// Time for one whole request body.
pub const BODY_READ_MAX: Duration = Duration::from_secs(300);
/// Header lines of one request.
pub const HEADERS_MAX: usize = 100;
/// Bytes of all headers of one request.
pub const HEADER_BYTES_MAX: usize = 32 * 1024;
/// Connections served at once; more wait in the listen backlog.
pub const CONNECTIONS_MAX: usize = 4096;
/// A connection without a request in work and without a piece of an answer going out is closed after this long.
pub const CONNECTION_IDLE_MAX: Duration = Duration::from_secs(60);
/// An answer goes out in pieces of this size. With [`CONNECTION_IDLE_MAX`] it is the slowest that a client may read: 273
/// bytes in a second.
pub const ANSWER_PIECE_BYTES: usize = 16 * 1024;
/// Pause between two looks at whether a connection is idle.
pub const CONNECTION_CHECK_EVERY: Duration = Duration::from_secs(1);
/// Requests at once on one HTTP/2 connection.
pub const STREAMS_MAX: u32 = 100;
/// Of an answer over HTTP/2 so much waits for a client that does not read; hyper's own 400 KiB are much for thousands of streams.
pub const STREAM_BUFFER_BYTES: usize = 64 * 1024;
/// Pause after `accept` failed for want of descriptors or memory.
pub const ACCEPT_BACKOFF: Duration = Duration::from_millis(200);
/// All JSON bodies that are held at once; a request beyond is answered `busy`. As of each such bound, a tenant alone gets
/// three quarters of it, and beside others at most half.
pub const BODIES_BYTES_MAX: u64 = 512 * MIB;
/// All large JSON answers and logs that clients have not taken yet; a request for one more is answered `busy`.
pub const ANSWERS_BYTES_MAX: u64 = 512 * MIB;
/// An answer up to here is not counted: [`CONNECTIONS_MAX`] of them are few enough.
pub const ANSWER_UNCOUNTED_BYTES_MAX: u64 = 64 * KIB;
/// Bytes of what is received that are written to disk at once.
pub const UPLOAD_WRITE_BYTES: usize = 256 * 1024;
/// Archives that are received at once; a request beyond is answered `busy`.
pub const UPLOADS_MAX: u64 = 16;
/// Streams of events or logs that are open at once; one more is answered `busy`.
pub const READERS_MAX: u64 = 2048;
/// A stream of events that has nothing to tell says so this often; well within [`CONNECTION_IDLE_MAX`].
pub const EVENTS_KEEP_ALIVE: Duration = Duration::from_secs(15);
/// What clients are told to wait before they come back to a stream that broke off.
pub const EVENTS_RETRY: Duration = Duration::from_secs(1);
/// Pause between two looks at whether there is room for a large result in a stream.
pub const ROOM_LOOK_EVERY: Duration = Duration::from_secs(1);
/// The rest of a body that was refused early is still read for this long, so that the client gets to the answer.
pub const LINGER_MAX: Duration = Duration::from_secs(10);
/// At most this much of it.
pub const LINGER_BYTES_MAX: u64 = 128 * MIB;
/// A JSON body up to here is parsed where it was read; a larger one on a thread of its own.
pub const INLINE_PARSE_BYTES_MAX: u64 = 256 * KIB;
/// One look at the server's health serves everybody who asks for this long.
pub const READINESS_AGE_MAX: Duration = Duration::from_secs(2);
/// Bytes of a file or an archive that are read at once on their way out.
pub const DOWNLOAD_CHUNK_BYTES: usize = 64 * 1024;
/// Characters of an error message that quotes a request.
pub const DETAIL_CHARS_MAX: usize = 300;
/// Addresses whose wrong keys are counted apart.
pub const WRONG_KEY_SOURCES_MAX: usize = 4096;
/// Characters of a request id that is taken over from the client.
pub const REQUEST_ID_CHARS_MAX: usize = 64;
/// Rows of one page unless the caller asks for fewer or more.
pub const PAGE_ROWS: u32 = 50;
/// Rows of one page at most.
pub const PAGE_ROWS_MAX: u32 = 200;
/// Life of a signed link unless the operator says otherwise.
pub const LINK_LIFE: Duration = Duration::from_secs(3600);

// ---- the server ----------------------------------------------------------------------------------------------

/// The end of an execution is tried to be recorded for this long while others hold the database.
pub const RECORD_MAX: Duration = Duration::from_secs(60);
/// Pause between two attempts at it; each has waited for [`STORE_LOCK_MAX`].
pub const RECORD_AGAIN_AFTER: Duration = Duration::from_millis(100);
/// Pause before a queued execution that could not begin, or be ended, is looked at again; the former doubles it each time.
pub const QUEUED_AGAIN_AFTER: Duration = Duration::from_secs(1);
/// So often one waits for its turn again: half a minute, in which an engine has started anew.
pub const QUEUED_AGAIN_MAX: u32 = 5;
/// Running executions get this long at shutdown; the rest become `interrupted`.
pub const DRAIN_SERVER_MAX: Duration = Duration::from_secs(30);
/// Pause between two rounds of upkeep: reconciler, retention.
pub const UPKEEP_EVERY: Duration = Duration::from_secs(60);
/// Pause between two looks whether the server rests.
pub const IDLE_LOOK_EVERY: Duration = Duration::from_secs(10);
/// CPU time between two looks, its sandboxes' included, up to which it does.
pub const IDLE_CPU_MAX: Duration = Duration::from_millis(100);
/// A process registers in no time; a file that says so for longer was left by a dead one.
pub const REGISTERING_MAX: Duration = Duration::from_secs(3600);
/// Executions beyond retention that are forgotten before the database is asked for more.
pub const FORGOTTEN_AT_ONCE: u32 = 1000;
/// Archives unpacked at once: each may write [`UNPACKED_BYTES_MAX`].
pub const UNPACKING_MAX: usize = 4;
/// No execution lasts as long, its waiting included: an unpacked skill that was used within this time may still be read.
pub const SKILL_USED_MAX: Duration = Duration::from_secs(3600);
/// An unpacked skill that was not used for this long is removed; its archive stays.
pub const SKILL_IDLE_MAX: Duration = Duration::from_secs(24 * 3600);
/// A container that was created and never started is removed after this long.
pub const CREATED_NEVER_STARTED_MAX: Duration = Duration::from_secs(15 * 60);
/// A keeper container that was not used for this long is removed.
pub const VOLUME_CONTAINER_IDLE_MAX: Duration = Duration::from_secs(24 * 3600);
/// Keeper containers on one engine; of more, those go that were not used for longest.
pub const VOLUME_CONTAINERS_MAX: usize = 256;
/// The clocks of servers that share an engine may differ by this much: no sandbox is taken for expired before.
pub const CLOCKS_APART_MAX: Duration = Duration::from_secs(300);
/// One call to the container engine that is not a wait, an attach or a pull.
pub const ENGINE_CALL_MAX: Duration = Duration::from_secs(20);
/// How long `auto` waits for an engine's next sign of life before it takes the native sandbox instead.
pub const ENGINE_SILENCE_MAX: Duration = Duration::from_secs(10);
/// How soon `auto` looks again for an engine that was missing, at the earliest.
pub const ENGINE_LOOK_AGAIN: Duration = Duration::from_secs(10);
/// How long it stands what an image of the engine is: a tag may be moved to another.
pub const IMAGE_LOOK_AGAIN: Duration = Duration::from_secs(5);
/// How long a failed pull stands for those that would follow; the image itself is looked for each time.
pub const PULL_AGAIN: Duration = Duration::from_secs(60);
/// Signs of progress that wait for whoever watches; more are dropped.
pub const PROGRESS_QUEUE: usize = 16;
/// One image pull.
pub const PULL_MAX: Duration = Duration::from_secs(15 * 60);
/// Wrong API keys from one address in a minute before it is answered 429.
pub const WRONG_KEYS_PER_MINUTE_MAX: u32 = 60;

// ---- store and blob ------------------------------------------------------------------------------------------

/// Read-only connections to the database that calls queue for; one more reads at once or not at all, one more writes.
pub const STORE_READERS: usize = 2;
/// Skills whose manifests are kept in memory as they were read.
pub const STORE_KNOWN_MAX: usize = 64;
/// Bytes of instructions of such a skill.
pub const STORE_KNOWN_INSTRUCTIONS_BYTES_MAX: usize = 32 * 1024;
/// Prepared statements each connection keeps.
pub const STORE_STATEMENTS: usize = 64;
/// Longest wait for a lock that another process holds on the database.
pub const STORE_LOCK_MAX: Duration = Duration::from_secs(5);
/// Longest wait for a connection of this process.
pub const STORE_QUEUE_MAX: Duration = Duration::from_secs(10);
/// Longest wait at start for another process that opens or migrates the same database.
pub const STORE_OPEN_MAX: Duration = Duration::from_secs(30);
/// Looking for damage at start ends after this long; a database too big for it is checked in part.
pub const STORE_CHECK_MAX: Duration = Duration::from_secs(1);
/// The write-ahead log is carried over into the database when it has this many pages of 4 KiB. With SQLite's own 1,000
/// the slowest commit in a hundred took 7 ms instead of 0.5.
pub const STORE_LOG_PAGES: u32 = 4000;
/// The write-ahead log is cut back to this many bytes after a checkpoint.
pub const STORE_LOG_BYTES: u64 = 64 * MIB;
/// Characters of a page cursor.
pub const CURSOR_CHARS_MAX: usize = 256;
/// Bytes of the secret that signs links, at least.
pub const LINK_SECRET_BYTES_MIN: usize = 32;
/// Different byte values in that secret, at least: "changemechangeme…" is long but no secret.
pub const LINK_SECRET_DISTINCT_MIN: usize = 8;

// ---- configuration and command line --------------------------------------------------------------------------

/// A configuration file.
pub const CONFIG_BYTES_MAX: u64 = 64 * KIB;
/// Executions at once that can be configured.
pub const CONCURRENCY_MAX: usize = 1024;
/// Ended executions and their files are kept this long unless the operator says otherwise.
pub const RETENTION_AGE: Duration = Duration::from_secs(30 * 24 * 3600);
/// Ended executions kept for each tenant unless the operator says otherwise.
pub const RETENTION_PER_TENANT: u64 = 10_000;
/// Longest life of a signed link that can be configured.
pub const LINK_LIFE_MAX: Duration = Duration::from_secs(7 * 24 * 3600);
/// A key file in the data folder.
pub const KEY_FILE_BYTES_MAX: u64 = 4 * KIB;
/// Input files of one command together; as base64 they must fit into [`EXECUTION_BODY_BYTES_MAX`].
pub const INPUT_FILES_BYTES_MAX: u64 = 24 * MIB;
/// One JSON answer of a server that the command line talks to: output and logs at their caps, escaped.
pub const ANSWER_BYTES_MAX: u64 = 64 * MIB;
/// Rows that the command line lists at most.
pub const ROWS_LISTED_MAX: usize = 10_000;
/// Time to connect to a server.
pub const CLIENT_CONNECT_MAX: Duration = Duration::from_secs(10);
/// Time for a server's answer.
pub const CLIENT_ANSWER_MAX: Duration = Duration::from_secs(120);
/// Time for the answer to a run: waiting for a place, a pull, the program and its results.
pub const CLIENT_RUN_MAX: Duration = Duration::from_secs(45 * 60);
/// Times that the command line asks again for a stream that broke off, one after the other.
pub const CLIENT_AGAIN_MAX: u32 = 30;
/// Time for one download.
pub const CLIENT_DOWNLOAD_MAX: Duration = Duration::from_secs(60 * 60);
