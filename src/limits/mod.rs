//! All limits, with their units. Operators change their defaults in `config`.

use std::time::Duration;

/// One kibibyte in bytes.
pub const KIB: u64 = 1024;
/// One mebibyte in bytes.
pub const MIB: u64 = 1024 * KIB;

mod authoring;
mod mcp;
mod packages;
mod proofs;
mod queue;
mod sessions;
mod stats;
mod transports;
mod webhooks;

pub use authoring::*;
pub use mcp::*;
pub use packages::*;
pub use proofs::*;
pub use queue::*;
pub use sessions::*;
pub use stats::*;
pub use transports::*;
pub use webhooks::*;

// ---- one execution -------------------------------------------------------------------------------------------

/// Default memory of a sandbox, including swap and tmpfs.
pub const MEMORY_BYTES: u64 = 512 * MIB;
/// Minimum memory: an interpreter, the guest and its scratch space.
pub const MEMORY_BYTES_MIN: u64 = 48 * MIB;
/// Memory in addition to the sum of all tmpfs sizes.
pub const MEMORY_BEYOND_SCRATCH_BYTES: u64 = 16 * MIB;
/// CPU of a sandbox, in thousandths of a core.
pub const CPU_MILLIS: u32 = 1000;
/// Maximum CPU that a skill can request, in thousandths of a core. A larger value is a mistake.
pub const CPU_MILLIS_ASKED_MAX: u32 = 1024 * 1000;
/// Maximum memory or disk that a skill can request. A larger value is a mistake.
pub const BYTES_ASKED_MAX: u64 = 1024 * 1024 * MIB;
/// Minimum CPU that a skill can request, in thousandths of a core.
pub const CPU_MILLIS_MIN: u32 = 50;
/// Processes and threads of one sandbox (promise P5).
pub const PROCESSES_MAX: u32 = 128;
/// Default wall clock limit of an execution.
pub const TIMEOUT: Duration = Duration::from_secs(120);
/// Maximum wall clock limit (promise P8).
pub const TIMEOUT_MAX: Duration = Duration::from_secs(600);
/// Minimum timeout of a request.
pub const TIMEOUT_MIN: Duration = Duration::from_millis(100);
/// After its deadline a sandbox has this long to report that all processes are killed. Then the engine kills it,
/// within the second of promise P8.
pub const KILL_GRACE: Duration = Duration::from_millis(600);
/// Time for a sandbox to send its first frame.
pub const SANDBOX_START_MAX: Duration = Duration::from_secs(30);
/// Time to receive output and files after the program has ended.
pub const COLLECT_MAX: Duration = Duration::from_secs(60);
/// Time to drain the program's pipes after all its processes were killed.
pub const DRAIN_MAX: Duration = Duration::from_secs(2);

