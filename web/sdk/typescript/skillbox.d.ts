// The types of skillbox.js. Fields have the names of the API, and a value that the server does not have is `null`.
// A comment `openapi:` names the schema that a declaration mirrors; a test of Skillbox compares the two.

/** Version of this package. */
export const VERSION: string;

export interface ClientOptions {
  /** Address of the server, such as `http://127.0.0.1:8080`. */
  url: string | undefined;
  /** API key. It is sent in the `Authorization` header alone, and never shown. */
  key: string | undefined;
  /** The server rejects each request (403, `forbidden`) if the key belongs to another tenant. It never chooses one. */
  tenant?: string;
  /** Sends the requests, for a proxy or a certificate. Default: that of the platform. */
  fetch?: typeof fetch;
  /** Limit of one call with its retries, in milliseconds. Default: 15 minutes, longer than any run; `health` 10 s; events no limit. */
  timeoutMs?: number;
  /** Pause before the first retry, in milliseconds; each further one is twice as long. Default: 500. */
  firstPauseMs?: number;
}

export interface CallOptions {
  /** Ends the call with the signal's reason. The execution continues, unless its `on_disconnect` is `cancel`. */
  signal?: AbortSignal;
  /** As in `ClientOptions`, for this call. */
  timeoutMs?: number;
  /** Name of this request, for calls that run something: a repeated call returns the same execution for 24 hours. Default: random. */
  idempotencyKey?: string;
}

export interface EventOptions extends CallOptions {
  /** Begins after the event with this id. */
  lastEventId?: string;
  /** Leaves out the events of these parts, and these parts of `result`. Not of the first connection of `stream`. */
  omit?: readonly EnvelopePart[];
}

export interface ReadOptions extends CallOptions {
  /** Leaves these parts empty, which together can have 28 MiB. */
  omit?: readonly EnvelopePart[];
}

export interface ListOptions extends CallOptions {
  /** With one of these statuses. */
  status?: Status | readonly Status[];
  /** Of this skill. */
  skill?: string;
  /** Only of code. */
  code?: boolean;
  /** Started by the API key with this id. */
  key?: string;
  /** Accepted at this time or later. */
  since?: Date | string;
  /** Accepted before this time. */
  until?: Date | string;
  /** At most so many. Default: 200. */
  limit?: number;
}

export interface LogsOptions extends CallOptions {
  /** Default: both. */
  stream?: 'stdout' | 'stderr' | 'both';
  /** Answers with `parts` in order of arrival instead of texts. */
  timestamps?: boolean;
}

export interface ArchiveLimits {
  /** Refuses an archive with more files. Default: 10,000. */
  maxFiles?: number;
  /** Refuses an archive with more bytes in its files. Default: 1 GiB. */
  maxBytes?: number;
}

export interface BlobOptions extends CallOptions {
  /** Default: `application/octet-stream`. */
  mediaType?: string;
  /** Lifetime in seconds. Default: the server's. */
  ttl?: number;
}

export interface RegisterOptions extends CallOptions {
  /** Packages to add to the version. Default: those that were added to the latest one. */
  requirements?: readonly string[];
}

export interface ToolCallOptions extends CallOptions {
  /** Further members of the request, such as `timeout` or `blobs`. */
  request?: Omit<RunRequest, 'skill' | 'version' | 'code' | 'language' | 'input' | 'script' | 'args'>;
}

