// The client of a Skillbox server: runs skills and code of agents in sandboxes. README.md has examples, skillbox.d.ts the types.
// It uses standard APIs alone (fetch, streams, crypto), so it runs as it is in Node 18+, browsers and Deno.
// A comment `openapi:` names the route that a method calls; a test of Skillbox compares them with its /openapi.json.
// @ts-self-types="./skillbox.d.ts"

/** @typedef {import('./skillbox.js').Client} Api */
/** @typedef {import('./skillbox.js').CallOptions} CallOptions */
/** @typedef {import('./skillbox.js').ErrorDetails} ErrorDetails */
/** @typedef {{[name: string]: string | number | boolean | Date | readonly string[] | null | undefined}} Query */
/**
 * A request that can be sent several times.
 * @typedef {object} Request
 * @property {string} method
 * @property {string} path
 * @property {any} [body]
 * @property {string} [type] of the body
 * @property {string} [accept]
 * @property {string} [lastEventId]
 */
/** @typedef {{path: string, content: AsyncIterable<Uint8Array>}} Entry */

export const VERSION = '0.1.0';

const TRIES_MAX = 4;
const FIRST_PAUSE_MS = 500;
const PAUSE_MS_MAX = 60_000;
/** Longer than any run. Node gives up a response after five minutes; the next attempt joins the same execution by its key. */
const CALL_MS_MAX = 15 * 60_000;
const HEALTH_MS_MAX = 10_000;
/** An idle event stream sends a comment every 15 s. */
const IDLE_MS_MAX = 60_000;
/** What the server accepts in `?wait=`. */
const WAIT_SECONDS_MAX = 60;
const TIMER_MS_MAX = 2 ** 31 - 1;
const JSON_BYTES_MAX = 64 * 2 ** 20;
const ERROR_BYTES_MAX = 2 ** 20;
const DOWNLOAD_BYTES_MAX = 2 ** 30;
const ARCHIVE_FILES_MAX = 10_000;
const ARCHIVE_BYTES_MAX = 2 ** 30;
const ARCHIVE_DEPTH_MAX = 64;
const ARCHIVE_PATH_BYTES_MAX = 4096;
const ARCHIVE_END_BYTES_MAX = 2 ** 20;
const PAGE_ITEMS_MAX = 200;
const PAGES_MAX = 1000;
/** A multiple of 3, so that base64 of pieces can be joined. */
const BASE64_PIECE_BYTES = 3 * 8192;
const BLOCK_BYTES = 512;
/** Devices, streams of a file, and ends that Windows drops. */
const WINDOWS_NAME = /[<>:"|?*]|[. ]$|^(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³])\s*(\.|$)/i;
const RETRIED_STATUSES = [429, 502, 503, 504];
const EVENTS = ['status', 'stdout', 'stderr', 'log', 'result', 'end'];

/** @implements {Api} */
export class Client {
  /** @type {string} */
  url;
  // Private, so that neither JSON.stringify nor util.inspect shows the key.
  /** @type {string} */
  #key;
  /** @type {string | undefined} */
  #tenant;
  /** @type {typeof fetch} */
  #fetch;
  /** @type {number} */
  #timeoutMs;
  /** @type {number} */
  #firstPauseMs;

  /** @param {import('./skillbox.js').ClientOptions} options */
  constructor({ url, key, tenant, fetch = globalThis.fetch, timeoutMs = CALL_MS_MAX, firstPauseMs = FIRST_PAUSE_MS }) {
    this.url = checkedUrl(url);
    if (!isHeaderText(key)) throw new TypeError('key: pass a key such as skb_…, without spaces');
    if (tenant !== undefined && !isHeaderText(tenant)) throw new TypeError('tenant: use visible ASCII');
    if (typeof fetch !== 'function') throw new TypeError('fetch: this platform has none; pass a function');
    this.#key = key;
    this.#tenant = tenant;
    // Browsers refuse to call it as a method of another object.
    this.#fetch = (input, init) => fetch(input, init);
    this.#timeoutMs = checkedMs('timeoutMs', timeoutMs);
    this.#firstPauseMs = checkedMs('firstPauseMs', firstPauseMs);
  }

  /** @type {Api['health']} */
  // openapi: GET /readyz
  async health(options = {}) {
    const limit = new Limit(options.signal, options.timeoutMs ?? Math.min(this.#timeoutMs, HEALTH_MS_MAX));
    try {
      // A report with 503 is an answer, and a caller wants to know the state now.
      const response = await this.#exchange(limit, get('/readyz'), '');
      const text = await this.#text(response, limit, ERROR_BYTES_MAX);
      /** @type {import('./skillbox.js').Ready | undefined} */
      const ready = parsed(text);
      if (!Array.isArray(ready?.checks)) throw this.#refusal(response, text);
      if (response.ok && ready.ready) return ready;
      const failed = ready.checks.filter((check) => !check.ok).map((check) => check.name);
      const message = `not ready: ${failed.join(', ')}`;
      throw this.#error({ status: response.status, code: 'not_ready', message, retryable: true });
    } finally {
      limit.end();
    }
  }

  /** @type {Api['run']} */
  // openapi: POST /v1/executions
  async run(request, options = {}) {
    return this.#json(runRequest(request), options);
  }

  /** @type {Api['runCode']} */
  async runCode(code, request = {}, options = {}) {
    return this.run({ ...request, code }, options);
  }

  /** @type {Api['stream']} */
  // openapi: POST /v1/executions
  stream(request, options = {}) {
    return this.#follow(options, { ...runRequest(request), accept: 'text/event-stream' });
  }

  /** @type {Api['events']} */
  // openapi: GET /v1/executions/{id}/events
  events(executionId, options = {}) {
    return this.#follow(options, undefined, executionId);
  }

  /** @type {Api['get']} */
  // openapi: GET /v1/executions/{id}
  async get(executionId, { omit, ...options } = {}) {
    return this.#json(get(`${execution(executionId)}${query({ omit })}`), options);
  }

  /** @type {Api['wait']} */
  async wait(executionId, { omit, ...options } = {}) {
    const limit = this.#limit(options);
    try {
      for (;;) {
        const path = `${execution(executionId)}${query({ omit, wait: WAIT_SECONDS_MAX })}`;
        const envelope = await this.#jsonWithin(limit, get(path), options);
        if (envelope.status !== 'queued' && envelope.status !== 'running') return envelope;
        await sleep(this.#firstPauseMs, limit.signal);
      }
    } finally {
      limit.end();
    }
  }

  /** @type {Api['cancel']} */
  // openapi: POST /v1/executions/{id}/cancel
  async cancel(executionId, options = {}) {
    return this.#json({ method: 'POST', path: `${execution(executionId)}/cancel` }, options);
  }

  /** @type {Api['list']} */
  // openapi: GET /v1/executions
  async list({ status, skill, code, key, since, until, limit = PAGE_ITEMS_MAX, ...options } = {}) {
    return this.#list('/v1/executions', { status, skill, code, key, since, until }, options, limit);
  }

  /** @type {Api['delete']} */
  // openapi: DELETE /v1/executions/{id}
  async delete(executionId, options = {}) {
    return this.#remove(execution(executionId), options);
  }

  /** @type {Api['logs']} */
  // openapi: GET /v1/executions/{id}/logs
  async logs(executionId, { stream, timestamps, ...options } = {}) {
    return this.#json(get(`${execution(executionId)}/logs${query({ stream, timestamps })}`), options);
  }

  /** @type {Api['request']} */
  // openapi: GET /v1/executions/{id}/request
  async request(executionId, options = {}) {
    return this.#json(get(`${execution(executionId)}/request`), options);
  }

  /** @type {Api['rerun']} */
  // openapi: POST /v1/executions/{id}/rerun
  async rerun(executionId, request = {}, options = {}) {
    return this.#json(post(`${execution(executionId)}/rerun`, request), options);
  }

  /** @type {Api['files']} */
  async *files(result, { maxFiles, maxBytes, ...options } = {}) {
    if (hasNoFiles(result)) return;
    const limit = this.#limit(options);
    try {
      const response = await this.#retry(limit, this.#archive(result), options, async (response) => response);
      for await (const { path, content } of this.#entries(response, limit, { maxFiles, maxBytes })) {
        yield { path, bytes: await joined(content) };
      }
    } finally {
      limit.end();
    }
  }

  /** @type {Api['downloadFiles']} */
  async downloadFiles(result, folder, { maxFiles, maxBytes, ...options } = {}) {
    if (hasNoFiles(result)) return [];
    const limit = this.#limit(options);
    try {
      return await this.#retry(limit, this.#archive(result), options, (response) =>
        saveFiles(this.#entries(response, limit, { maxFiles, maxBytes }), folder),
      );
    } finally {
      limit.end();
    }
  }

  /** @type {Api['downloadFile']} */
  // openapi: GET /v1/executions/{id}/files/{path}
  async downloadFile(result, path, options = {}) {
    const encoded = path.split('/').map((part) => segment('path', part));
    return this.#bytes(`${execution(idOf(result))}/files/${encoded.join('/')}`, options);
  }

  /** @type {Api['downloadResult']} */
  // openapi: GET /v1/executions/{id}/results/{n}/{form}
  async downloadResult(result, n, form, options = {}) {
    return this.#bytes(`${execution(idOf(result))}/results/${segment('n', `${n}`)}/${segment('form', form)}`, options);
  }

  /** @type {Api['uploadBlob']} */
  // openapi: POST /v1/blobs
  async uploadBlob(content, { mediaType = 'application/octet-stream', ttl, ...options } = {}) {
    const request = { method: 'POST', path: `/v1/blobs${query({ ttl })}`, body: content, type: mediaType };
    return this.#json(request, options);
  }

  /** @type {Api['listBlobs']} */
  // openapi: GET /v1/blobs
  async listBlobs(options = {}) {
    return this.#list('/v1/blobs', {}, options);
  }

  /** @type {Api['downloadBlob']} */
  // openapi: GET /v1/blobs/{id}
  async downloadBlob(blobId, options = {}) {
    return this.#bytes(`/v1/blobs/${segment('blobId', blobId)}`, options);
  }

  /** @type {Api['deleteBlob']} */
  // openapi: DELETE /v1/blobs/{id}
  async deleteBlob(blobId, options = {}) {
    return this.#remove(`/v1/blobs/${segment('blobId', blobId)}`, options);
  }

  /** @type {Api['registerSkill']} */
  // openapi: POST /v1/skills
  async registerSkill(archive, { requirements = [], ...options } = {}) {
    if (requirements.length === 0) {
      return this.#json({ method: 'POST', path: '/v1/skills', body: archive, type: 'application/zip' }, options);
    }
    const form = new FormData();
    for (const requirement of requirements) form.append('requirements', requirement);
    form.append('file', new Blob([/** @type {any} */ (archive)], { type: 'application/zip' }), 'skill.zip');
    // Without a type: fetch writes that of the form.
    return this.#json({ method: 'POST', path: '/v1/skills', body: form }, options);
  }

  /** @type {Api['listSkills']} */
  // openapi: GET /v1/skills
  async listSkills(options = {}) {
    return this.#list('/v1/skills', {}, options);
  }

  /** @type {Api['listVersions']} */
  // openapi: GET /v1/skills/{name}
  async listVersions(name, options = {}) {
    return this.#list(`/v1/skills/${segment('name', name)}`, {}, options);
  }

  /** @type {Api['getSkill']} */
  // openapi: GET /v1/skills/{name}/{version}
  async getSkill(name, version = 'latest', options = {}) {
    return this.#json(get(skill(name, version)), options);
  }

  /** @type {Api['downloadSkill']} */
  // openapi: GET /v1/skills/{name}/{version}/archive
  async downloadSkill(name, version = 'latest', options = {}) {
    return this.#bytes(`${skill(name, version)}/archive`, options);
  }

  /** @type {Api['deleteSkill']} */
  // openapi: DELETE /v1/skills/{name}/{version}
  async deleteSkill(name, version, options = {}) {
    return this.#remove(skill(name, version), options);
  }

  /** @type {Api['tools']} */
  // openapi: GET /v1/tools
  async tools(format, options = {}) {
    return this.#list('/v1/tools', { format }, options);
  }

  /** @type {Api['toolsPrompt']} */
  // openapi: GET /v1/tools/prompt
  async toolsPrompt(options = {}) {
    const opened = '<available_skills>\n';
    const closed = '</available_skills>\n';
    let entries = '';
    await this.#pages('/v1/tools/prompt', {}, options, PAGE_ITEMS_MAX, async (response, limit) => {
      const text = await this.#text(response, limit, JSON_BYTES_MAX);
      if (!text.startsWith(opened) || !text.endsWith(closed))
        throw unexpected(response.status, 'a list without its end');
      entries += text.slice(opened.length, -closed.length);
      return { count: 0, next: response.headers.get('X-Next-Page-Token') };
    });
    return opened + entries + closed;
  }

  /** @type {Api['callTool']} */
  async callTool(name, args, { request = {}, ...options } = {}) {
    const given = typeof args === 'string' ? parsed(args || '{}') : args;
    if (typeof given !== 'object' || given === null || Array.isArray(given)) {
      throw new SkillboxError({ code: 'invalid', message: 'args: send a JSON object' });
    }
    // A tool has `_` for each dot of its skill, whose name has no `_`.
    const called = await this.getSkill(name.replaceAll('_', '.'), 'latest', options);
    const chosen = { ...request, skill: called.name, version: called.digest };
    if (called.dialect === 'toolbox') {
      const { script, args: words, stdin, files, requirements } = given;
      return this.run({ ...chosen, script, args: words, stdin, files, requirements }, options);
    }
    return this.run({ ...chosen, input: takesObjects(called.input_schema) ? given : given.input }, options);
  }

  // openapi: GET /v1/executions/{id}/files
  #archive(/** @type {any} */ result) {
    return { ...get(`${execution(idOf(result))}/files`), accept: '*/*' };
  }

  /** @param {CallOptions} options */
  #limit({ signal, timeoutMs = this.#timeoutMs }) {
    return new Limit(signal, timeoutMs);
  }

  /**
   * @param {Request} request
   * @param {CallOptions} options
   */
  async #json(request, options) {
    const limit = this.#limit(options);
    try {
      return await this.#jsonWithin(limit, request, options);
    } finally {
      limit.end();
    }
  }

  /**
   * @param {Limit} limit
   * @param {Request} request
   * @param {CallOptions} options
   */
  #jsonWithin(limit, request, options) {
    return this.#retry(limit, request, options, async (response) => {
      const value = parsed(await this.#text(response, limit, JSON_BYTES_MAX));
      if (typeof value !== 'object' || value === null) throw unexpected(response.status, 'an answer that is no JSON');
      return value;
    });
  }

  /**
   * @param {string} path
   * @param {CallOptions} options
   * @returns {Promise<Uint8Array>}
   */
  async #bytes(path, options) {
    const limit = this.#limit(options);
    try {
      return await this.#retry(limit, { ...get(path), accept: '*/*' }, options, (response) =>
        this.#content(response, limit, DOWNLOAD_BYTES_MAX),
      );
    } finally {
      limit.end();
    }
  }

  /**
   * @param {string} path
   * @param {CallOptions} options
   */
  async #remove(path, options) {
    const limit = this.#limit(options);
    try {
      await this.#retry(limit, { method: 'DELETE', path }, options, (response) =>
        this.#content(response, limit, ERROR_BYTES_MAX),
      );
    } finally {
      limit.end();
    }
  }

  /**
   * @param {string} path
   * @param {Query} filter
   * @param {CallOptions} options
   * @param {number} [count]
   * @returns {Promise<any[]>}
   */
  async #list(path, filter, options, count = Infinity) {
    /** @type {any[]} */
    const items = [];
    await this.#pages(path, filter, options, count, async (response, limit) => {
      const page = parsed(await this.#text(response, limit, JSON_BYTES_MAX));
      if (!Array.isArray(page?.items)) throw unexpected(response.status, 'a page without items');
      items.push(...page.items);
      return { count: items.length, next: page.next_page_token };
    });
    return items.slice(0, count);
  }

  /**
   * @param {string} path
   * @param {Query} filter
   * @param {CallOptions} options
   * @param {number} count
   * @param {(response: Response, limit: Limit) => Promise<{count: number, next?: string | null}>} read
   */
  async #pages(path, filter, options, count, read) {
    const limit = this.#limit(options);
    try {
      let count_read = 0;
      /** @type {string | undefined} */
      let page_token;
      for (let pages = 0; pages < PAGES_MAX; pages += 1) {
        const wanted = Math.min(PAGE_ITEMS_MAX, count - count_read);
        const request = get(`${path}${query({ ...filter, limit: wanted, page_token })}`);
        const page = await this.#retry(limit, request, options, (response) => read(response, limit));
        count_read = page.count;
        if (!page.next || count_read >= count) return;
        page_token = page.next;
      }
      throw unexpected(200, `${path} has more than ${PAGES_MAX} pages`);
    } finally {
      limit.end();
    }
  }

  /**
   * @param {import('./skillbox.js').EventOptions} options
   * @param {Request} [first] starts the execution
   * @param {string} [executionId] of an execution that exists
   * @returns {AsyncGenerator<any, void, undefined>}
   */
  async *#follow({ lastEventId = '', omit, ...options }, first, executionId) {
    const limit = new Limit(options.signal, options.timeoutMs ?? Infinity);
    // The same key each time, as long as the id of the execution is unknown.
    const idempotencyKey = options.idempotencyKey ?? (first && (await randomKey()));
    let failures = 0;
    try {
      for (;;) {
        const path = executionId === undefined ? '' : `${execution(executionId)}/events${query({ omit })}`;
        const request =
          executionId === undefined && first ? first : { ...get(path), accept: 'text/event-stream', lastEventId };
        const response = await this.#retry(limit, request, { idempotencyKey }, async (response) => response);
        if (response.status === 204) return;
        let failure = this.#error({
          code: 'connection_failed',
          message: 'the event stream ended early',
          retryable: true,
        });
        try {
          for await (const event of serverSentEvents(this.#chunks(response.body, limit))) {
            if (event.event === 'end' && event.data.reason === 'shutdown') break;
            if (event.id !== lastEventId) failures = 0;
            lastEventId = event.id;
            if (event.event === 'status') executionId = event.data.execution_id;
            yield event;
            if (event.event === 'end') return;
          }
        } catch (error) {
          if (!(error instanceof SkillboxError) || error.code !== 'connection_failed') throw error;
          failure = error;
        }
        failures += 1;
        if (failures >= TRIES_MAX) throw failure;
        await sleep(this.#pause(failures), limit.signal);
      }
    } finally {
      limit.end();
    }
  }

  /**
   * Sends a request until an attempt succeeds, cannot succeed later, or is the last one. `read` is a part of the attempt.
   * @template T
   * @param {Limit} limit
   * @param {Request} request
   * @param {CallOptions} options
   * @param {(response: Response) => Promise<T>} read
   * @returns {Promise<T>}
   */
  async #retry(limit, request, { idempotencyKey }, read) {
    const key = request.method === 'POST' ? (idempotencyKey ?? (await randomKey())) : '';
    let wasLost = false;
    for (let attempt = 1; ; attempt += 1) {
      try {
        const response = await this.#exchange(limit, request, key);
        if (!response.ok) throw this.#refusal(response, await this.#text(response, limit, ERROR_BYTES_MAX));
        return await read(response);
      } catch (error) {
        if (limit.signal.aborted) throw limit.signal.reason;
        if (!(error instanceof SkillboxError)) throw error;
        // The answer that was lost has reported the deletion.
        if (wasLost && request.method === 'DELETE' && error.status === 404) return /** @type {T} */ (undefined);
        wasLost ||= error.code === 'connection_failed';
        const pause = this.#pause(attempt, error.retryAfter);
        const isRetried = error.code === 'connection_failed' || RETRIED_STATUSES.includes(error.status);
        if (!isRetried || attempt === TRIES_MAX || pause > Math.min(PAUSE_MS_MAX, limit.leftMs())) throw error;
        await sleep(pause, limit.signal);
      }
    }
  }

  /** Doubles with each attempt and varies, so that clients do not return all at once. */
  #pause(/** @type {number} */ attempt, retryAfter = 0) {
    const backoff = this.#firstPauseMs * 2 ** (attempt - 1) * (0.5 + Math.random() / 2);
    return retryAfter > 0 ? Math.max(retryAfter * 1000, backoff) + (Math.random() * backoff) / 2 : backoff;
  }

  /**
   * One attempt.
   * @param {Limit} limit
   * @param {Request} request
   * @param {string} idempotencyKey
   */
  async #exchange(limit, { method, path, body, type, accept = 'application/json', lastEventId }, idempotencyKey) {
    const headers = new Headers({ Authorization: `Bearer ${this.#key}`, Accept: accept });
    if (this.#tenant !== undefined) headers.set('X-Skillbox-Tenant', this.#tenant);
    if (type !== undefined) headers.set('Content-Type', type);
    if (lastEventId) headers.set('Last-Event-ID', lastEventId);
    if (idempotencyKey) headers.set('Idempotency-Key', idempotencyKey);
    try {
      // A redirect could send the key to another host, and a cookie beside a key is rejected.
      const rules = /** @type {RequestInit} */ ({ redirect: 'manual', credentials: 'omit', cache: 'no-store' });
      return await this.#fetch(this.url + path, { method, headers, body, signal: limit.signal, ...rules });
    } catch (error) {
      throw this.#lost(error, limit);
    }
  }

  /**
   * @param {unknown} error
   * @param {Limit} limit
   */
  #lost(error, limit) {
    if (limit.signal.aborted) return limit.signal.reason;
    const message = `no complete answer from ${this.url}: ${causes(error)}`;
    return this.#error({ code: 'connection_failed', message, retryable: true });
  }

  /**
   * The error of an answer that is not a success.
   * @param {Response} response
   * @param {string} text
   */
  #refusal(response, text) {
    const { status, headers } = response;
    if (response.type === 'opaqueredirect' || (status >= 300 && status < 400)) {
      return this.#error({
        status,
        code: 'invalid_response',
        message: `${this.url} redirects; use the address it leads to as url`,
      });
    }
    const problem = parsed(text);
    const requestId = headers.get('X-Request-Id') ?? undefined;
    const retryAfter = secondsUntil(headers.get('Retry-After'));
    if (typeof problem?.code !== 'string' || typeof problem.detail !== 'string') {
      const message = `${this.url} answered ${status} ${response.statusText} without a reason; is it a Skillbox server?`;
      const retryable = RETRIED_STATUSES.includes(status);
      return this.#error({ status, code: 'invalid_response', message, requestId, retryable, retryAfter });
    }
    const { code, detail, errors, retryable } = problem;
    return this.#error({ status, code, message: detail, requestId, retryable: retryable === true, retryAfter, errors });
  }

  /** An error without the key, which a server could send back. */
  #error(/** @type {ErrorDetails} */ details) {
    const mask = (/** @type {string} */ _, /** @type {unknown} */ value) =>
      typeof value === 'string' ? value.replaceAll(this.#key, '***') : value;
    return new SkillboxError(JSON.parse(JSON.stringify(details), mask));
  }

  /**
   * @param {Response} response
   * @param {Limit} limit
   * @param {number} bytesMax
   */
  async #text(response, limit, bytesMax) {
    return new TextDecoder().decode(await this.#content(response, limit, bytesMax));
  }

  /**
   * @param {Response} response
   * @param {Limit} limit
   * @param {number} bytesMax
   */
  async #content(response, limit, bytesMax) {
    const parts = [];
    let size = 0;
    for await (const part of this.#chunks(response.body, limit)) {
      size += part.length;
      if (size > bytesMax) throw unexpected(response.status, `an answer of more than ${bytesMax} bytes`);
      parts.push(part);
    }
    return concatenated(parts);
  }

  /**
   * Reads a stream; gives it up when nothing arrives for a minute.
   * @param {ReadableStream<Uint8Array> | null} stream
   * @param {Limit} limit
   */
  async *#chunks(stream, limit) {
    if (!stream) return;
    const reader = stream.getReader();
    let isIdle = false;
    const giveUp = () => {
      isIdle = true;
      reader.cancel().catch(() => {});
    };
    try {
      for (;;) {
        const timer = setTimeout(giveUp, IDLE_MS_MAX);
        const { done, value } = await reader.read().finally(() => clearTimeout(timer));
        if (isIdle) throw new Error(`nothing arrived for ${IDLE_MS_MAX / 1000} s`);
        if (done) return;
        yield value;
      }
    } catch (error) {
      throw this.#lost(error, limit);
    } finally {
      reader.cancel().catch(() => {});
    }
  }

  /**
   * The files of a `tar.gz`.
   * @param {Response} response
   * @param {Limit} limit
   * @param {import('./skillbox.js').ArchiveLimits} limits
   */
  async *#entries(response, limit, limits) {
    if (!response.body) throw unexpected(response.status, 'an archive without content');
    const unzipped = response.body.pipeThrough(/** @type {any} */ (new DecompressionStream('gzip')));
    yield* untar(new ByteReader(this.#chunks(unzipped, limit)), limits);
  }
}

