// The only module that sends requests: page token, problem documents, uploads, saved files.

const PAGE_TOKEN = 'skillbox-page';
const PAGE_HEADER = 'X-Skillbox-Page';

/** @typedef {import('./types.d.ts').Problem} Problem */
/** @typedef {{pointer: string, message: string}} Fault */
/**
 * @typedef {object} RequestOptions
 * @property {string} [method]
 * @property {unknown} [json] body, sent as JSON
 * @property {BodyInit} [body] body, sent as it is
 * @property {Record<string, string>} [headers]
 * @property {AbortSignal} [signal]
 */

/** A refused or failed request. */
export class ApiError extends Error {
  /**
   * @param {number} status 0 if no answer arrived
   * @param {Partial<Problem>} problem
   */
  constructor(status, problem) {
    super(problem.detail || problem.title || `The server answered ${status}.`);
    this.name = 'ApiError';
    this.status = status;
    /** @type {string} */
    this.code = problem.code || (status ? 'unknown' : 'unreachable');
    /** @type {string | null} */
    this.requestId = problem.request_id || null;
    /** @type {number | null} */
    this.retryAfter = problem.retry_after ?? null;
    this.retryable = problem.retryable ?? status === 0;
    /** @type {Fault[]} */
    this.faults = problem.errors || [];
  }
}

/** @returns {string | null} */
export function pageToken() {
  try {
    return localStorage.getItem(PAGE_TOKEN);
  } catch {
    return null;
  }
}

/** @param {string | null} token */
export function keepPageToken(token) {
  try {
    if (token === null) localStorage.removeItem(PAGE_TOKEN);
    else localStorage.setItem(PAGE_TOKEN, token);
  } catch {
    // Without storage the session lasts as long as the page.
  }
}

/** @type {() => void} */
let signedOut = () => {};

/** @param {() => void} listener called when the server no longer knows the session */
export function onSignedOut(listener) {
  signedOut = listener;
}

/** @returns {Record<string, string>} */
function sessionHeaders() {
  const token = pageToken();
  return token ? { [PAGE_HEADER]: token } : {};
}

/**
 * @param {number} status
 * @param {string} text
 * @param {string | null} requestId
 */
function refusal(status, text, requestId) {
  /** @type {Partial<Problem>} */
  let problem = { request_id: requestId ?? undefined };
  try {
    const parsed = JSON.parse(text);
    if (parsed && typeof parsed === 'object') problem = { ...problem, ...parsed };
  } catch {
    // A proxy may answer without a problem document.
  }
  if (status === 401) signedOut();
  return new ApiError(status, problem);
}

/** @param {unknown} error */
function unreachable(error) {
  if (error instanceof DOMException && error.name === 'AbortError') return error;
  return new ApiError(0, { detail: 'The server did not answer. Check that it runs and that the network works.' });
}

/**
 * Sends a request; anything but 2xx throws an `ApiError`.
 * @param {string} path
 * @param {RequestOptions} [options]
 * @returns {Promise<Response>}
 */
export async function send(path, options = {}) {
  /** @type {Record<string, string>} */
  const headers = { Accept: 'application/json', ...sessionHeaders(), ...options.headers };
  let body = options.body;
  if (options.json !== undefined) {
    headers['Content-Type'] = 'application/json';
    body = JSON.stringify(options.json);
  }
  const method = options.method ?? (body === undefined ? 'GET' : 'POST');
  /** @type {Response} */
  let response;
  try {
    response = await fetch(path, { method, headers, body, signal: options.signal, credentials: 'same-origin' });
  } catch (error) {
    throw unreachable(error);
  }
  if (!response.ok) throw refusal(response.status, await response.text(), response.headers.get('X-Request-Id'));
  return response;
}

/**
 * @param {string} path
 * @param {RequestOptions} [options]
 * @returns {Promise<any>} the parsed body; `null` if there is none
 */
export async function getJson(path, options) {
  const text = await getText(path, options);
  return text ? JSON.parse(text) : null;
}

/**
 * @param {string} path
 * @param {RequestOptions} [options]
 * @returns {Promise<string>}
 */
export async function getText(path, options) {
  const response = await send(path, options);
  try {
    return await response.text();
  } catch (error) {
    throw unreachable(error);
  }
}

/**
 * @param {string} path
 * @param {unknown} json
 * @param {RequestOptions} [options]
 * @returns {Promise<any>}
 */
export function postJson(path, json, options) {
  return getJson(path, { ...options, method: options?.method ?? 'POST', json });
}

/**
 * @param {string} path
 * @param {RequestOptions} [options]
 * @returns {Promise<any>}
 */
export function remove(path, options) {
  return getJson(path, { ...options, method: 'DELETE' });
}

/**
 * Uploads with progress, which `fetch` does not report.
 * @param {string} path
 * @param {Blob} blob
 * @param {{type?: string, onProgress?: (sent: number, total: number) => void, signal?: AbortSignal}} [options]
 * @returns {Promise<any>}
 */
export function upload(path, blob, { type = 'application/zip', onProgress, signal } = {}) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open('POST', path);
    request.setRequestHeader('Content-Type', type);
    request.setRequestHeader('Accept', 'application/json');
    for (const [name, value] of Object.entries(sessionHeaders())) request.setRequestHeader(name, value);
    request.upload.onprogress = (event) => onProgress?.(event.loaded, event.total);
    request.onerror = () => reject(unreachable(null));
    request.onabort = () => reject(new DOMException('Aborted', 'AbortError'));
    request.onload = () => {
      const { status, responseText } = request;
      if (status >= 200 && status < 300) resolve(responseText ? JSON.parse(responseText) : null);
      else reject(refusal(status, responseText, request.getResponseHeader('X-Request-Id')));
    };
    signal?.addEventListener('abort', () => request.abort());
    request.send(blob);
  });
}

/**
 * A path with a query; empty values are left out.
 * @param {string} path
 * @param {Record<string, string | number | boolean | null | undefined>} query
 */
export function withQuery(path, query) {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== '' && value !== false) parameters.set(name, String(value));
  }
  const text = parameters.toString();
  return text ? `${path}?${text}` : path;
}

/**
 * Only the path and query of a signed link: links of another host must not leave this page.
 * @param {string | null | undefined} url
 * @returns {string | undefined}
 */
export function ownPath(url) {
  if (!url) return undefined;
  try {
    const parsed = new URL(url, location.origin);
    return parsed.protocol.startsWith('http') && parsed.pathname.startsWith('/v1/')
      ? parsed.pathname + parsed.search
      : undefined;
  } catch {
    return undefined;
  }
}

const KEPT_MS = 60_000;

/**
 * @param {string} name
 * @param {Blob} blob
 */
export function saveBlob(name, blob) {
  const url = URL.createObjectURL(blob);
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), KEPT_MS);
}
