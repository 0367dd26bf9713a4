// Objects of the API about skills; docs/API.md and /openapi.json have the full description.

export interface SkillSummary {
  name: string;
  version: string;
  digest: string;
  description: string;
  dialect: 'program' | 'function' | 'toolbox' | 'instructions';
  language: 'python' | 'node' | 'bash' | null;
  archive_bytes: number;
  unpacked_bytes: number;
  files: number;
  created_at: string;
}

export interface Action {
  path: string;
  language: string;
  summary: string | null;
  usage: string | null;
  requires_python: string | null;
  dependencies: string[];
}

export interface Skill extends SkillSummary {
  entrypoint: string | null;
  image: string | null;
  timeout: number | null;
  memory_bytes: number | null;
  cpu_millis: number | null;
  disk_bytes: number | null;
  input_schema: unknown;
  output_schema: unknown;
  license: string | null;
  compatibility: string | null;
  metadata: Record<string, string>;
  allowed_tools: string | null;
  instructions: string;
  function: unknown;
  secrets: string[];
  origins: Record<string, string>;
  actions: Action[];
  requirements: string[];
  warnings: { line?: number; message: string }[];
  latest: string | null;
}

/** An error of `skillbox` stops a push; one of `agent-skills` may stop other products. */
export interface Finding {
  level: 'error' | 'warning';
  code: 'skillbox' | 'agent-skills';
  path: string;
  line: number | null;
  message: string;
}

export interface SkillFile {
  path: string;
  size: number;
  sha256: string;
  executable: boolean;
  text: boolean;
}

export interface Hunk {
  from_line: number;
  to_line: number;
  lines: string[];
}

export interface FileDiff {
  path: string;
  change: 'added' | 'removed' | 'modified' | 'mode';
  from_size: number | null;
  to_size: number | null;
  binary: boolean;
  hunks: Hunk[];
}

export interface Diff {
  truncated: boolean;
  fields: { name: string; from: unknown; to: unknown }[];
  files: FileDiff[];
}