/// Default stack reservation of a thread.
pub const THREAD_STACK_BYTES: u64 = 8 * MIB;
/// Interval of the watchdog of a sandbox without cgroup.
pub const WATCH_EVERY: Duration = Duration::from_millis(50);
/// First interval of the watchdog.
pub const WATCH_FIRST_AFTER: Duration = Duration::from_millis(5);
/// CPU time that such a sandbox may use in advance, so that starting programs are not stopped.
pub const WATCH_BURST: Duration = Duration::from_millis(200);
/// Consecutive failures of the watchdog before it ends a sandbox.
pub const WATCH_FAILURES_MAX: u32 = 20;
/// Entries of `/proc` that the watchdog reads: all processes of a sandbox and as many other entries.
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
/// Inodes of a tmpfs of this size. A tmpfs larger than a program's maximum has more.
#[must_use]
pub const fn tmpfs_inodes(bytes: u64) -> u64 {
    let of_size = bytes / (16 * KIB);
    if of_size > TMPFS_INODES {
        of_size
    } else {
        TMPFS_INODES
    }
}
/// Initial size of a tmpfs, before the limits are known. Our own modules fit.
pub const SCRATCH_SEED_BYTES: u64 = 256 * KIB;
/// Inodes of such a tmpfs.
pub const SCRATCH_SEED_INODES: u64 = 64;
pub const WARM_SLOTS_MAX: usize = 1024;
/// Maximum idle time of a warm sandbox; less than the lifetime of a skill's unpacked files.
pub const WARM_IDLE_MAX: Duration = Duration::from_secs(600);
/// Warm keys whose demand is recorded.
pub const WARM_KEYS_MAX: usize = 256;
/// Memory of a warm sandbox without an interpreter.
pub const WARM_SANDBOX_BYTES: u64 = MIB;
/// Memory of a pre-started Python interpreter (measured: 7 MiB of its own if no other runs).
pub const WARM_PYTHON_BYTES: u64 = 12 * MIB;
/// Memory of a pre-started Node interpreter (measured: 34 MiB of its own if no other runs, most of it shared
/// otherwise).
pub const WARM_NODE_BYTES: u64 = 32 * MIB;
/// Open files per process in a sandbox.
pub const OPEN_FILES_MAX: u64 = 4096;
/// Queued signals and POSIX timers in a native sandbox. The kernel counts them for each user.
pub const PENDING_SIGNALS_MAX: u64 = 1024;
/// What the kernel counts for each user, by file below `/proc/sys/user`, in a native sandbox.
pub const USER_LIMITS: &[(&str, u64)] = &[("max_inotify_instances", 16), ("max_inotify_watches", 8192)];

/// Input, as JSON text.
pub const INPUT_BYTES_MAX: u64 = 10 * MIB;
/// Maximum size of `SANDBOX_INPUT` and `SKILL_INSTRUCTIONS`: a variable over 131,057 bytes makes `execve` fail.
pub const INLINE_TEXT_BYTES_MAX: usize = 64 * 1024;
/// `output.json`.
pub const OUTPUT_BYTES_MAX: u64 = 10 * MIB;
/// Nesting of JSON.
pub const JSON_DEPTH_MAX: usize = 128;
/// Stored bytes of stdout, and as many of stderr, from the start.
pub const LOG_BYTES_MAX: u64 = MIB;
/// Code of a request.
pub const CODE_BYTES_MAX: usize = 1024 * 1024;
/// Rich results per execution.
pub const RESULTS_MAX: usize = 100;
/// All rich results of an execution, as JSON.
pub const RESULTS_BYTES_MAX: u64 = 16 * MIB;
/// Bytes of an exception's name.
pub const EXCEPTION_NAME_BYTES_MAX: usize = 256;
/// Bytes of an exception's message.
pub const EXCEPTION_VALUE_BYTES_MAX: usize = 8 * 1024;
/// Bytes of a traceback.
pub const TRACEBACK_BYTES_MAX: usize = 64 * 1024;
/// Characters, and thus at least bytes, that the helpers in a sandbox keep when they truncate these.
pub const EXCEPTION_NAME_KEPT_BYTES: usize = 200;
/// See [`EXCEPTION_NAME_KEPT_BYTES`].
pub const EXCEPTION_VALUE_KEPT_BYTES: usize = 8000;
/// See [`EXCEPTION_NAME_KEPT_BYTES`].
pub const TRACEBACK_KEPT_BYTES: usize = 60_000;
/// Stored lines of the helper `log`, from the start.
pub const LOG_LINES_MAX: usize = 1000;
/// Bytes of all these lines. A line has at most 4,096 bytes, which a pipe accepts atomically.
pub const LOG_LINES_BYTES_MAX: u64 = 256 * KIB;
/// Parts of output and log whose time and order are stored.
pub const ARRIVALS_MAX: usize = 4096;
/// Maximum size of an event with program output.
pub const EVENT_BYTES_MAX: usize = 16 * 1024;
/// Output within this time is sent as one event.
pub const EVENTS_APART: Duration = Duration::from_millis(10);
/// Preview of an output for a model.
pub const OUTPUT_PREVIEW_BYTES_MAX: usize = 4 * 1024;
/// Preview of the streams for a model.
pub const LOGS_PREVIEW_BYTES_MAX: usize = 2 * 1024;
/// File artifacts per execution.
pub const FILES_MAX: usize = 1000;
/// All file artifacts of an execution.
pub const FILES_BYTES_MAX: u64 = 256 * MIB;
/// Depth below `out/files`.
pub const FILES_DEPTH_MAX: usize = 32;
/// Path of a collected file below `out/files`: Linux's maximum for one call.
pub const FILE_PATH_BYTES_MAX: usize = 4096;
/// All these paths. A result contains each of them three times, escaped.
pub const FILE_PATHS_BYTES_MAX: usize = 1024 * 1024;
/// Skipped files that a result names; further ones are counted.
pub const SKIPPED_NAMED_MAX: usize = 50;
/// Input files per request.
pub const INPUT_FILES_MAX: usize = 100;
/// Default and maximum size up to which a request is kept with its execution.
pub const KEEP_REQUEST_BYTES: u64 = 256 * KIB;
/// See [`KEEP_REQUEST_BYTES`].
pub const KEEP_REQUEST_BYTES_MAX: u64 = 4 * MIB;
/// A kept request as JSON, in which each byte takes at most six.
pub const KEPT_REQUEST_JSON_BYTES_MAX: u64 = 8 * KEEP_REQUEST_BYTES_MAX;
/// A kept request up to this size is in the row of its execution, which lists read; with it a row still fits into a page.
pub const REQUEST_IN_ROW_BYTES_MAX: usize = 1024;
/// Smaller requests are stored uncompressed: compression would take longer than their insert.
pub const REQUEST_COMPRESSED_BYTES_MIN: usize = 1024;
/// Arguments per request.
pub const ARGS_MAX: usize = 256;
/// All arguments of a request: with the environment they must fit into `execve`.
pub const ARGS_BYTES_MAX: usize = 512 * 1024;
/// Bytes of one argument.
pub const ARG_BYTES_MAX: usize = 64 * 1024;

