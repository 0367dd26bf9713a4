// Times, durations, sizes and numbers as words of the dashboard.

const NONE = '–';
const UNITS = ['KiB', 'MiB', 'GiB', 'TiB'];

/**
 * `<1 ms`, `179 ms`, `1.77 s`, `2 m 5 s`, `3 h 4 m`.
 * @param {number | null | undefined} ms
 */
export function duration(ms) {
  if (ms === null || ms === undefined || Number.isNaN(ms)) return NONE;
  if (ms < 1) return '<1 ms';
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < 9_995) return `${(ms / 1000).toFixed(2)} s`;
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 3600) return `${Math.floor(seconds / 60)} m ${seconds % 60} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 1440) return `${Math.floor(minutes / 60)} h ${minutes % 60} m`;
  return `${Math.floor(minutes / 1440)} d ${Math.floor((minutes % 1440) / 60)} h`;
}

/** @param {number | null | undefined} count */
export function bytes(count) {
  if (count === null || count === undefined) return NONE;
  if (count < 1024) return `${count} B`;
  let value = count;
  let unit = -1;
  do {
    value /= 1024;
    unit += 1;
  } while (value >= 1023.95 && unit < UNITS.length - 1);
  const digits = value >= 100 || Number.isInteger(value) ? 0 : 1;
  return `${value.toFixed(digits)} ${UNITS[unit]}`;
}

const grouped = new Intl.NumberFormat('en-US');

/** @param {number | null | undefined} value */
export function count(value) {
  return value === null || value === undefined ? NONE : grouped.format(value);
}

/**
 * `3 versions`, `1 version`.
 * @param {number} value
 * @param {string} one
 * @param {string} [many]
 */
export function counted(value, one, many = `${one}s`) {
  return `${count(value)} ${value === 1 ? one : many}`;
}

/**
 * `87.3 %`; never 100 % while a part is missing.
 * @param {number} part
 * @param {number} whole
 */
export function percent(part, whole) {
  if (!whole) return NONE;
  const share = (part / whole) * 100;
  if (share === 100 || share === 0) return `${share} %`;
  return `${Math.min(99.9, Math.max(0.1, share)).toFixed(1)} %`;
}

/**
 * `now`, `5 min ago`, `2 h ago`, `3 days ago`.
 * @param {string | number | Date | null | undefined} time
 * @param {number} [now]
 */
export function ago(time, now = Date.now()) {
  if (time === null || time === undefined) return NONE;
  const seconds = Math.round((now - new Date(time).getTime()) / 1000);
  if (seconds < 0) return until(-seconds);
  if (seconds < 5) return 'now';
  if (seconds < 60) return `${seconds} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ago`;
  const days = Math.floor(seconds / 86_400);
  return days === 1 ? '1 day ago' : `${days} days ago`;
}

/** @param {number} seconds */
function until(seconds) {
  if (seconds < 60) return 'in a moment';
  if (seconds < 3600) return `in ${Math.floor(seconds / 60)} min`;
  if (seconds < 86_400) return `in ${Math.floor(seconds / 3600)} h`;
  const days = Math.floor(seconds / 86_400);
  return days === 1 ? 'in 1 day' : `in ${days} days`;
}

const full = new Intl.DateTimeFormat('en-GB', {
  day: 'numeric',
  month: 'short',
  year: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
});
const clock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' });
const dayAndMonth = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' });

/**
 * `22 Nov 2026, 21:41:02`
 * @param {string | number | Date | null | undefined} time
 */
export function fullTime(time) {
  return time === null || time === undefined ? NONE : full.format(new Date(time));
}

/** @param {number | Date} time */
export function clockTime(time) {
  return clock.format(time);
}

/** @param {number | Date} time */
export function shortDay(time) {
  return dayAndMonth.format(time);
}

/**
 * The part of an id that differs: the end of a UUIDv7.
 * @param {string} id
 */
export function shortId(id) {
  return id.slice(-12, -4);
}

/**
 * The first twelve digits of a digest.
 * @param {string | null | undefined} digest
 */
export function shortDigest(digest) {
  return digest ? `${digest.replace(/^sha256:/, '').slice(0, 12)}…` : NONE;
}

// Bidirectional controls, zero-width and other invisible characters that can disguise a text.
const INVISIBLE =
  /[\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;

/**
 * Shows invisible characters as `⟨U+202E⟩`.
 * @param {string} text
 */
export function visible(text) {
  return text.replace(INVISIBLE, (character) => {
    const code = /** @type {number} */ (character.codePointAt(0));
    return `⟨U+${code.toString(16).toUpperCase().padStart(4, '0')}⟩`;
  });
}