/** @implements {ErrorDetails} */
export class SkillboxError extends Error {
  /** @param {ErrorDetails} details */
  constructor({ status = 0, code, message, requestId, retryable = false, retryAfter, errors = [] }) {
    super(message);
    this.name = 'SkillboxError';
    this.status = status;
    this.code = code;
    this.requestId = requestId;
    this.retryable = retryable;
    this.retryAfter = retryAfter;
    this.errors = errors;
  }
}

/** Ends a call at its time limit or by the caller's signal. */
class Limit {
  #controller = new AbortController();
  /** @type {AbortSignal | undefined} */
  #callers;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  #endsAt;
  #forward = () => this.#controller.abort(this.#callers?.reason);

  /**
   * @param {AbortSignal | undefined} callers
   * @param {number} ms
   */
  constructor(callers, ms) {
    this.#callers = callers;
    this.#endsAt = Date.now() + checkedMs('timeoutMs', ms);
    if (callers?.aborted) this.#forward();
    callers?.addEventListener('abort', this.#forward, { once: true });
    if (ms > TIMER_MS_MAX) return;
    const message = `no result within ${ms} ms; pass a larger timeoutMs`;
    this.#timer = setTimeout(
      () => this.#controller.abort(new SkillboxError({ code: 'timed_out', message, retryable: true })),
      ms,
    );
  }

