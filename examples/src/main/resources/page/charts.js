/* The two charts: what uPlot is told, and the colours, which are the style sheet's. */

import { delay, number } from "./format.js";

const WINDOW_S = [30, 120];
const NARROW = 600;

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
}

function font(pixels) {
  return `${pixels}px ${getComputedStyle(document.body).fontFamily}`;
}

/** As far back as there are figures, within bounds. */
function timeRange(u, min, max) {
  const [least, most] = WINDOW_S;
  return max === null ? [0, least] : [max - Math.min(most, Math.max(least, max - min)), max];
}

function secondsAgo(u, axis, min, max) {
  const every = (max - min > 60 ? 30 : 10) * (u.width < NARROW ? 2 : 1);
  const splits = [];
  for (let at = max; at > min + every / 4; at -= every) splits.unshift(at);
  return splits;
}

function timeAxis() {
  return {
    stroke: colour("muted"),
    font: font(12),
    size: 28,
    grid: { stroke: colour("grid"), width: 1 },
    ticks: { show: false },
    splits: secondsAgo,
    values: (u, splits) => splits.map((at) => ago(Math.round(splits.at(-1) - at))),
  };
}

function ago(seconds) {
  return seconds === 0 ? "now" : `−${seconds} s`;
}

function valueAxis(values) {
  return {
    stroke: colour("muted"),
    font: font(12),
    size: 74,
    grid: { stroke: colour("grid"), width: 1 },
    ticks: { show: false },
    values: (u, splits) => splits.map((v) => (v === null ? null : values(v))),
    ...atPowersOfTen,
  };
}

/** From one power of ten to another, 1 ms to at least 1 s. */
function delayRange(u, min, max) {
  return [1, Math.max(1000, powerAbove(max ?? 1))];
}

function powerAbove(value) {
  return 10 ** Math.ceil(Math.log10(value * 1.05));
}

function powersOfTen(u, axis, min, max) {
  const splits = min === 0 ? [0] : [];
  for (let v = 1; v <= max * 1.001; v *= 10) splits.push(v);
  return splits;
}

const atPowersOfTen = { splits: powersOfTen, filter: (u, splits) => splits };

/** From where to where there was no shaper, in canvas pixels. */
function timesWithout(u, shaped) {
  const times = u.data[0];
  const at = (i) => u.valToPos(times[i], "x", true);
  const spans = [];
  for (let i = 0; i < times.length; i++) {
    if (shaped[i] !== false) continue;
    const from = Math.max(u.bbox.left, at(Math.max(0, i - 1)));
    while (i + 1 < times.length && shaped[i + 1] === false) i++;
    spans.push([from, at(i)]);
  }
  return spans;
}

/** Tints the time without, and writes so once the lines are there. */
function withoutHooks(shaped) {
  return {
    drawClear: [
      (u) => {
        u.ctx.fillStyle = colour("off");
        for (const [from, to] of timesWithout(u, shaped())) {
          u.ctx.fillRect(from, u.bbox.top, to - from, u.bbox.height);
        }
      },
    ],
    draw: [
      (u) => {
        for (const [from, to] of timesWithout(u, shaped())) {
          const text = "without the shaper";
          u.ctx.font = font(12 * devicePixelRatio);
          if (u.ctx.measureText(text).width + 12 * devicePixelRatio < to - from) {
            label(u, text, from + 6 * devicePixelRatio, u.bbox.top + 6 * devicePixelRatio, "hot");
          }
        }
      },
    ],
  };
}

function label(u, text, x, y, name, align = "left", baseline = "top") {
  u.ctx.fillStyle = colour(name);
  u.ctx.font = font(12 * devicePixelRatio);
  u.ctx.textAlign = align;
  u.ctx.textBaseline = baseline;
  u.ctx.fillText(text, x, y);
}

