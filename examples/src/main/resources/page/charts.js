/* The two charts: what uPlot is told, and the colours, which are the style sheet's. */

import { delay, number } from "./format.js";

const WINDOW_S = 120;
const NARROW = 600;

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
}

function font(pixels) {
  return `${pixels}px ${getComputedStyle(document.body).fontFamily}`;
}

/** The last two minutes, whatever there is of them. */
function timeRange(u, min, max) {
  return max === null ? [0, WINDOW_S] : [max - WINDOW_S, max];
}

function timeAxis() {
  return {
    stroke: colour("muted"),
    font: font(12),
    size: 28,
    grid: { stroke: colour("grid"), width: 1 },
    ticks: { show: false },
    splits: (u, axis, min, max) => [120, 90, 60, 30, 0].map((ago) => max - ago),
    values: (u, splits) => {
      const every = u.width < NARROW ? 60 : 30;
      return splits.map((at, i) => {
        const ago = WINDOW_S - 30 * i;
        return ago === 0 ? "now" : ago % every ? null : ago === WINDOW_S ? null : `−${ago} s`;
      });
    },
  };
}

function valueAxis(values, more) {
  return {
    stroke: colour("muted"),
    font: font(12),
    size: 62,
    grid: { stroke: colour("grid"), width: 1 },
    ticks: { show: false },
    values: (u, splits) => splits.map((v) => (v === null ? null : values(v))),
    ...more,
  };
}

/** From one power of ten to another, 1 ms to at least 1 s. */
function delayRange(u, min, max) {
  return [1, Math.max(1000, 10 ** Math.ceil(Math.log10((max ?? 1) * 1.05)))];
}

function powersOfTen(u, axis, min, max) {
  const splits = [];
  for (let v = min; v <= max * 1.001; v *= 10) splits.push(v);
  return splits;
}

/** Tints the time in which there was no shaper. */
function shadeWithout(shaped) {
  return (u) => {
    const { left, top, width, height } = u.bbox;
    const times = u.data[0];
    u.ctx.save();
    u.ctx.fillStyle = colour("off");
    u.ctx.beginPath();
    u.ctx.rect(left, top, width, height);
    u.ctx.clip();
    for (let i = 0, from = null; i <= times.length; i++) {
      const without = i < times.length && shaped()[i] === false;
      if (without && from === null) from = Math.max(0, i - 1);
      if (!without && from !== null) {
        const a = u.valToPos(times[from], "x", true);
        const b = u.valToPos(times[i - 1], "x", true);
        u.ctx.fillRect(a, top, b - a, height);
        label(u, "without the shaper", a + 6 * devicePixelRatio, top + 6 * devicePixelRatio, "hot");
        u.ctx.fillStyle = colour("off");
        from = null;
      }
    }
    u.ctx.restore();
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
    axes: [timeAxis(), valueAxis(delay, { splits: powersOfTen, filter: (u, splits) => splits })],
    hooks: { drawClear: [shadeWithout(shaped)], drawAxes: [promises(levels)] },
  }));
}

export function ratesChart(lines) {
  return new Chart("rates", lines, (value) => number(value) + "/s", (shaped) => ({
    scales: {
      x: { time: false, range: timeRange },
      y: { range: (u, min, max) => [0, Math.max(10, (max ?? 0) * 1.08)] },
    },
    axes: [timeAxis(), valueAxis((value) => number(value) + "/s")],
    hooks: { drawClear: [shadeWithout(shaped)] },
  }));
}