/** A client of one server with one API key. */
export class Client {
  constructor(options: ClientOptions);
  /** Address of the server. */
  readonly url: string;
  /** The state of the server, if it can run programs; else an error `not_ready` names what fails. Tried once, needs no valid key. */
  health(options?: CallOptions): Promise<Ready>;
  /**
   * Runs a skill or code and waits for the result; with `mode: 'async'` it returns when the run is queued. A program that
   * fails is a result with its `status`, not an error. A retry joins the run of the first attempt, so nothing runs twice.
   */
  run<Output = unknown>(request: RunRequest, options?: CallOptions): Promise<Envelope<Output>>;
  /** `run` of code, in Python unless the request names another `language`. */
  runCode<Output = unknown>(
    code: string,
    request?: Omit<RunRequest, 'code'>,
    options?: CallOptions,
  ): Promise<Envelope<Output>>;
  /** Runs a skill or code when it is first read from, and returns its events as they occur. After a lost connection it resumes. */
  stream(request: RunRequest, options?: CallOptions): AsyncGenerator<ExecutionEvent, void, undefined>;
  /** The events of an execution from the beginning, or after `lastEventId`. */
  events(executionId: string, options?: EventOptions): AsyncGenerator<ExecutionEvent, void, undefined>;
  /** The current state of an execution. */
  get<Output = unknown>(executionId: string, options?: ReadOptions): Promise<Envelope<Output>>;
  /** An execution when it has ended. */
  wait<Output = unknown>(executionId: string, options?: ReadOptions): Promise<Envelope<Output>>;
  /** Cancels an execution and returns its final state. */
  cancel(executionId: string, options?: CallOptions): Promise<Envelope>;
  /** Executions, the newest first. */
  list(options?: ListOptions): Promise<Summary[]>;
  /** Deletes an ended execution with its request, output, logs and files. */
  delete(executionId: string, options?: CallOptions): Promise<void>;
  /** What an execution has printed so far. */
  logs(executionId: string, options?: LogsOptions): Promise<StreamTexts>;
  /** The request of an execution, as far as it was kept. */
  request(executionId: string, options?: CallOptions): Promise<ShownRequest>;
  /** Runs the kept request of an execution again, as `run` does. */
  rerun<Output = unknown>(
    executionId: string,
    request?: RerunRequest,
    options?: CallOptions,
  ): Promise<Envelope<Output>>;
  /** The files of an execution, one after the other. An archive with an unsafe path, a link, a device, a duplicate or too much is refused. */
  files(
    result: string | HasFiles,
    options?: CallOptions & ArchiveLimits,
  ): AsyncGenerator<DownloadedFile, void, undefined>;
  /** Saves the files of an execution below `folder` and returns their paths. It saves all or, of an unsafe archive, none. Not in browsers. */
  downloadFiles(result: string | HasFiles, folder: string, options?: CallOptions & ArchiveLimits): Promise<string[]>;
  /** One file of an execution, by its path. */
  downloadFile(result: string | HasFiles, path: string, options?: CallOptions): Promise<Uint8Array>;
  /** One form of the `n`-th result of an execution, from 0. */
  downloadResult(result: string | HasFiles, n: number, form: ResultForm, options?: CallOptions): Promise<Uint8Array>;
  /** Stores a blob. Its `blob_id` is an entry of `blobs` in requests. */
  uploadBlob(content: Content, options?: BlobOptions): Promise<BlobInfo>;
  /** Blobs, the newest first. */
  listBlobs(options?: CallOptions): Promise<BlobInfo[]>;
  /** The content of a blob. */
  downloadBlob(blobId: string, options?: CallOptions): Promise<Uint8Array>;
  /** Deletes a blob. */
  deleteBlob(blobId: string, options?: CallOptions): Promise<void>;
  /** Publishes a zip archive. Publishing the same content again changes nothing. */
  registerSkill(archive: Content, options?: RegisterOptions): Promise<Skill>;
  /** The latest version of each skill, by name. */
  listSkills(options?: CallOptions): Promise<SkillSummary[]>;
  /** The versions of a skill, the most recent push first. */
  listVersions(name: string, options?: CallOptions): Promise<SkillSummary[]>;
  /** A version of a skill with all that its author declared: a semantic version, `latest` (the default) or a digest. */
  getSkill(name: string, version?: string, options?: CallOptions): Promise<Skill>;
  /** The zip archive of a skill as it was uploaded. */
  downloadSkill(name: string, version?: string, options?: CallOptions): Promise<Uint8Array>;
  /** Deletes a version of a skill. */
  deleteSkill(name: string, version: string, options?: CallOptions): Promise<void>;
  /** The callable skills as tool definitions, to pass to a model. */
  tools<Format extends ToolFormat>(format: Format, options?: CallOptions): Promise<ToolDefinitions[Format][]>;
  /** The skills as text for a model's prompt. */
  toolsPrompt(options?: CallOptions): Promise<string>;
  /** Runs the latest version of a skill as the tool with this name, with a model's arguments: an object, or its JSON text. */
  callTool<Output = unknown>(name: string, args: object | string, options?: ToolCallOptions): Promise<Envelope<Output>>;
}