// ---- proofs --------------------------------------------------------------------------------------------------

// ---- skills --------------------------------------------------------------------------------------------------

/// Bytes of a skill's file that tell whether it is text.
pub const TEXT_SNIFFED_BYTES: u64 = 64 * KIB;
/// Findings of the lint in one answer.
pub const LINT_FINDINGS_MAX: usize = 1000;
/// Files of a comparison of two versions.
pub const DIFF_FILES_MAX: usize = 2000;
/// Each file whose lines are compared.
pub const DIFF_FILE_BYTES_MAX: u64 = 512 * KIB;
/// Time to compare all lines of two versions; later hunks are larger than necessary.
pub const DIFF_TIME_MAX: Duration = Duration::from_secs(2);
/// Lines of all hunks of a comparison.
pub const DIFF_LINES_MAX: usize = 20_000;
/// Bytes of all hunks of a comparison.
pub const DIFF_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Uploaded archive of a skill.
pub const ARCHIVE_BYTES_MAX: u64 = 50 * MIB;
/// Unpacked files of a skill.
pub const UNPACKED_BYTES_MAX: u64 = 256 * MIB;
/// Entries of an archive.
pub const ARCHIVE_ENTRIES_MAX: usize = 10_000;
/// Path in an archive, below the maxima of ustar, ext4 and S3.
pub const ARCHIVE_PATH_BYTES_MAX: usize = 240;
/// SKILL.md.
pub const SKILL_MD_BYTES_MAX: u64 = MIB;
/// YAML between the `---` lines.
pub const FRONT_MATTER_BYTES_MAX: usize = 64 * 1024;
/// Value of a front matter that is invalid YAML and is read as text.
pub const REPAIRED_BYTES_MAX: usize = 4096;
/// Values of one front matter that are considered for that.
pub const REPAIRS_MAX: usize = 64;
/// Maximum size of a skill's file that is copied for its scripts; a larger file is linked.
pub const WORKSPACE_COPY_BYTES_MAX: u64 = 256 * KIB;
/// All such files of a skill, each in pages of its own.
pub const WORKSPACE_COPIES_BYTES_MAX: u64 = 16 * MIB;
/// Names of a skill's files per tmpfs, of [`TMPFS_INODES`]; further files exist in `/skills` only.
pub const WORKSPACE_NAMES_MAX: usize = 12_000;
/// Mounted skills per execution.
pub const MOUNTED_SKILLS_MAX: usize = 16;
/// Secrets per skill.
pub const SKILL_SECRETS_MAX: usize = 64;
/// JSON Schema of a skill, as JSON.
pub const SCHEMA_BYTES_MAX: usize = 64 * 1024;
/// Nesting of a schema.
pub const SCHEMA_DEPTH_MAX: usize = 64;
/// `$ref` and similar keywords of a schema.
pub const SCHEMA_REFERENCES_MAX: usize = 200;
/// Patterns of a schema.
pub const SCHEMA_PATTERNS_MAX: usize = 100;
/// Memory of a compiled pattern.
pub const SCHEMA_PATTERN_BYTES: usize = 128 * 1024;
/// Stack for compiling a schema, which is recursive.
pub const SCHEMA_STACK_BYTES: usize = 64 * 1024 * 1024;
/// Stack for validating a value: half of a thread's stack.
pub const SCHEMA_CHECK_STACK_BYTES: usize = 1024 * 1024;
/// Steps, or units of 4 bytes of text, for validating a value: about half a second.
pub const SCHEMA_STEPS_MAX: usize = 10_000_000;
/// Subschemas that one place of a value may be validated against.
pub const SCHEMA_WAYS_MAX: usize = 10_000;
/// Steps that one fault costs.
pub const SCHEMA_STEPS_OF_FAULT: usize = 500;
/// Reported faults per value.
pub const SCHEMA_FAULTS_MAX: usize = 10;
/// Characters of a fault's pointer, and of its message.
pub const FAULT_CHARS_MAX: usize = 200;
/// Nesting of the YAML in a front matter.
pub const YAML_DEPTH_MAX: usize = 32;
/// Parser events of a front matter, as a limit on time.
pub const YAML_EVENTS_MAX: usize = 8000;
/// Parser events that the aliases of a front matter may repeat.
pub const YAML_REPLAYED_MAX: usize = 2000;
/// Aliases of a front matter.
pub const YAML_ALIASES_MAX: usize = 64;
/// Characters of foreign text that an error message quotes.
pub const QUOTED_CHARS_MAX: usize = 100;
/// Described scripts per skill.
pub const ACTIONS_MAX: usize = 200;
/// Bytes of a script that are read to describe it.
pub const ACTION_HEAD_BYTES: u64 = 16 * KIB;
/// Characters of a script's description.
pub const ACTION_SUMMARY_CHARS_MAX: usize = 300;
/// Characters of that description in a tool definition.
pub const TOOL_SUMMARY_CHARS_MAX: usize = 120;
/// Bytes about scripts in a tool definition.
pub const TOOL_SCRIPTS_BYTES_MAX: usize = 4096;
/// Characters of a script's usage line.
pub const ACTION_USAGE_CHARS_MAX: usize = 1000;
/// Packages in a script's header; a header with more is ignored.
pub const ACTION_DEPENDENCIES_MAX: usize = 100;
/// Warnings per SKILL.md.
pub const WARNINGS_MAX: usize = 50;
/// Central directory of an archive: 10,000 entries with long names and large extra fields.
pub const ARCHIVE_DIRECTORY_BYTES_MAX: u64 = 8 * MIB;
/// Folders of the host that an operator adds to native sandboxes: each is a mount of every sandbox.
pub const HOST_FOLDERS_MAX: usize = 32;
/// Characters of a skill's name.
pub const SKILL_NAME_CHARS_MAX: usize = 64;
/// Characters of a secret's name.
pub const SECRET_NAME_CHARS_MAX: usize = 64;
/// Characters of a skill's description (limit of the Agent Skills specification).
pub const DESCRIPTION_CHARS_MAX: usize = 1024;
/// Characters of a skill's `compatibility` (limit of the Agent Skills specification).
pub const COMPATIBILITY_CHARS_MAX: usize = 500;
/// Characters of an image's name.
pub const IMAGE_CHARS_MAX: usize = 255;
/// Characters of a version.
pub const VERSION_CHARS_MAX: usize = 64;

