// Objects of the API as the dashboard reads them; docs/API.md and /openapi.json have the full description.
import type { ComponentChildren, RefObject } from '/ui/vendor/preact.js';

export type Content = ComponentChildren;
export type Ref<T> = RefObject<T | null>;
export type Scope = 'run' | 'skills' | 'admin';
export type StatusName =
  | 'queued'
  | 'running'
  | 'success'
  | 'failed'
  | 'timeout'
  | 'oom'
  | 'cancelled'
  | 'denied'
  | 'interrupted';
export type Backend = string;

export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  code: string;
  request_id: string;
  retryable: boolean;
  retry_after?: number;
  errors?: { pointer: string; message: string }[];
}

export interface List<T> {
  items: T[];
  next_page_token: string | null;
}

export interface KeyRef {
  id: string;
  name: string;
}

export interface Session {
  page_token?: string;
  expires_at: string | null;
  tenant: string;
  key: KeyRef & { scopes: Scope[] };
}

export interface Failure {
  code: string;
  message: string;
  name?: string | null;
  value?: string | null;
  traceback?: string | null;
}

/** An execution in a list. */
export interface Summary {
  execution_id: string;
  status: StatusName;
  skill: string | null;
  version: string | null;
  digest: string | null;
  backend: Backend | null;
  language?: string | null;
  key?: KeyRef | null;
  error: Failure | null;
  exit_code: number | null;
  duration_ms: number | null;
  created_at: string;
  finished_at: string | null;
}

export interface LogLine {
  time: string;
  level: string;
  message: string;
  fields?: Record<string, unknown> | null;
}

export interface Timings {
  queue_ms: number | null;
  sandbox_ms: number | null;
  run_ms: number | null;
  collect_ms: number | null;
  warm: boolean | null;
}

export interface FileLink {
  path: string;
  size: number;
  sha256: string;
  media_type: string;
  url: string;
}

export interface RichResult {
  is_main_result: boolean;
  text?: string;
  html?: string;
  markdown?: string;
  svg?: string;
  latex?: string;
  javascript?: string;
  json?: unknown;
  png?: string;
  jpeg?: string;
  pdf?: string;
  data?: { columns?: unknown; [name: string]: unknown };
  truncated?: string[];
  url?: string | null;
  urls?: Record<string, string> | null;
}

/** An execution with everything; `?omit=` leaves out logs, results and output. */
export interface Envelope extends Summary {
  backend_reason: string | null;
  degraded: string[];
  output?: unknown;
  results?: RichResult[] | null;
  results_truncated?: boolean | null;
  logs?: {
    stdout: string;
    stderr: string;
    truncated: boolean;
    lines: LogLine[];
    lines_truncated: boolean;
  } | null;
  files: FileLink[];
  files_url: string | null;
  files_skipped: { path: string; reason: string }[];
  files_skipped_total: number;
  output_blobs: { blob_id: string; size: number }[];
  queue: { position: number; waiting: number; waited_ms: number } | null;
  workdir: string | null;
  requirements: string[];
  limits: {
    asked: Record<string, number | null>;
    granted: { memory_bytes: number; cpu_millis: number; timeout_ms: number; workspace_bytes: number };
  } | null;
  timings: Timings | null;
  usage: { cpu_ms: number; memory_peak_bytes: number; processes_peak: number; oom_kills: number } | null;
}

export interface Logs {
  stdout: string | null;
  stderr: string | null;
  stdout_total: number;
  stderr_total: number;
  truncated: boolean;
  lines: LogLine[];
  lines_truncated: boolean;
}

export type Counts = Partial<Record<StatusName, number>>;

export interface Bucket {
  start: string;
  counts: Counts;
  p50_ms: number | null;
  p95_ms: number | null;
}

export interface SkillStats {
  skill: string | null;
  count: number;
  failed: number;
  p50_ms: number | null;
  p95_ms: number | null;
  spark: number[];
}

export interface Stats {
  bucket_seconds: number;
  totals: Counts;
  duration_ms: { p50: number | null; p95: number | null; p99: number | null };
  buckets: Bucket[];
  skills: SkillStats[];
}

export interface Server {
  version: string;
  started_at: string;
  backend: { chosen: string | null; reason: string; others: { backend: string; why_not: string }[] };
  degraded: string[];
  promises: { promise: string; says: string; mechanism: string }[];
  slots: { total: number; running: number };
  queue: { waiting: number; oldest_ms: number | null };
  warm: { waiting: number | null; hits_1h: number; misses_1h: number };
  limits: Record<string, unknown>;
}

export interface Usage {
  storage: { used: number; limit: number | null };
  blobs: { used: number; limit: number | null; count: number };
  secrets: { count: number; limit: number };
  packages: { used: number };
  queue: { waiting: number; limit: number };
  last_24h: { executions: number; cpu_ms: number };
}

/** The request of an execution, if it was kept. */
export interface KeptRequest {
  kept: boolean;
  reason: string | null;
  request: Record<string, unknown> | null;
  files: { path: string; size: number; sha256: string; kept?: boolean }[];
}
