// Objects of the API about security; docs/API.md and /openapi.json have the full description.
import type { KeyRef, Scope } from '../../types.d.ts';

export type Verdict = 'kept' | 'degraded' | 'inconclusive' | 'breach' | 'skipped';

export type Tally = Record<Verdict, number>;

export interface PromiseTally extends Tally {
  promise: string;
  says: string;
  mechanism?: string;
}

export interface AttackFinding {
  promise: string;
  id: string;
  name: string;
  verdict: Verdict;
  mechanism: string;
  expected?: Record<string, unknown>;
  seen?: Record<string, unknown>;
  reason?: string;
}

export interface Proof {
  backend: string;
  form: string;
  degraded: string[];
  total: Tally;
  promises: PromiseTally[];
  findings: AttackFinding[];
  waited: number;
  seconds: number;
}

/** The last proof, and the one that runs. */
export interface Proving {
  total: Tally | null;
  backends: Proof[];
  skipped: { backend: string; reason: string }[];
  running: { started_at: string; backend: string | null; done: number; total: number } | null;
  started_at: string | null;
  finished_at: string | null;
  failure: string | null;
}

export interface ServerPromise {
  promise: string;
  title: string;
  says: string;
  mechanism: string;
}

export interface Key {
  key_id: string;
  name: string;
  hint: string;
  scopes: Scope[];
  tenant: string;
  created_at: string;
  expires_at: string | null;
  revoked_at: string | null;
}

export interface FreshKey extends Key {
  api_key: string;
}

export interface SessionItem {
  session_id: string;
  key: KeyRef & { scopes: Scope[] };
  created_at: string;
  used_at: string;
  expires_at: string;
  current: boolean;
}

export interface Secret {
  name: string;
  created_at: string;
  updated_at: string;
}

export interface AuditEntry {
  id: string;
  at: string;
  actor: { key_id: string; key_name: string; session: string | null };
  action: string;
  target: string | null;
  from: string | null;
  request_id: string | null;
}