/// Characters of an API key's name.
pub const KEY_NAME_CHARS_MAX: usize = 100;

// ---- secrets -------------------------------------------------------------------------------------------------

/// Value of a secret: with its name it must fit into a variable, for which `execve` allows 131,072 bytes.
pub const SECRET_BYTES_MAX: usize = 64 * 1024;
/// Body of `PUT /v1/secrets/{name}`: a value with every byte escaped.
pub const SECRET_BODY_BYTES_MAX: u64 = 6 * 64 * KIB + KIB;
/// Secrets per tenant.
pub const SECRETS_MAX: u32 = 1000;
/// Granted values per execution: with arguments and other variables they must fit into `execve`.
pub const SECRETS_GRANTED_BYTES_MAX: usize = 512 * 1024;
/// Shorter secrets are not masked, because such bytes are frequent in any text.
pub const MASKED_BYTES_MIN: usize = 4;

// ---- blobs ---------------------------------------------------------------------------------------------------

/// One blob.
pub const BLOB_BYTES_MAX: u64 = 64 * MIB;
/// Blobs per request.
pub const INPUT_BLOBS_MAX: usize = 100;
/// All blobs of a request, which are in memory.
pub const INPUT_BLOBS_BYTES_MAX: u64 = 64 * MIB;
/// Minimum size of `/blobs`: a tmpfs of size 0 is unlimited.
pub const BLOBS_BYTES_MIN: u64 = 4096;
/// Blobs that an execution returns.
pub const OUTPUT_BLOBS_MAX: usize = 100;
/// All blobs that an execution returns.
pub const OUTPUT_BLOBS_BYTES_MAX: u64 = 64 * MIB;
/// Blobs per tenant.
pub const BLOBS_MAX: u64 = 100_000;
/// Default size of all blobs of a tenant.
pub const BLOBS_QUOTA_BYTES: u64 = 1024 * MIB;
/// Default lifetime of a blob.
pub const BLOB_LIFE: Duration = Duration::from_secs(7 * 24 * 3600);
/// Maximum lifetime of a blob.
pub const BLOB_LIFE_MAX: Duration = Duration::from_secs(365 * 24 * 3600);
/// Characters of a blob's media type.
pub const MEDIA_TYPE_CHARS_MAX: usize = 255;
/// Expired blobs per query of maintenance.
pub const BLOBS_EXPIRED_PER_QUERY: u32 = 1000;
/// Age at which stored bytes without a row are removed. Between the two lies one write to the database.
pub const BLOB_BYTES_UNNAMED_MAX: Duration = Duration::from_secs(24 * 3600);
/// Interval at which a process looks for such bytes.
pub const BLOBS_SWEPT_EVERY: Duration = Duration::from_secs(3600);
/// Objects of a tenant that are compared with rows.
pub const BLOB_OBJECTS_COMPARED_MAX: usize = 200_000;

