// Charts as SVG at their real width. One stop of Tab each; arrows move inside, Enter opens, each place says its numbers.
//
//   <${Bars} label="Executions" buckets=${stats.buckets} seconds=${stats.bucket_seconds} onOpen=${(bucket) => …} />
//   <${Latency} buckets=${stats.buckets} seconds=${stats.bucket_seconds} />
//   <${Spark} values=${[1, 2, 3]} label="…" />
import { h, html, useId, useState } from '/ui/vendor/preact.js';
import { lookOf } from '/ui/components/basics.js';
import { clockTime, count, duration, shortDay } from '/ui/format.js';
import { useWidth } from '/ui/hooks.js';

const BARS_PX = 148;
const LATENCY_PX = 148;
const LEFT_PX = 30;
const LATENCY_LEFT_PX = 48;
const TOP_PX = 8;
const LABELS_PX = 24;
const LABEL_WIDTH_PX = 96;
const GRID_LINES = 4;
const SPARK_PX = 96;
const SPARK_BARS = 24;

/** @typedef {import('../types.d.ts').Bucket} Bucket */
/** @typedef {import('../types.d.ts').StatusName} StatusName */

/** From the bottom of a bar to its top. @type {StatusName[]} */
export const ORDER = ['success', 'failed', 'timeout', 'oom', 'denied', 'interrupted', 'cancelled'];

/** @param {Bucket} bucket */
function total(bucket) {
  return ORDER.reduce((sum, name) => sum + (bucket.counts[name] ?? 0), 0);
}

/** The step between grid lines: 1, 2 or 5 times a power of ten. @param {number} most */
function niceStep(most) {
  const rough = Math.max(1, most / GRID_LINES);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((factor) => factor * power >= rough) ?? 10;
  return step * power;
}

/**
 * Places of labels at whole hours or days, as many as fit.
 * @param {Bucket[]} buckets
 * @param {number} seconds
 * @param {number} width
 * @returns {Array<{share: number, text: string}>}
 */
function timeLabels(buckets, seconds, width) {
  if (!buckets.length) return [];
  const start = Date.parse(buckets[0].start);
  const span = buckets.length * seconds * 1000;
  const steps = [5, 10, 15, 30, 60, 120, 240, 480, 720, 1440, 2880].map((minutes) => minutes * 60_000);
  const room = Math.max(1, Math.floor(width / LABEL_WIDTH_PX));
  const step = steps.find((size) => span / size <= room) ?? steps[steps.length - 1];
  const offset = new Date(start).getTimezoneOffset() * 60_000;
  const labels = [];
  for (let at = Math.ceil((start - offset) / step) * step + offset; at < start + span; at += step) {
    labels.push({ share: (at - start) / span, text: step >= 1440 * 60_000 ? shortDay(at) : clockTime(at) });
  }
  return labels;
}

/** @param {Bucket} bucket @param {number} seconds */
export function bucketTime(bucket, seconds) {
  const start = Date.parse(bucket.start);
  const day = seconds >= 3600 ? `${shortDay(start)} ` : '';
  return `${day}${clockTime(start)}–${clockTime(start + seconds * 1000)}`;
}

/** @param {Bucket} bucket */
function countWords(bucket) {
  const parts = ORDER.filter((name) => bucket.counts[name]).map(
    (name) => `${count(bucket.counts[name])} ${lookOf(name).long.toLowerCase()}`,
  );
  return parts.join(', ') || 'nothing ended';
}

/** @param {Bucket} bucket */
function latencyWords(bucket) {
  return bucket.p50_ms === null ? 'nothing ended' : `p50 ${duration(bucket.p50_ms)}, p95 ${duration(bucket.p95_ms)}`;
}