export interface ErrorDetails {
  /** HTTP status; 0 without an answer. */
  status?: number;
  code: ErrorCode | ClientErrorCode;
  /** What is wrong and what to do. */
  message: string;
  /** Finds the request in the server's log. */
  requestId?: string | undefined;
  /** Whether the same request may succeed later. The client has already tried it several times where that is safe. */
  retryable?: boolean;
  /** Seconds that the server wants clients to wait. */
  retryAfter?: number | undefined;
  /** The first places at which an input violates the skill's schema. */
  errors?: Fault[];
}

/** A request that failed. A program that fails is not an error, but a result with its `status`. */
export class SkillboxError extends Error implements ErrorDetails {
  constructor(details: ErrorDetails);
  status: number;
  code: ErrorCode | ClientErrorCode;
  requestId: string | undefined;
  retryable: boolean;
  retryAfter: number | undefined;
  errors: Fault[];
}

// openapi: ErrorCode
export type ErrorCode =
  | 'invalid'
  | 'unauthenticated'
  | 'forbidden'
  | 'not_found'
  | 'method_not_allowed'
  | 'request_timeout'
  | 'conflict'
  | 'key_reused'
  | 'too_large'
  | 'unsupported_media_type'
  | 'range_not_satisfiable'
  | 'misdirected'
  | 'rate_limited'
  | 'busy'
  | 'sandbox_unavailable'
  | 'dependencies_failed'
  | 'storage_full'
  | 'internal';

/** Codes of the client itself: no complete answer, the time limit, an answer of no Skillbox server, a refused archive, `health`. */
export type ClientErrorCode = 'connection_failed' | 'timed_out' | 'invalid_response' | 'unsafe_archive' | 'not_ready';

/** What can be uploaded. */
export type Content = Uint8Array | ArrayBuffer | Blob | string;

/** An execution: what `run` returns, or a part of it. */
export interface HasFiles {
  execution_id: string;
  files_list?: readonly string[];
}

export interface DownloadedFile {
  /** Relative path with `/` between folders. */
  path: string;
  bytes: Uint8Array;
}

// openapi: Status
export type Status =
  | 'queued'
  | 'running'
  | 'success'
  | 'failed'
  | 'timeout'
  | 'oom'
  | 'cancelled'
  | 'denied'
  | 'interrupted';

// openapi: Language
export type Language = 'python' | 'node' | 'bash';

// openapi: Mode
export type Mode = 'sync' | 'async';

// openapi: OnDisconnect
export type OnDisconnect = 'cancel' | 'continue';

// openapi: Workdir
export type Workdir = 'request' | 'skill';

// openapi: EnvelopePart
export type EnvelopePart = 'logs' | 'results' | 'output';

// openapi: RerunVersion
export type RerunVersion = 'same' | 'latest';

// openapi: Level
export type Level = 'debug' | 'info' | 'warning' | 'error';

// openapi: LogSource
export type LogSource = 'stdout' | 'stderr' | 'log';

// openapi: EndReason
export type EndReason = 'finished' | 'shutdown';

// openapi: Dialect
export type Dialect = 'program' | 'function' | 'toolbox' | 'instructions';

// openapi: Origin
export type Origin = 'skill_toml' | 'metadata' | 'front_matter' | 'inferred';

// openapi: ToolFormat
export type ToolFormat = 'mcp' | 'openai' | 'anthropic';