// ---- the server ----------------------------------------------------------------------------------------------

/// Time for retries to record an outcome in a locked database.
pub const RECORD_MAX: Duration = Duration::from_secs(60);
/// Pause between these retries; each has waited for [`STORE_WAIT_MAX`] at most.
pub const RECORD_RETRY_AFTER: Duration = Duration::from_millis(100);
/// First pause before a queued execution that could not start is retried; doubled each time.
pub const QUEUED_RETRY_AFTER: Duration = Duration::from_secs(1);
/// Retries of a queued execution: half a minute, in which an engine can restart.
pub const QUEUED_RETRIES_MAX: u32 = 5;
/// Running executions have this long at shutdown, then they become `interrupted`.
pub const DRAIN_SERVER_MAX: Duration = Duration::from_secs(30);
/// Interval of maintenance.
pub const MAINTENANCE_EVERY: Duration = Duration::from_secs(60);
/// Interval at which the server checks whether it is idle.
pub const IDLE_CHECK_EVERY: Duration = Duration::from_secs(10);
/// CPU time per interval, including sandboxes, up to which the server is idle.
pub const IDLE_CPU_MAX: Duration = Duration::from_millis(100);
/// Age at which an incomplete registration belongs to a dead process.
pub const REGISTERING_MAX: Duration = Duration::from_secs(3600);
/// Executions deleted per query of retention.
pub const EXPIRED_PER_QUERY: u32 = 1000;
/// Maximum time of a round of maintenance for deleting executions beyond retention.
pub const RETENTION_ROUND_MAX: Duration = Duration::from_secs(10);
/// Archives unpacked concurrently; each may write [`UNPACKED_BYTES_MAX`].
pub const UNPACKING_MAX: usize = 4;
/// Longer than any execution, including its wait: an unpacked skill used within this time may be in use.
pub const SKILL_USED_MAX: Duration = Duration::from_secs(3600);
/// Idle time after which an unpacked skill is evicted; its archive stays.
pub const SKILL_IDLE_MAX: Duration = Duration::from_secs(24 * 3600);
/// Age at which a container that was never started is removed.
pub const CREATED_NEVER_STARTED_MAX: Duration = Duration::from_secs(15 * 60);
/// Idle time after which a volume container is removed. Until then the engine does not remove its image either.
pub const VOLUME_CONTAINER_IDLE_MAX: Duration = Duration::from_secs(3600);
/// Attempts to raise a program's `oom_score_adj` while the kernel starts it.
pub const OOM_SCORE_ATTEMPTS: u32 = 50;
pub const OOM_SCORE_RETRY_DELAY: Duration = Duration::from_micros(200);
/// Skills of an archive that an error names.
pub const SKILLS_NAMED_MAX: usize = 8;
/// Folders and files of the host that a native sandbox of root's shows.
pub const HOST_MOUNTS_MAX: usize = 128;
/// Overlays of host folders that a native server keeps, over all tenants.
pub const OVERLAYS_MAX: usize = 256;
/// After this time a tenant gets a new overlay of a folder, which shows what has changed on the host.
pub const OVERLAY_AGE_MAX: Duration = Duration::from_secs(300);
/// Volume containers per engine; the least recently used ones are evicted.
pub const VOLUME_CONTAINERS_MAX: usize = 256;
/// Maximum clock difference of servers that share an engine: earlier, no sandbox counts as expired.
pub const CLOCKS_APART_MAX: Duration = Duration::from_secs(300);
/// One call to the container engine, except waiting, attaching and pulling.
pub const ENGINE_CALL_MAX: Duration = Duration::from_secs(20);
/// Time without a response after which `auto` uses the native backend.
pub const ENGINE_SILENCE_MAX: Duration = Duration::from_secs(10);
/// Minimum interval at which `auto` retries a missing engine.
pub const ENGINE_RECHECK_AFTER: Duration = Duration::from_secs(10);
/// Time for which the metadata of an image are cached, since a tag may move.
pub const IMAGE_RECHECK_AFTER: Duration = Duration::from_secs(5);
/// Time for which a failed pull is not retried; the image itself is checked each time.
pub const PULL_RETRY_AFTER: Duration = Duration::from_secs(60);
/// Queued progress messages; further ones are dropped.
pub const PROGRESS_QUEUE: usize = 16;
pub const PULL_MAX: Duration = Duration::from_secs(15 * 60);
/// Wrong API keys per address and minute; then the server answers 429.
pub const WRONG_KEYS_PER_MINUTE_MAX: u32 = 60;