  get signal() {
    return this.#controller.signal;
  }

  leftMs() {
    return this.#endsAt - Date.now();
  }

  end() {
    clearTimeout(this.#timer);
    this.#callers?.removeEventListener('abort', this.#forward);
  }
}

/** Reads pieces of any size as pieces of the size that is needed. */
class ByteReader {
  #source;
  /** @type {Uint8Array} */
  #rest = new Uint8Array();
  /** Unread bytes of the current content. */
  #contentLeft = 0;

  constructor(/** @type {AsyncGenerator<Uint8Array>} */ source) {
    this.#source = source;
  }

  /** Up to `max` bytes; none only at the end. */
  async some(/** @type {number} */ max) {
    while (this.#rest.length === 0) {
      const { done, value } = await this.#source.next();
      if (done) return this.#rest;
      this.#rest = value;
    }
    const part = this.#rest.subarray(0, max);
    this.#rest = this.#rest.subarray(part.length);
    return part;
  }

  async exactly(/** @type {number} */ size) {
    const bytes = new Uint8Array(size);
    for (let filled = 0; filled < size; ) {
      const part = await this.some(size - filled);
      if (part.length === 0) throw refused('it ends too early');
      bytes.set(part, filled);
      filled += part.length;
    }
    return bytes;
  }

