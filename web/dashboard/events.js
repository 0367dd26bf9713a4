// Event streams: read by fetch, resumed by id, one per tab, closed while the tab is hidden.
import { ApiError, send } from '/ui/api.js';

const FIRST_RETRY_MS = 500;
const LONGEST_RETRY_MS = 15_000;
/** A stream that lasted so long was ended by the server, not by an error. */
const ORDERLY_MS = 5000;

/** @typedef {'connecting' | 'live' | 'lost' | 'paused' | 'ended'} StreamState */
/** @typedef {{id: string, event: string, data: string}} StreamEvent */
/**
 * @typedef {object} StreamOptions
 * @property {(event: StreamEvent) => void} onEvent
 * @property {(state: StreamState) => void} [onState]
 * @property {(error: ApiError) => void} [onError] the server refused the stream; it is not tried again
 * @property {string} [lastId] resume after this event
 * @property {(event: StreamEvent) => boolean} [isLast] ends the stream after this event
 */

/** Splits bytes of `text/event-stream` into events. Long lines are joined once. */
export class EventParser {
  /** @param {(event: StreamEvent) => void} emit */
  constructor(emit) {
    this.emit = emit;
    /** @type {string[]} */
    this.pending = [];
    this.id = '';
    this.event = '';
    /** @type {string[]} */
    this.data = [];
  }

  /** @param {string} text */
  push(text) {
    let from = 0;
    for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', from)) {
      this.pending.push(text.slice(from, end));
      const line = this.pending.length === 1 ? this.pending[0] : this.pending.join('');
      this.pending = [];
      this.line(line.endsWith('\r') ? line.slice(0, -1) : line);
      from = end + 1;
    }
    if (from < text.length) this.pending.push(text.slice(from));
  }

  /** @param {string} line */
  line(line) {
    if (line === '') {
      if (this.data.length) this.emit({ id: this.id, event: this.event || 'message', data: this.data.join('\n') });
      this.event = '';
      this.data = [];
      return;
    }
    const colon = line.indexOf(':');
    if (colon === 0) return;
    const name = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1);
    if (name === 'data') this.data.push(value);
    else if (name === 'event') this.event = value;
    else if (name === 'id') this.id = value;
  }
}

/**
 * @param {Response} response
 * @param {EventParser} parser
 */
async function readEvents(response, parser) {
  if (!response.body) return;
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    parser.push(decoder.decode(value, { stream: true }));
  }
}

class Stream {
  /**
   * @param {string | null} path
   * @param {StreamOptions} options
   */
  constructor(path, options) {
    this.path = path;
    this.options = options;
    this.lastId = options.lastId ?? '';
    this.retry = FIRST_RETRY_MS;
    this.closed = false;
    this.busy = false;
    /** Connections that worked; `connecting` is said only before the first. */
    this.connections = 0;
    /** @type {AbortController | null} */
    this.abort = null;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
    this.onVisibility = () => this.visibilityChanged();
    document.addEventListener('visibilitychange', this.onVisibility);
  }

  /** @param {StreamState} state */
  tell(state) {
    if (!this.closed) this.options.onState?.(state);
  }

  visibilityChanged() {
    if (this.closed || this.path === null) return;
    if (document.hidden) {
      this.abort?.abort();
      clearTimeout(this.timer);
      this.tell('paused');
    } else if (!this.busy) {
      this.retry = FIRST_RETRY_MS;
      this.connect();
    }
  }

  /** @param {() => Promise<Response>} [first] sends the request that starts the stream */
  async connect(first) {
    if (this.closed || this.busy) return;
    if (document.hidden && !first) return this.tell('paused');
    this.busy = true;
    if (!this.connections) this.tell('connecting');
    const abort = new AbortController();
    this.abort = abort;
    let orderly = false;
    try {
      const response = first ? await first() : await this.reconnect(abort.signal);
      if (response.status === 204) return this.finish();
      this.tell('live');
      this.retry = FIRST_RETRY_MS;
      this.connections += 1;
      const since = performance.now();
      await readEvents(response, new EventParser((event) => this.received(event)));
      // The server ends long streams; they are resumed without a word.
      orderly = performance.now() - since > ORDERLY_MS;
    } catch (error) {
      if (error instanceof ApiError && error.status >= 400 && !error.retryable) {
        const report = this.options.onError;
        this.finish();
        report?.(error);
        return;
      }
      if (first && error instanceof ApiError && this.path === null) {
        this.finish();
        this.options.onError?.(error);
        return;
      }
    } finally {
      this.busy = false;
    }
    if (orderly && this.path !== null) this.connect();
    else this.later();
  }

  /** @param {AbortSignal} signal */
  reconnect(signal) {
    const headers = { Accept: 'text/event-stream', ...(this.lastId ? { 'Last-Event-ID': this.lastId } : {}) };
    return send(/** @type {string} */ (this.path), { headers, signal });
  }

  /** @param {StreamEvent} event */
  received(event) {
    if (this.closed) return;
    if (event.id) this.lastId = event.id;
    this.options.onEvent(event);
    if (this.options.isLast?.(event)) this.finish();
  }

  later() {
    if (this.closed || this.path === null) return;
    if (document.hidden) return this.tell('paused');
    this.tell('lost');
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.connect(), this.retry);
    this.retry = Math.min(this.retry * 2, LONGEST_RETRY_MS);
  }

  finish() {
    this.tell('ended');
    this.close();
  }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
    this.abort?.abort();
    document.removeEventListener('visibilitychange', this.onVisibility);
    if (current === this) current = null;
  }
}

/** @type {Stream | null} */
let current = null;

/**
 * Follows a stream of events. A browser has six connections to a host, so a second call ends the first stream.
 * @param {string} path
 * @param {StreamOptions} options
 * @returns {() => void} closes the stream
 */
export function follow(path, options) {
  current?.close();
  const stream = new Stream(path, options);
  current = stream;
  stream.connect();
  return () => stream.close();
}

/**
 * Starts an execution and follows it. After a lost connection it is resumed by its id, never started twice.
 * @param {string} body JSON text of the request, sent byte for byte
 * @param {Omit<StreamOptions, 'isLast'>} options
 * @returns {() => void} stops following; the execution continues
 */
export function runAndFollow(body, options) {
  current?.close();
  const stream = new Stream(null, {
    ...options,
    isLast: (event) => event.event === 'end' && !event.data.includes('"shutdown"'),
    onEvent: (event) => {
      if (event.event === 'status' && stream.path === null) {
        stream.path = `/v1/executions/${JSON.parse(event.data).execution_id}/events`;
      }
      options.onEvent(event);
    },
  });
  current = stream;
  const headers = { Accept: 'text/event-stream', 'Content-Type': 'application/json' };
  stream.connect(() => send('/v1/executions', { method: 'POST', body, headers, signal: stream.abort?.signal }));
  return () => stream.close();
}