/**
 * The frame of a chart: focus, arrows, the tip, and the same numbers as a table.
 * @param {{label: string, buckets: Bucket[], seconds: number, words: (bucket: Bucket) => string, onOpen?: (bucket: Bucket) => void, left: number,
 *   draw: (width: number, current: number, setCurrent: (index: number) => void) => unknown, columns: Array<[string, (bucket: Bucket) => string]>}} props
 */
function Chart({ label, buckets, seconds, words, onOpen, left, draw, columns }) {
  const [box, width] = useWidth();
  const [current, setCurrent] = useState(-1);
  const id = useId();
  const bucket = buckets[current];
  const onKeyDown = (/** @type {KeyboardEvent} */ event) => {
    const last = buckets.length - 1;
    const from = current < 0 ? last + 1 : current;
    const to = { ArrowLeft: Math.max(0, from - 1), ArrowRight: Math.min(last, from + 1), Home: 0, End: last }[
      event.key
    ];
    if (to !== undefined) {
      event.preventDefault();
      setCurrent(to);
    } else if (event.key === 'Enter' && bucket && onOpen) onOpen(bucket);
    else if (event.key === 'Escape') setCurrent(-1);
  };
  const share = (current + 0.5) / buckets.length;
  const side =
    share < 0.5
      ? { left: `${left + share * (width - left) + 12}px` }
      : { right: `${(1 - share) * (width - left) + 12}px` };
  const hint = onOpen ? 'Arrow keys move, Enter opens the list for that time.' : 'Arrow keys move.';
  return html`<div class="chart" ref=${box}>
      <div class="chart-box" tabindex="0" role="group" aria-label=${`${label} over time`} aria-describedby=${`${id}-hint`} onKeyDown=${onKeyDown}
        onMouseLeave=${() => setCurrent(-1)} onBlur=${() => setCurrent(-1)}>
        ${width > 0 && draw(width, current, setCurrent)}
      </div>
      <span class="sr-only" id=${`${id}-hint`}>${hint}</span>
      <span class="sr-only" aria-live="polite">${bucket && `${bucketTime(bucket, seconds)}: ${words(bucket)}`}</span>
      ${bucket && html`<div class="chart-tip" style=${side} aria-hidden="true"><b>${bucketTime(bucket, seconds)}</b><br />${words(bucket)}</div>`}
    </div>
    <details class="chart-table">
      <summary>Show as table</summary>
      <div class="table-scroll" tabindex="0" role="region" aria-label=${`${label} as table`}>
        <table class="table">
          <thead><tr><th scope="col">Time</th>${columns.map(([name]) => html`<th scope="col" class="right">${name}</th>`)}</tr></thead>
          <tbody>
            ${buckets.map((one) => html`<tr><td>${bucketTime(one, seconds)}</td>${columns.map(([, value]) => html`<td class="right">${value(one)}</td>`)}</tr>`)}
          </tbody>
        </table>
      </div>
    </details>`;
}

/**
 * Grid lines with their labels, and the labels of time.
 * @param {{lines: Array<{y: number, text: string}>, labels: Array<{share: number, text: string}>, left: number, width: number, height: number}} props
 */
function Frame({ lines, labels, left, width, height }) {
  return html`${lines.map(
    ({ y, text }) =>
      html`<line class="grid" x1=${left} x2=${width} y1=${y} y2=${y} /><text x=${left - 8} y=${y + 4} text-anchor="end">${text}</text>`,
  )}
  ${labels.map(({ share, text }) => {
    const x = left + share * (width - left);
    return x < left + 16 || x > width - 16
      ? null
      : html`<text x=${x} y=${height + 20} text-anchor="middle">${text}</text>`;
  })}`;
}

/** A flat bar whose top is rounded. @param {number} x @param {number} y @param {number} width @param {number} height */
function roundedTop(x, y, width, height) {
  const radius = Math.min(2, height, width / 2);
  return `M${x} ${y + height}V${y + radius}q0 ${-radius} ${radius} ${-radius}h${width - 2 * radius}q${radius} 0 ${radius} ${radius}V${y + height}z`;
}

