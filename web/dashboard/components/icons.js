// Icons as SVG nodes: 16 px, stroke 1.6, drawn in the colour of the text.
//
//   <${Icon} name="copy" />            decorative
//   <${Icon} name="copy" size=${20} />
import { h } from '/ui/vendor/preact.js';

/** @type {Record<string, string>} path data on a grid of 16; several paths are separated by `|` */
const PATHS = {
  overview: 'M2.5 13.5v-4M6.2 13.5v-9M9.8 13.5V7M13.5 13.5v-11',
  executions: 'M6 4h8M6 8h8M6 12h8M2.3 4h1M2.3 8h1M2.3 12h1',
  skills: 'M8 1.8 13.5 5v6L8 14.2 2.5 11V5zM2.7 5.1 8 8.1l5.3-3M8 8.1v6',
  playground: 'M5.2 4.5 1.7 8l3.5 3.5M10.8 4.5 14.3 8l-3.5 3.5',
  security: 'M8 1.8l5 1.7v4.2c0 3.3-2.2 5.5-5 6.5-2.8-1-5-3.2-5-6.5V3.5z',
  connect: 'M5.5 1.8v3.4M10.5 1.8v3.4M3.5 5.2h9v2.3a4.5 4.5 0 0 1-9 0zM8 12v2.5',
  theme: 'M8 1.8a6.2 6.2 0 1 0 0 12.4A6.2 6.2 0 1 0 8 1.8M8 1.8v12.4M8 4.5a3.5 3.5 0 0 1 0 7',
  'sign-out': 'M6 2.5H2.8v11H6M6.2 8h7.6M10.8 4.8 14 8l-3.2 3.2',
  search: 'M7 2.2a4.8 4.8 0 1 0 0 9.6 4.8 4.8 0 1 0 0-9.6M10.5 10.5l3.7 3.7',
  copy: 'M5.5 5.5h8v8h-8zM10.5 5.3V2.5h-8v8h2.8',
  download: 'M8 2v8.2M4.6 7 8 10.3 11.4 7M2.5 13.7h11',
  upload: 'M8 10.5V2.3M4.6 5.5 8 2.2l3.4 3.3M2.5 13.7h11',
  refresh: 'M13.3 8A5.3 5.3 0 1 1 11.6 4.1M13.5 1.8v3.4h-3.4',
  play: 'M4.5 2.8v10.4L13 8z',
  check: 'M3 8.5l3.3 3.2L13 4.8',
  close: 'M3.8 3.8l8.4 8.4M12.2 3.8l-8.4 8.4',
  plus: 'M8 3v10M3 8h10',
  trash: 'M2.8 4.3h10.4M6.2 4V2.3h3.6V4M4.2 4.5l.6 9h6.4l.6-9M6.7 7v4M9.3 7v4',
  key: 'M10.3 2.2a3.5 3.5 0 1 0 0 7 3.5 3.5 0 1 0 0-7M7.8 8.2l-5.3 5.3M4.3 11.7l1.8 1.8',
  lock: 'M3.5 7.2h9v6.5h-9zM5.3 7V5a2.7 2.7 0 0 1 5.4 0v2',
  file: 'M9.2 1.8H3.8v12.4h8.4V4.8zM9 2v3h3',
  folder: 'M1.8 3.5h4.5l1.5 2h6.4v7.5H1.8z',
  menu: 'M2.5 4.5h11M2.5 8h11M2.5 11.5h11',
  more: 'M3.5 8h.01M8 8h.01M12.5 8h.01',
  down: 'M4 6l4 4 4-4',
  right: 'M6 4l4 4-4 4',
  wrap: 'M2.2 3.8h11.6M2.2 8h9a2.3 2.3 0 0 1 0 4.6H8.5M10.2 10.8l-1.9 1.8 1.9 1.9M2.2 12.2h3',
  follow: 'M8 2.3v8.5M4.5 7.5 8 11l3.5-3.5M3.5 13.8h9',
  keyboard: 'M1.8 4h12.4v8.2H1.8zM4.3 6.6h.01M6.8 6.6h.01M9.3 6.6h.01M11.7 6.6h.01M5 9.6h6',
  info: 'M8 1.8a6.2 6.2 0 1 0 0 12.4A6.2 6.2 0 1 0 8 1.8M8 7.3v3.9M8 4.8h.01',
  warning: 'M8 2.3 14.5 13.5h-13zM8 6.5v3.3M8 11.6h.01',
  storage:
    'M2.5 3.8c0-1 2.5-1.8 5.5-1.8s5.5.8 5.5 1.8-2.5 1.8-5.5 1.8-5.5-.8-5.5-1.8M2.5 3.8v8.4c0 1 2.5 1.8 5.5 1.8s5.5-.8 5.5-1.8V3.8M2.5 8c0 1 2.5 1.8 5.5 1.8s5.5-.8 5.5-1.8',
  success: 'M8 1.8a6.2 6.2 0 1 0 0 12.4A6.2 6.2 0 1 0 8 1.8M5.2 8.3 7.2 10.2 10.9 6.2',
  failed: 'M8 1.8a6.2 6.2 0 1 0 0 12.4A6.2 6.2 0 1 0 8 1.8M5.9 5.9l4.2 4.2M10.1 5.9l-4.2 4.2',
  timeout: 'M8 1.8a6.2 6.2 0 1 0 0 12.4A6.2 6.2 0 1 0 8 1.8M8 4.8V8l2.3 1.6',
  oom: 'M4 4h8v8H4zM6.5 6.5h3v3h-3zM6 1.8V4M10 1.8V4M6 12v2.2M10 12v2.2M1.8 6H4M1.8 10H4M12 6h2.2M12 10h2.2',
  cancelled: 'M8 1.8a6.2 6.2 0 1 0 0 12.4A6.2 6.2 0 1 0 8 1.8M3.8 12.2l8.4-8.4',
  denied: 'M8 1.8l5 1.7v4.2c0 3.3-2.2 5.5-5 6.5-2.8-1-5-3.2-5-6.5V3.5zM6.3 6l3.4 3.4M9.7 6 6.3 9.4',
  interrupted: 'M9 1.8 3.5 9h4l-.8 5.2L12.5 7h-4z',
};

