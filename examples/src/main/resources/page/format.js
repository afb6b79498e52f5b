/* Numbers for people: digits in groups, and always with a unit. */

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

export function number(value) {
  return value === null || value === undefined ? "–" : whole.format(value);
}

/** So many of them. */
export function count(value, one) {
  return `${number(value)} ${one}${value === 1 ? "" : "s"}`;
}

function trimmed(value, digits) {
  return String(Number(value.toFixed(digits)));
}

/** A delay in milliseconds, with three digits at most. */
export function delay(ms) {
  if (ms === null || ms === undefined) return "–";
  if (ms < 1) return "<1 ms";
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  const s = ms / 1000;
  return s < 9.995 ? `${trimmed(s, 2)} s` : s < 99.95 ? `${trimmed(s, 1)} s` : `${number(s)} s`;
}

/** A span of time that somebody has set, exactly. */
function span(ms) {
  for (const [unit, size] of [["d", 86_400_000], ["h", 3_600_000], ["min", 60_000], ["s", 1000]]) {
    if (ms >= size && ms % size === 0) return `${number(ms / size)} ${unit}`;
  }
  return `${number(ms)} ms`;
}

export function bytes(value) {
  for (const [unit, size] of [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]]) {
    if (value >= size) return `${trimmed(value / size, 1)} ${unit}`;
  }
  return `${number(value)} B`;
}

/** What a setting of the shaper says. */
export function setting(name, value) {
  if (value === null) return name === "shaper.burst" ? "worked out" : "none";
  if (name.endsWith(".ms")) return value < 0 ? "off" : span(value);
  if (name.endsWith(".bytes")) return bytes(value);
  if (name === "shaper.rate") return `${number(value)}/s`;
  return typeof value === "number" ? number(value) : String(value);
}