  /** The content of a file; what remains of it is skipped by `skip`. */
  async *content(/** @type {number} */ size) {
    this.#contentLeft = size;
    while (this.#contentLeft > 0) yield await this.#nextOfContent();
  }

  async skip() {
    while (this.#contentLeft > 0) await this.#nextOfContent();
  }

  async #nextOfContent() {
    const part = await this.some(this.#contentLeft);
    if (part.length === 0) throw refused('it ends too early');
    this.#contentLeft -= part.length;
    return part;
  }

  close() {
    return this.#source.return(undefined);
  }
}

/** Paths of an archive. Each is checked before anything is written. */
class Paths {
  /** @type {Set<string>} */
  #files = new Set();
  /** @type {Set<string>} */
  #folders = new Set();

  /** Throws if the path leads out of a folder, or cannot exist beside the earlier ones. */
  add(/** @type {string} */ path) {
    const parts = path.split('/');
    const parents = parts.slice(0, -1).map((_, index) => parts.slice(0, index + 1).join('/'));
    if (/^[A-Za-z]:/.test(path) || parts.some((part) => part === '' || part === '.' || part === '..')) {
      throw refused('an absolute path, or an empty, `.` or `..` part', path);
    }
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is refused
    if (/[\\\u0000-\u001f\u007f-\u009f]/.test(path)) throw refused('a backslash or control character', path);
    if (new TextEncoder().encode(path).length > ARCHIVE_PATH_BYTES_MAX) throw refused('a path that is too long', path);
    if (parents.length > ARCHIVE_DEPTH_MAX) throw refused('too many folders', path);
    if (this.#files.has(path)) throw refused('a second file', path);
    if (this.#folders.has(path) || parents.some((parent) => this.#files.has(parent)))
      throw refused('a file and folder', path);
    this.#files.add(path);
    for (const parent of parents) this.#folders.add(parent);
  }
}

/**
 * The files of a tar as the server writes them: regular files, with GNU names if they are long. Anything else is refused.
 * @param {ByteReader} reader
 * @param {import('./skillbox.js').ArchiveLimits} limits
 * @returns {AsyncGenerator<Entry>}
 */
async function* untar(reader, { maxFiles = ARCHIVE_FILES_MAX, maxBytes = ARCHIVE_BYTES_MAX }) {
  const paths = new Paths();
  /** @type {string | undefined} */
  let longName;
  let files = 0;
  let bytes = 0;
  try {
    for (;;) {
      const block = await reader.exactly(BLOCK_BYTES);
      if (isZero(block)) break;
      const { name, size, type } = tarHeader(block);
      const padding = (BLOCK_BYTES - (size % BLOCK_BYTES)) % BLOCK_BYTES;
      if (type === 'L' && longName === undefined) {
        if (size > ARCHIVE_PATH_BYTES_MAX + 1) throw refused('a path that is too long');
        longName = utf8((await reader.exactly(size + padding)).subarray(0, size)).replace(/\0$/, '');
        continue;
      }
      const path = longName ?? name;
      longName = undefined;
      if (type !== '0')
        throw refused(`an entry of type ${JSON.stringify(type)}, such as a link, folder or device`, path);
      files += 1;
      bytes += size;
      if (files > maxFiles) throw refused(`more than ${maxFiles} files; pass a larger maxFiles`);
      if (bytes > maxBytes) throw refused(`more than ${maxBytes} bytes; pass a larger maxBytes`);
      paths.add(path);
      yield { path, content: reader.content(size) };
      await reader.skip();
      await reader.exactly(padding);
    }
    // Reads to the end, where the checksum is.
    let end = 0;
    for (let rest = await reader.some(BLOCK_BYTES); rest.length > 0; rest = await reader.some(BLOCK_BYTES)) {
      end += rest.length;
      if (!isZero(rest) || end > ARCHIVE_END_BYTES_MAX) throw refused('content after its end');
    }
    if (longName !== undefined) throw refused('it ends after a name');
  } finally {
    await reader.close();
  }
}

function tarHeader(/** @type {Uint8Array} */ block) {
  const field = (/** @type {number} */ from, /** @type {number} */ to) => block.subarray(from, to);
  const octal = (/** @type {Uint8Array} */ bytes) => {
    const text = String.fromCharCode(...bytes).replace(/^ +|[ \0]+$/g, '');
    if (!/^[0-7]+$/.test(text)) throw refused('an invalid number in a header');
    return Number.parseInt(text, 8);
  };
  // The field of the checksum itself counts as eight spaces.
  const sum = block.reduce((total, byte, index) => total + (index >= 148 && index < 156 ? 32 : byte), 0);
  if (sum !== octal(field(148, 156))) throw refused('a header with a wrong checksum');
  if (String.fromCharCode(...field(257, 265)) !== 'ustar  \0') throw refused('a header of another format');
  const end = block.indexOf(0);
  return {
    name: utf8(field(0, Math.min(end === -1 ? 100 : end, 100))),
    size: octal(field(124, 136)),
    type: String.fromCharCode(block[156] ?? 0),
  };
}

/**
 * Writes all files below the folder, or none. Existing files are replaced, links are never followed.
 * @param {AsyncIterable<Entry>} entries
 * @param {string} folder
 */
async function saveFiles(entries, folder) {
  const fs = await builtin('fs/promises');
  const { join, dirname, sep } = await builtin('path');
  await fs.mkdir(folder, { recursive: true });
  const staging = await fs.mkdtemp(join(folder, '.skillbox-'));
  try {
    const paths = [];
    for await (const { path, content } of entries) {
      if (sep === '\\' && path.split('/').some((part) => WINDOWS_NAME.test(part)))
        throw refused('a name with a meaning on Windows', path);
      const target = join(staging, path);
      await fs.mkdir(dirname(target), { recursive: true }).catch(collision(path));
      // Fails on what exists, also where the file system ignores case.
      const file = await fs.open(target, 'wx', 0o644).catch(collision(path));
      try {
        for await (const part of content) await file.appendFile(part);
      } finally {
        await file.close();
      }
      paths.push(path);
    }
    for (const path of paths) {
      let parent = folder;
      for (const part of path.split('/').slice(0, -1)) {
        parent = join(parent, part);
        const isNew = await fs.mkdir(parent).then(
          () => true,
          () => false,
        );
        if (!isNew && !(await fs.lstat(parent)).isDirectory())
          throw refused('a folder that is a link or a file here', path);
      }
    }
    for (const path of paths) await fs.rename(join(staging, path), join(folder, path));
    return paths.map((path) => join(folder, path));
  } finally {
    await fs.rm(staging, { recursive: true, force: true });
  }
}

/** @returns {(error: any) => never} */
function collision(/** @type {string} */ path) {
  return (error) => {
    throw ['EEXIST', 'ENOTDIR'].includes(error.code) ? refused('a name that another file has here', path) : error;
  };
}

/**
 * @param {string} what
 * @param {string} [path]
 */
function refused(what, path) {
  const where = path === undefined ? '' : ` at ${JSON.stringify(path.slice(0, 200))}`;
  return new SkillboxError({
    code: 'unsafe_archive',
    message: `the archive is refused, nothing was written: ${what}${where}`,
  });
}

/**
 * @param {number} status
 * @param {string} what
 */
function unexpected(status, what) {
  return new SkillboxError({ status, code: 'invalid_response', message: `the server sent ${what}` });
}

/** Events of `text/event-stream`; those with a name that this version does not know are skipped. */
async function* serverSentEvents(/** @type {AsyncIterable<Uint8Array>} */ chunks) {
  let id = '';
  let event = '';
  /** @type {string[]} */
  let data = [];
  let size = 0;
  for await (const line of lines(chunks)) {
    if (line === '') {
      if (EVENTS.includes(event)) {
        const value = parsed(data.join('\n'));
        if (typeof value !== 'object' || value === null) throw unexpected(200, `an event \`${event}\` that is no JSON`);
        yield { id, event, data: value };
      }
      event = '';
      data = [];
      size = 0;
      continue;
    }
    size += line.length;
    if (size > JSON_BYTES_MAX) throw unexpected(200, `an event of more than ${JSON_BYTES_MAX} characters`);
    const [, name, value = ''] = /^([^:]*):? ?(.*)$/s.exec(line) ?? [];
    if (name === 'id') id = value;
    else if (name === 'event') event = value;
    else if (name === 'data') data.push(value);
  }
}

async function* lines(/** @type {AsyncIterable<Uint8Array>} */ chunks) {
  const decoder = new TextDecoder();
  /** @type {string[]} */
  let pending = [];
  let size = 0;
  for await (const chunk of chunks) {
    const pieces = decoder.decode(chunk, { stream: true }).split('\n');
    const last = pieces.pop() ?? '';
    for (const piece of pieces) {
      yield (pending.join('') + piece).replace(/\r$/, '');
      pending = [];
      size = 0;
    }
    pending.push(last);
    size += last.length;
    if (size > JSON_BYTES_MAX) throw unexpected(200, `a line of more than ${JSON_BYTES_MAX} characters`);
  }
}

/**
 * @param {string} path
 * @returns {Request}
 */
function get(path) {
  return { method: 'GET', path };
}

/**
 * @param {string} path
 * @param {unknown} value
 * @returns {Request}
 */
function post(path, value) {
  return { method: 'POST', path, body: JSON.stringify(value), type: 'application/json' };
}

function runRequest(/** @type {import('./skillbox.js').RunRequest} */ { files, ...rest }) {
  const encoded = Object.entries(files ?? {}).map(([path, content]) => [
    path,
    typeof content === 'string' ? content : base64(content),
  ]);
  return post('/v1/executions', files ? { ...rest, files: Object.fromEntries(encoded) } : rest);
}

function base64(/** @type {Uint8Array} */ bytes) {
  if (!(bytes instanceof Uint8Array)) throw new TypeError('files: pass a Uint8Array, or a string of base64');
  let text = '';
  for (let at = 0; at < bytes.length; at += BASE64_PIECE_BYTES) {
    text += btoa(String.fromCharCode(...bytes.subarray(at, at + BASE64_PIECE_BYTES)));
  }
  return text;
}

function execution(/** @type {string} */ id) {
  return `/v1/executions/${segment('executionId', id)}`;
}

/**
 * @param {string} name
 * @param {string} version
 */
function skill(name, version) {
  return `/v1/skills/${segment('name', name)}/${segment('version', version)}`;
}

/**
 * @param {string} field
 * @param {string} text
 */
function segment(field, text) {
  // fetch resolves `.` and `..`, which would lead to another route.
  if (typeof text !== 'string' || ['', '.', '..'].includes(text))
    throw new TypeError(`${field}: pass a name, not ${JSON.stringify(text)}`);
  return encodeURIComponent(text);
}

function query(/** @type {Query} */ values) {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    if (value === undefined || value === null) continue;
    parameters.append(name, value instanceof Date ? value.toISOString() : `${value}`);
  }
  const text = parameters.toString();
  return text && `?${text}`;
}

function idOf(/** @type {string | {execution_id: string}} */ result) {
  return typeof result === 'string' ? result : result.execution_id;
}

function hasNoFiles(/** @type {string | {execution_id: string, files_list?: readonly string[]}} */ result) {
  return typeof result !== 'string' && result.files_list?.length === 0;
}

/** Whether a tool's arguments are the input itself, as the server's tool definitions say it. */
function takesObjects(/** @type {any} */ schema) {
  return typeof schema?.type === 'undefined' || [schema.type].flat().includes('object');
}

/** @returns {any} */
function parsed(/** @type {string} */ text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** @returns {number | undefined} */
function secondsUntil(/** @type {string | null} */ retryAfter) {
  const seconds = retryAfter === null ? Number.NaN : Number(retryAfter);
  const date = Number.isNaN(seconds) ? (Date.parse(retryAfter ?? '') - Date.now()) / 1000 : seconds;
  return date > 0 ? Math.ceil(date) : undefined;
}

/** @returns {string} */
function causes(/** @type {any} */ error) {
  const own = error?.message || error?.code || String(error);
  return error?.cause ? `${own}: ${causes(error.cause)}` : own;
}

function checkedUrl(/** @type {string | undefined} */ text) {
  const url = parsedUrl(text);
  if (!url) throw new TypeError('url: pass the address of a server such as http://127.0.0.1:8080');
  if (url.username || url.password || /[?#]/.test(url.href))
    throw new TypeError('url: leave out user, query and fragment');
  return url.href.replace(/\/+$/, '');
}

function parsedUrl(/** @type {string | undefined} */ text) {
  try {
    const url = new URL(text ?? '');
    return ['http:', 'https:'].includes(url.protocol) ? url : undefined;
  } catch {
    return undefined;
  }
}

/**
 * @param {string} name
 * @param {number} ms
 */
function checkedMs(name, ms) {
  if (typeof ms !== 'number' || !(ms > 0)) throw new TypeError(`${name}: pass milliseconds above 0`);
  return ms;
}

/** @returns {text is string} */
function isHeaderText(/** @type {unknown} */ text) {
  return typeof text === 'string' && /^[!-~]+$/.test(text);
}

/**
 * @param {number} ms
 * @param {AbortSignal} signal
 * @returns {Promise<void>}
 */
function sleep(ms, signal) {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', stop);
      resolve();
    }, ms);
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
  });
}

async function randomKey() {
  // Node 18 has it only as a module.
  const crypto = globalThis.crypto ?? (await builtin('crypto')).webcrypto;
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/**
 * A module of Node. Not a constant name, so that bundlers for browsers leave it out.
 * @param {string} name
 * @returns {Promise<any>}
 */
function builtin(name) {
  return import(/* @vite-ignore */ /* webpackIgnore: true */ `node:${name}`);
}

function isZero(/** @type {Uint8Array} */ bytes) {
  return bytes.every((byte) => byte === 0);
}

function utf8(/** @type {Uint8Array} */ bytes) {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw refused('a path that is not UTF-8');
  }
}

/**
 * @param {AsyncIterable<Uint8Array>} content
 */
async function joined(content) {
  const parts = [];
  for await (const part of content) parts.push(part);
  return concatenated(parts);
}

function concatenated(/** @type {Uint8Array[]} */ parts) {
  const bytes = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}