// openapi: ResultForm
export type ResultForm =
  | 'text'
  | 'html'
  | 'markdown'
  | 'svg'
  | 'png'
  | 'jpeg'
  | 'pdf'
  | 'latex'
  | 'json'
  | 'javascript'
  | 'data'
  | 'chart';

// openapi: Events
export type EventName = 'status' | 'stdout' | 'stderr' | 'log' | 'result' | 'end';

/** Asks for a run of `skill`, or of `code`. */
// openapi: CreateExecution
export interface RunRequest {
  /** Skill to run. Alternative: `code`. */
  skill?: string | null;
  /** A semantic version, `latest` (the default) or a digest `sha256:…`. */
  version?: string | null;
  /** Code to run, at most 1 MiB. */
  code?: string | null;
  /** Language of the code. Default: `python`. */
  language?: Language | null;
  /** Any JSON; the program's input. Default: `{}`. */
  input?: unknown;
  /** Command line arguments, or the argument of a function or of `main(args)` in code. */
  args?: readonly string[] | { readonly [name: string]: unknown } | null;
  /** Files for the working directory: relative path to bytes, or to base64 as in the API. */
  files?: { readonly [path: string]: Uint8Array | string } | null;
  /** Initial content of the working directory of a `script`. */
  workdir?: Workdir | null;
  /** Blobs for `/blobs`, each named by the 64 hex digits of its id. */
  blobs?: readonly string[] | null;
  /** A script of the skill to run instead of its own program. */
  script?: string | null;
  /** Standard input. Default: the input for a program, nothing for a script. */
  stdin?: string | null;
  /** Further skills, mounted at `/skills/<name>`: `name` or `name@1.2.0`. */
  mount_skills?: readonly string[] | null;
  /** Packages in addition to those of the skill, such as `pandas>=2`. */
  requirements?: readonly string[] | null;
  /** Wall clock limit in seconds; can only shorten the limits of the skill and the server. */
  timeout?: number | null;
  /** Receives a signed webhook at the end. */
  callback_url?: string | null;
  /** Default: `sync`. */
  mode?: Mode | null;
  /** Default: `continue`. */
  on_disconnect?: OnDisconnect | null;
}

// openapi: RerunExecution
export interface RerunRequest {
  /** Content of the skill that runs. Default: `same`. */
  version?: RerunVersion | null;
  mode?: Mode | null;
  on_disconnect?: OnDisconnect | null;
}

/** An execution with its result. */
// openapi: Envelope
export interface Envelope<Output = unknown> {
  execution_id: string;
  status: Status;
  /** `null` for code. */
  skill: string | null;
  version: string | null;
  /** Digest of the content that ran. */
  digest: string | null;
  language: Language | null;
  /** `null` until the execution has a slot. */
  backend: string | null;
  backend_reason: string | null;
  /** Promises that the host keeps only partly, such as `P6`. */
  degraded: string[];
  /** What the program returned. Integers beyond 2^53 lose digits here, as in `JSON.parse`. */
  output: Output;
  /** Start of the output for a model. */
  output_preview: string | null;
  /** Values that code has displayed, such as charts. */
  results: RichResult[];
  results_truncated: boolean;
  /** Why the status is not `success`. */
  error: Failure | null;
  /** `null` if the program did not exit by itself. */
  exit_code: number | null;
  logs: LogTexts;
  /** End of the output of both streams for a model. */
  logs_preview: string;
  files: FileLink[];
  /** All files as one `tar.gz`. */
  files_url: string | null;
  /** Paths of `files`. */
  files_list: string[];
  /** First files that were not collected. */
  files_skipped: Skipped[];
  files_skipped_total: number;
  output_blobs: OutputBlob[];
  /** `null` unless queued. */
  queue: QueuePlace | null;
  workdir: Workdir | null;
  requirements: string[] | null;
  key: ExecutionKey | null;
  limits: ExecutionLimits | null;
  /** From acceptance to end; `null` while it runs. */
  duration_ms: number | null;
  timings: Timings | null;
  usage: Usage | null;
  created_at: string;
  finished_at: string | null;
  omitted: EnvelopePart[];
}