/**
 * @param {{name: string, size?: number, class?: string}} props
 */
export function Icon({ name, size = 16, class: className = '' }) {
  const svg = {
    width: size,
    height: size,
    viewBox: '0 0 16 16',
    fill: 'none',
    stroke: 'currentColor',
    'stroke-width': 1.6,
    'stroke-linecap': 'round',
    'stroke-linejoin': 'round',
    'aria-hidden': 'true',
    class: className,
  };
  if (name === 'queued') return h('svg', svg, h('circle', { cx: 8, cy: 8, r: 6.2, 'stroke-dasharray': '2.4 2.47' }));
  if (name === 'running') {
    const ring = h('circle', { cx: 8, cy: 8, r: 6.2, opacity: 0.3 });
    return h('svg', { ...svg, class: `spin ${className}` }, ring, h('path', { d: 'M8 1.8A6.2 6.2 0 0 1 14.2 8' }));
  }
  return h('svg', svg, h('path', { d: PATHS[name] ?? PATHS.info }));
}

/** The mark of Skillbox. @param {{size?: number}} props */
export function Mark({ size = 22 }) {
  return h(
    'svg',
    { width: size, height: size, viewBox: '0 0 24 24', 'aria-hidden': 'true' },
    h('path', { fill: 'currentColor', d: 'M12 1.5 21.1 6.75v10.5L12 22.5l-9.1-5.25V6.75z' }),
    h('path', {
      fill: 'none',
      stroke: 'var(--surface)',
      'stroke-width': 2,
      'stroke-linecap': 'round',
      'stroke-linejoin': 'round',
      d: 'M7.5 9.2 12 11.8l4.5-2.6M12 11.8V17',
    }),
  );
}