/** @param {Bucket} bucket @param {number} x @param {number} width @param {number} scale @param {number} base */
function stack(bucket, x, width, scale, base) {
  const present = ORDER.filter((name) => bucket.counts[name]);
  let y = base;
  return present.map((name, index) => {
    const height = Math.max(1.5, (bucket.counts[name] ?? 0) * scale);
    const gap = index > 0 ? 1 : 0;
    y -= height;
    const visibleHeight = Math.max(1, height - gap);
    const last = index === present.length - 1;
    const fill = lookOf(name).fill;
    if (last) return h('path', { d: roundedTop(x, y, width, visibleHeight), fill });
    return h('rect', { x, y, width, height: visibleHeight, fill });
  });
}

/** @param {{label: string, buckets: Bucket[], seconds: number, onOpen: (bucket: Bucket) => void}} props */
export function Bars({ label, buckets, seconds, onOpen }) {
  const most = Math.max(1, ...buckets.map(total));
  const step = niceStep(most);
  const top = Math.ceil(most / step) * step;
  const height = TOP_PX + BARS_PX;
  const shown = ORDER.filter((name) => buckets.some((bucket) => bucket.counts[name]));
  const draw = (
    /** @type {number} */ width,
    /** @type {number} */ current,
    /** @type {(index: number) => void} */ setCurrent,
  ) => {
    const lines = Array.from({ length: Math.round(top / step) + 1 }, (_, index) => ({
      y: height - (index * step * BARS_PX) / top + 0.5,
      text: count(index * step),
    }));
    const slot = (width - LEFT_PX) / buckets.length;
    const bar = Math.max(1, Math.min(28, slot * 0.74));
    return html`<svg width=${width} height=${height + LABELS_PX} aria-hidden="true">
      <${Frame} lines=${lines} labels=${timeLabels(buckets, seconds, width - LEFT_PX)} left=${LEFT_PX} width=${width} height=${height} />
      ${buckets.map((bucket, index) => {
        const x = LEFT_PX + index * slot;
        return html`<g key=${bucket.start}>
          ${stack(bucket, x + (slot - bar) / 2, bar, BARS_PX / top, height)}
          <rect class=${`hit ${index === current ? 'current' : ''}`} x=${x} y=${TOP_PX} width=${slot} height=${BARS_PX}
            onMouseEnter=${() => setCurrent(index)} onClick=${() => onOpen(bucket)} />
        </g>`;
      })}
    </svg>`;
  };
  /** @type {Array<[string, (bucket: Bucket) => string]>} */
  const columns = shown.map((name) => [lookOf(name).long, (bucket) => count(bucket.counts[name] ?? 0)]);
  return html`<${Chart} label=${label} buckets=${buckets} seconds=${seconds} words=${countWords} onOpen=${onOpen} left=${LEFT_PX} draw=${draw} columns=${columns} />`;
}

/**
 * Lines through the values; a gap without executions stays a gap, a value between two gaps is a dot.
 * @param {Array<number | null>} values
 * @param {(index: number) => number} x
 * @param {(value: number) => number} y
 * @param {Record<string, string>} look
 */
function linePaths(values, x, y, look) {
  let line = '';
  let dots = '';
  values.forEach((value, index) => {
    if (value === null) return;
    const place = `${x(index).toFixed(1)} ${y(value).toFixed(1)}`;
    const before = (values[index - 1] ?? null) !== null;
    const after = (values[index + 1] ?? null) !== null;
    if (before || after) line += `${before ? 'L' : 'M'}${place}`;
    else dots += `M${place}h0.01`;
  });
  const shape = { fill: 'none', 'stroke-linejoin': 'round', 'stroke-linecap': 'round' };
  return [
    h('path', { ...shape, ...look, 'stroke-width': 1.6, d: line }),
    h('path', { ...shape, stroke: look.stroke, 'stroke-width': 5, d: dots }),
  ];
}