/** An execution in a list. */
// openapi: Summary
export interface Summary {
  execution_id: string;
  status: Status;
  skill: string | null;
  version: string | null;
  digest: string | null;
  language: Language | null;
  backend: string | null;
  error: Failure | null;
  exit_code: number | null;
  key: ExecutionKey | null;
  duration_ms: number | null;
  created_at: string;
  finished_at: string | null;
}

/** Why an execution did not succeed, and the uncaught exception of code or a function. */
// openapi: Failure
export interface Failure extends ExceptionIfAny {
  code: string;
  message: string;
}

// openapi: ExceptionIfAny
export interface ExceptionIfAny {
  /** Type, such as `ZeroDivisionError`. */
  name?: string | null;
  value?: string | null;
  traceback?: string | null;
}

/** A value in all forms that the code provided. Image and PDF are base64. */
// openapi: RichResult
export interface RichResult {
  /** Whether it is the return value of `main` or of the last expression. */
  is_main_result?: boolean;
  text?: string | null;
  html?: string | null;
  markdown?: string | null;
  svg?: string | null;
  png?: string | null;
  jpeg?: string | null;
  pdf?: string | null;
  latex?: string | null;
  json?: unknown;
  javascript?: string | null;
  data?: unknown;
  chart?: unknown;
  /** Members that were truncated or removed because of their size. */
  truncated?: string[];
  /** Links to each form that work without a key until they expire. */
  urls?: { [form: string]: string };
}

// openapi: LogTexts
export interface LogTexts {
  stdout: string;
  stderr: string;
  truncated: boolean;
  lines: LogLine[];
  lines_truncated: boolean;
}

// openapi: LogLine
export interface LogLine {
  time: string | null;
  level?: Level;
  message?: string;
  fields: unknown;
}

// openapi: FileLink
export interface FileLink {
  path: string;
  size: number;
  sha256: string;
  media_type: string;
  /** Works without a key until it expires. */
  url: string | null;
}

// openapi: Skipped
export interface Skipped {
  path: string;
  reason: string;
}

// openapi: OutputBlob
export interface OutputBlob {
  blob_id: string;
  size: number;
}

// openapi: QueuePlace
export interface QueuePlace {
  /** 1 for the next. */
  position: number;
  waiting: number;
  waited_ms: number;
}

// openapi: ExecutionKey
export interface ExecutionKey {
  id: string;
  name: string;
}

// openapi: ExecutionLimits
export interface ExecutionLimits {
  asked: AskedLimits;
  granted: GrantedLimits;
}

// openapi: AskedLimits
export interface AskedLimits {
  timeout_ms: number | null;
  memory_bytes: number | null;
  cpu_millis: number | null;
  workspace_bytes: number | null;
}

// openapi: GrantedLimits
export interface GrantedLimits {
  timeout_ms: number;
  memory_bytes: number;
  cpu_millis: number;
  workspace_bytes: number;
}

// openapi: Timings
export interface Timings {
  queue_ms: number;
  sandbox_ms: number;
  run_ms: number;
  collect_ms: number;
  warm?: boolean;
}

// openapi: Usage
export interface Usage {
  cpu_ms: number;
  memory_peak_bytes: number;
  processes_peak: number;
  oom_kills: number;
}

/** An event of an execution. `id` is its position in the stream. */
export type ExecutionEvent =
  | { id: string; event: 'status'; data: StatusEvent }
  | { id: string; event: 'stdout' | 'stderr'; data: PrintedEvent }
  | { id: string; event: 'log'; data: LogLine }
  | { id: string; event: 'result'; data: Envelope }
  | { id: string; event: 'end'; data: EndEvent };

// openapi: StatusEvent
export interface StatusEvent {
  execution_id: string;
  status: Status;
  /** 1 for the next; `null` if it is not queued. */
  queue_position: number | null;
}