// ---- store and blob ------------------------------------------------------------------------------------------

/// Read-only connections to the database. One call more reads at the same time or fails at once, one more writes.
pub const STORE_READERS: usize = 2;
/// Parsed manifests kept in memory.
pub const MANIFESTS_CACHED_MAX: usize = 64;
/// Maximum instructions of such a manifest.
pub const MANIFEST_CACHED_INSTRUCTIONS_BYTES_MAX: usize = 32 * 1024;
/// Prepared statements per connection.
pub const STORE_STATEMENTS: usize = 64;
/// Maximum wait for a lock of another process on the database.
pub const STORE_LOCK_MAX: Duration = Duration::from_secs(5);
/// Maximum wait of one call for a connection of this process and then for that lock, in all.
pub const STORE_WAIT_MAX: Duration = Duration::from_secs(10);
/// Maximum wait for another process that deletes incomplete objects, which takes milliseconds.
pub const BLOB_LOCK_MAX: Duration = Duration::from_secs(10);
/// Maximum wait for another process that creates the first key.
pub const FIRST_KEY_LOCK_MAX: Duration = Duration::from_secs(30);
/// Pause between two attempts to take a lock of another process.
pub const LOCK_RETRY_AFTER: Duration = Duration::from_millis(10);
/// Maximum wait at start for another process that opens or migrates the database.
pub const STORE_OPEN_MAX: Duration = Duration::from_secs(30);
/// Time limit of the integrity check at start; a larger database is checked partly.
pub const STORE_CHECK_MAX: Duration = Duration::from_secs(1);
/// Pages of 4 KiB at which the write-ahead log is checkpointed. With SQLite's 1,000 the slowest commit in a hundred
/// took 7 ms instead of 0.5.
pub const STORE_LOG_PAGES: u32 = 4000;
/// Size of the file that is deleted when the disk is full, so that executions can be deleted.
pub const STORE_RESERVE_BYTES: usize = 4 << 20;
/// Size to which the write-ahead log is truncated after a checkpoint.
pub const STORE_LOG_BYTES: u64 = 64 * MIB;
/// Characters of a page cursor.
pub const CURSOR_CHARS_MAX: usize = 256;
/// Minimum bytes of the secret that signs links.
pub const LINK_SECRET_BYTES_MIN: usize = 32;
/// Minimum distinct bytes of that secret: "changemechangeme…" is long but not secret.
pub const LINK_SECRET_DISTINCT_MIN: usize = 8;