/** Lines across for what the settings promise. */
function promises(levels) {
  return (u) => {
    const { left, width } = u.bbox;
    for (const [text, ms] of levels()) {
      const y = u.valToPos(ms, "y", true);
      u.ctx.save();
      u.ctx.strokeStyle = colour("muted");
      u.ctx.setLineDash([2 * devicePixelRatio, 4 * devicePixelRatio]);
      u.ctx.beginPath();
      u.ctx.moveTo(left, y);
      u.ctx.lineTo(left + width, y);
      u.ctx.stroke();
      label(u, text, left + 6 * devicePixelRatio, y - 2 * devicePixelRatio, "muted", "left", "bottom");
      u.ctx.restore();
    }
  };
}

/**
 * A chart in its element, with a legend that shows the newest figures, or those under the pointer.
 *
 * @param lines {label, colour, dashed, value(point)}
 */
export class Chart {
  constructor(id, lines, format, options) {
    this.element = document.getElementById(id);
    this.lines = lines;
    this.format = format;
    this.options = options;
    this.points = [];
    this.legend = lines.map((line) => legendEntry(id, line));
    new ResizeObserver(() => this.plot?.setSize(this.size())).observe(this.element);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    this.draw();
  }

  size() {
    return { width: this.element.clientWidth, height: this.element.clientHeight };
  }

  draw() {
    this.plot?.destroy();
    this.plot = new uPlot(
      {
        ...this.size(),
        padding: [8, 16, 0, 0],
        legend: { show: false },
        cursor: { y: false, drag: { x: false, y: false }, points: { size: 7 } },
        series: [
          {},
          ...this.lines.map((line) => ({
            stroke: colour(line.colour),
            width: line.dashed ? 1.5 : 2.25,
            dash: line.dashed ? [5, 4] : undefined,
            points: { show: false },
            spanGaps: false,
          })),
        ],
        ...this.options(() => this.points.map((point) => point.shaped)),
      },
      this.data(),
      this.element,
    );
    this.plot.hooks.setCursor = [() => this.showLegend()];
    this.showLegend();
  }

  show(points) {
    this.points = points;
    this.element.dataset.points = points.length;
    this.plot.setData(this.data());
    this.showLegend();
  }

  data() {
    return [
      this.points.map((point) => point.atMs / 1000),
      ...this.lines.map((line) => this.points.map((point) => line.value(point) ?? null)),
    ];
  }

  showLegend() {
    const at = this.plot.cursor.idx ?? this.points.length - 1;
    this.legend.forEach((figure, i) => {
      const value = at < 0 || !this.points[at] ? null : this.lines[i].value(this.points[at]);
      figure.textContent = value == null ? "–" : this.format(value);
    });
  }
}

function legendEntry(id, line) {
  const item = document.createElement("li");
  const swatch = document.createElement("i");
  const figure = document.createElement("b");
  swatch.style.color = `var(--${line.colour})`;
  swatch.classList.toggle("dashed", Boolean(line.dashed));
  item.append(swatch, line.label + " ", figure);
  document.getElementById(id + "-legend").append(item);
  return figure;
}

export function delayChart(lines, levels) {
  return new Chart("delay", lines, delay, (shaped) => ({
    scales: { x: { time: false, range: timeRange }, y: { distr: 3, range: delayRange } },
    axes: [timeAxis(), valueAxis(delay)],
    hooks: { ...withoutHooks(shaped), drawAxes: [promises(levels)] },
  }));
}

export function ratesChart(lines) {
  return new Chart("rates", lines, (value) => number(value) + "/s", (shaped) => ({
    scales: {
      x: { time: false, range: timeRange },
      // Logarithmic, but for what is near zero.
      y: { distr: 4, asinh: 1, range: (u, min, max) => [0, powerAbove(Math.max(999, max ?? 0))] },
    },
    axes: [timeAxis(), valueAxis((value) => number(value) + "/s")],
    hooks: withoutHooks(shaped),
  }));
}