// openapi: PrintedEvent
export interface PrintedEvent {
  text: string;
  /** The bytes, if they are not UTF-8. */
  base64?: string | null;
}

// openapi: EndEvent
export interface EndEvent {
  status: Status;
  /** Always `finished` here: after `shutdown` the stream resumes. */
  reason: EndReason;
}

// openapi: StreamTexts
export interface StreamTexts {
  stdout: string | null;
  stderr: string | null;
  stdout_total: number;
  stderr_total: number;
  truncated: boolean;
  lines: LogLine[];
  lines_truncated: boolean;
  /** With `timestamps`, instead of the texts. */
  parts?: OutputPart[] | null;
}

// openapi: OutputPart
export interface OutputPart {
  time: string | null;
  stream: LogSource;
  text: string;
  base64?: string | null;
  lines?: LogLine[];
}

// openapi: ShownRequest
export interface ShownRequest {
  kept: boolean;
  /** Why it, or a part of it, is missing here. */
  reason: string | null;
  request: RunRequest | null;
  files: ShownFile[];
}

// openapi: ShownFile
export interface ShownFile {
  path: string;
  size: number;
  sha256: string;
  kept: boolean;
}

// openapi: SkillSummary
export interface SkillSummary {
  name: string;
  version: string;
  description: string;
  dialect: Dialect;
  language: Language | null;
  digest: string;
  archive_bytes: number;
  unpacked_bytes: number;
  files: number;
  created_at: string;
}

// openapi: Skill
export interface Skill extends SkillSummary {
  /** The version that `latest` selects now. */
  latest: string | null;
  entrypoint: string | null;
  function: FunctionOfSkill | null;
  actions: Action[];
  image: string | null;
  /** Seconds. */
  timeout: number | null;
  memory_bytes: number | null;
  cpu_millis: number | null;
  disk_bytes: number | null;
  input_schema: unknown;
  output_schema: unknown;
  instructions: string;
  license: string | null;
  compatibility: string | null;
  allowed_tools: string | null;
  metadata: { [name: string]: string };
  origins: { [name: string]: Origin };
  requirements: string[];
  secrets: string[];
  warnings: Warning[];
}

// openapi: Function
export interface FunctionOfSkill {
  module: string;
  export: string;
}

// openapi: Action
export interface Action {
  path: string;
  language: Language;
  summary: string | null;
  usage: string | null;
  requires_python: string | null;
  dependencies?: string[];
}

// openapi: Warning
export interface Warning {
  line?: number | null;
  message: string;
}

// openapi: BlobInfo
export interface BlobInfo {
  blob_id: string;
  size: number;
  media_type: string;
  created_at: string;
  expires_at: string;
}

/** Tool definitions by format, as the SDKs of models take them. */
export interface ToolDefinitions {
  mcp: McpTool;
  openai: OpenAiTool;
  anthropic: AnthropicTool;
}

export interface McpTool {
  name: string;
  title: string;
  description: string;
  inputSchema: ObjectSchema;
  outputSchema?: ObjectSchema;
  _meta: { [name: string]: unknown };
}

export interface OpenAiTool {
  type: 'function';
  function: { name: string; description: string; parameters: { [keyword: string]: unknown } };
}

export interface AnthropicTool {
  name: string;
  description: string;
  input_schema: ObjectSchema;
}

export interface ObjectSchema {
  type: 'object';
  [keyword: string]: unknown;
}

// openapi: Ready
export interface Ready {
  ready: boolean;
  checks: Part[];
}

// openapi: Part
export interface Part {
  name: string;
  ok: boolean;
}

// openapi: Fault
export interface Fault {
  /** JSON pointer; empty for the whole value. */
  pointer: string;
  message: string;
}

/** An answer of the server that is an error. */
// openapi: Problem
export interface Problem {
  type: string;
  title: string;
  status: number;
  code: ErrorCode;
  detail: string;
  request_id: string;
  retryable: boolean;
  retry_after?: number | null;
  errors?: Fault[];
}