// ---- configuration and command line --------------------------------------------------------------------------

/// A configuration file.
pub const CONFIG_BYTES_MAX: u64 = 64 * KIB;
/// Maximum configurable concurrency.
pub const CONCURRENCY_MAX: usize = 1024;
/// Default retention of ended executions and their files.
pub const RETENTION_AGE: Duration = Duration::from_secs(30 * 24 * 3600);
/// Default number of ended executions per tenant.
pub const RETENTION_PER_TENANT: u64 = 10_000;
/// Maximum configurable lifetime of a signed link.
pub const LINK_LIFE_MAX: Duration = Duration::from_secs(7 * 24 * 3600);
/// Key file in the data folder.
pub const KEY_FILE_BYTES_MAX: u64 = 4 * KIB;
/// Input files of one command; as base64 they must fit into [`EXECUTION_BODY_BYTES_MAX`].
pub const INPUT_FILES_BYTES_MAX: u64 = 24 * MIB;
/// JSON response that the command line reads: output and logs at their limits, escaped.
pub const ANSWER_BYTES_MAX: u64 = 64 * MIB;
/// Maximum rows that the command line lists.
pub const ROWS_LISTED_MAX: usize = 10_000;
/// Rows among which the command line looks for an id by its beginning or end.
pub const ID_SEARCH_ROWS: usize = 1_000;
/// Versions that the command line names when one does not exist.
pub const SUGGESTED_VERSIONS: usize = 5;
/// Digits of such a beginning or end.
pub const ID_PART_DIGITS_MIN: usize = 4;
/// Digits of an id in a table on a terminal.
pub const ID_DIGITS_SHOWN: usize = 8;
/// Time to connect to a server.
pub const CLIENT_CONNECT_MAX: Duration = Duration::from_secs(10);
/// Time for a server's response.
pub const CLIENT_ANSWER_MAX: Duration = Duration::from_secs(120);
/// Time for the response to a run: queue, pull, program and results.
pub const CLIENT_RUN_MAX: Duration = Duration::from_secs(45 * 60);
/// Consecutive reconnects of the command line to an interrupted stream.
pub const CLIENT_RECONNECTS_MAX: u32 = 30;
/// Time for one download.
pub const CLIENT_DOWNLOAD_MAX: Duration = Duration::from_secs(60 * 60);