/** @param {{buckets: Bucket[], seconds: number}} props */
export function Latency({ buckets, seconds }) {
  const values = buckets.flatMap((bucket) => [bucket.p50_ms, bucket.p95_ms]).filter((value) => value !== null);
  const low = Math.floor(Math.log10(Math.max(1, Math.min(...values, 1e6))));
  const from = values.length ? low : 1;
  const to = Math.max(from + 2, Math.ceil(Math.log10(Math.max(1, ...values))));
  const height = TOP_PX + LATENCY_PX;
  const y = (/** @type {number} */ ms) =>
    height - ((Math.log10(Math.max(10 ** from, ms)) - from) / (to - from)) * LATENCY_PX;
  const draw = (
    /** @type {number} */ width,
    /** @type {number} */ current,
    /** @type {(index: number) => void} */ setCurrent,
  ) => {
    const slot = (width - LATENCY_LEFT_PX) / buckets.length;
    const x = (/** @type {number} */ index) => LATENCY_LEFT_PX + (index + 0.5) * slot;
    const lines = Array.from({ length: to - from + 1 }, (_, index) => ({
      y: y(10 ** (from + index)) + 0.5,
      text: powerWords(from + index),
    }));
    const p50 = buckets.map((bucket) => bucket.p50_ms);
    const p95 = buckets.map((bucket) => bucket.p95_ms);
    return html`<svg width=${width} height=${height + LABELS_PX} aria-hidden="true">
      <${Frame} lines=${lines} labels=${timeLabels(buckets, seconds, width - LATENCY_LEFT_PX)} left=${LATENCY_LEFT_PX} width=${width} height=${height} />
      ${linePaths(p95, x, y, { stroke: 'var(--text-3)', 'stroke-dasharray': '3 3' })}
      ${linePaths(p50, x, y, { stroke: 'var(--accent)' })}
      ${buckets.map(
        (
          bucket,
          index,
        ) => html`<rect key=${bucket.start} class=${`hit plain ${index === current ? 'current' : ''}`} x=${x(index) - slot / 2} y=${TOP_PX}
          width=${slot} height=${LATENCY_PX} onMouseEnter=${() => setCurrent(index)} />`,
      )}
    </svg>`;
  };
  /** @type {Array<[string, (bucket: Bucket) => string]>} */
  const columns = [
    ['p50', (bucket) => duration(bucket.p50_ms)],
    ['p95', (bucket) => duration(bucket.p95_ms)],
  ];
  return html`<${Chart} label="Latency" buckets=${buckets} seconds=${seconds} words=${latencyWords} left=${LATENCY_LEFT_PX} draw=${draw} columns=${columns} />`;
}

/** `10 ms`, `1 s`, `100 s`. @param {number} power */
function powerWords(power) {
  return power >= 3 ? `${10 ** (power - 3)} s` : `${10 ** power} ms`;
}

/** Sums of neighbours, so that bars stay wide enough. @param {number[]} values */
function grouped(values) {
  const size = Math.ceil(values.length / SPARK_BARS);
  return Array.from({ length: Math.ceil(values.length / size) }, (_, index) =>
    values.slice(index * size, (index + 1) * size).reduce((sum, value) => sum + value, 0),
  );
}

/** @param {{values: number[], label: string}} props */
export function Spark({ values, label }) {
  const bars = grouped(values);
  const most = Math.max(1, ...bars);
  const slot = SPARK_PX / Math.max(1, bars.length);
  return html`<svg class="spark" width=${SPARK_PX} height="20" role="img" aria-label=${label}>
    ${bars.map((value, index) => {
      const height = value ? Math.max(2, (value / most) * 19) : 1;
      return html`<rect x=${index * slot} y=${20 - height} width=${Math.max(1, slot - 1)} height=${height} fill="var(--accent)" opacity=${value ? 1 : 0.35} />`;
    })}
  </svg>`;
}
