/* Asks once a second for what is new, and shows it. */

import { delayChart, ratesChart } from "./charts.js";
import { bytes, count, delay, number, setting } from "./format.js";

const KEPT = 121;
const TABLE_ROWS = 15;
const SPEAK_EVERY_MS = 20_000;
const REASONS = ["codel", "ceiling", "expired", "overlimit"];
const WHOSE = { quiet: "quiet keys", hot: "hot key", all: "all keys" };

const $ = (id) => document.getElementById(id);

let page = null;
let taken = 0;
let points = [];
let now = null;
let settings = [];
let charts = null;
let tiles = null;
let spokenAt = 0;
let spokenState = null;

function element(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

const sum = (values) => values.reduce((a, b) => a + b, 0);
const dropped = (point) => sum(REASONS.map((reason) => point.perSecond[reason] ?? 0));

/* What is new. */

async function ask() {
  const response = await fetch(`page/data?after=${taken}`, { signal: AbortSignal.timeout(5000) });
  if (!response.ok) throw new Error(`status ${response.status}`);
  const answer = await response.json();
  if (answer.page !== page) {
    page = answer.page;
    points = [];
    if (taken > 0) {
      taken = 0;
      return ask(); // what was seen, was another's
    }
  }
  taken = answer.taken;
  now = answer.now;
  points = points.concat(answer.points).slice(-KEPT);
  if (answer.settings) showSettings(answer.settings);
  if (points.length > 0) show();
}

async function follow() {
  try {
    await ask();
  } catch (failure) {
    showState("no connection");
  }
  setTimeout(follow, 1000);
}

/* All of it. */

function show() {
  charts ??= makeCharts();
  charts.forEach((chart) => chart.show(points));
  showState(now.state);
  showSwitches();
  showTiles();
  showSummary();
  showFlows();
  showFigures();
}

function showState(state) {
  if ($("state").textContent !== state) {
    $("state").textContent = state;
    $("state").dataset.state = state;
  }
}

function makeCharts() {
  const whose = Object.keys(points[0].delays);
  const quantiles = whose.length > 1 ? ["p99", "p50"] : ["max", "p99", "p50"];
  const delays = whose.flatMap((who) =>
    quantiles.map((quantile) => ({
      label: `${WHOSE[who]} ${quantile}`,
      colour: quantile === "max" ? "in" : who,
      dashed: quantile === "p50",
      // The scale is logarithmic, and begins at 1 ms.
      value: (point) => atLeastOne(point.delays[who][quantile]),
    })),
  );
  const rates = ["in", "forwarded", ...REASONS].map((what) => ({
    label: REASONS.includes(what) ? `dropped: ${what}` : what,
    colour: what,
    dashed: what === "in",
    value: (point) => point.perSecond[what],
  }));
  return [delayChart(delays, promised), ratesChart(rates)];
}

const atLeastOne = (ms) => (ms === null ? null : Math.max(1, ms));

/** The lines that the delay is to be compared with. */
function promised() {
  const value = (name) => settings.find((one) => one.name === name)?.value;
  return [
    ["target", value("shaper.target.ms")],
    ["ceiling", value("shaper.ceiling.ms")],
  ].filter(([, ms]) => ms >= 1);
}

/* Switches. */

function showSwitches() {
  $("switches").hidden = now.switches === null;
  for (const name of Object.keys(now.switches ?? {})) {
    const button = $(name);
    if (!button.dataset.pending) button.setAttribute("aria-pressed", now.switches[name]);
  }
}

async function flip(button) {
  const on = button.getAttribute("aria-pressed") !== "true";
  button.setAttribute("aria-pressed", on);
  button.dataset.pending = "true";
  try {
    await fetch(`page/switches/${button.id}`, { method: "PUT", body: String(on) });
  } catch (failure) {
    showState("no connection");
  }
  // The next snapshot but one knows it for sure.
  setTimeout(() => delete button.dataset.pending, 2500);
}

for (const id of ["hot", "shaper"]) $(id).addEventListener("click", () => flip($(id)));

/* Figures. */

function makeTiles(count) {
  return Array.from({ length: count }, () => {
    const tile = element("div");
    const label = element("dt");
    const value = element("dd", "value");
    const more = element("dd", "more");
    tile.append(label, value, more);
    $("tiles").append(tile);
    return { tile, label, value, more };
  });
}

function showTiles() {
  const point = points.at(-1);
  const figures = [
    ...Object.entries(point.delays).flatMap(([who, one]) => delayFigures(who, one)),
    ["Forwarded", number(point.perSecond.forwarded), "records/s", `of ${number(point.perSecond.in)}/s in`, "forwarded"],
    ["Dropped", number(dropped(point)), "records/s", reasons(point), "ceiling"],
    ["Queued in the shaper", point.shaped ? number(point.queued) : "–", point.shaped ? "records" : "", queued(point), "codel"],
    ["Waiting in the topic", number(point.unread), "records", "sent, not read yet", "in"],
  ];
  tiles ??= makeTiles(figures.length);
  figures.forEach(([label, value, unit, more, colour], i) => {
    const tile = tiles[i];
    tile.tile.style.setProperty("--colour", `var(--${colour})`);
    tile.label.textContent = label;
    tile.value.replaceChildren(value, unit ? " " : "", element("small", "", unit));
    tile.more.textContent = more;
  });
}

function delayFigures(who, { p50, p99, max }) {
  const split = (ms) => delay(ms).split(" ");
  const figure = (label, ms, more, colour) => [label, split(ms)[0], split(ms)[1] ?? "", more, colour];
  return who === "all"
    ? [
        figure("Delay, p50", p50, "half wait no longer", "all"),
        figure("Delay, p99", p99, `max ${delay(max)}`, "all"),
      ]
    : [figure(`Delay, ${WHOSE[who]}, p99`, p99, `p50 ${delay(p50)}, max ${delay(max)}`, who)];
}

function reasons(point) {
  const list = REASONS.filter((reason) => point.perSecond[reason] >= 0.5).map(
    (reason) => `${reason} ${number(point.perSecond[reason])}`,
  );
  return list.length === 0 ? "none" : list.join(", ");
}

function queued(point) {
  if (!point.shaped) return "it is off";
  return now.queue ? `${bytes(now.queue.bytes)}, ${count(now.queue.busyFlows, "flow")}` : "no answer";
}

function showSummary() {
  const point = points.at(-1);
  const text = point.delays.all ? summaryOfAll(point) : summaryOfDemo(point);
  $("summary").textContent = text;
  const state = `${now.state} ${JSON.stringify(now.switches)}`;
  if (state !== spokenState || Date.now() - spokenAt > SPEAK_EVERY_MS) {
    $("spoken").textContent = now.state === "running" ? text : `The application is ${now.state}.`;
    spokenAt = Date.now();
    spokenState = state;
  }
}

function summaryOfAll(point) {
  const { p50, p99 } = point.delays.all;
  const waits = p50 === null ? "Nothing was forwarded in this second" : `Half of the records waited at most ${delay(p50)}, 99 % at most ${delay(p99)}`;
  return `${waits}; ${number(point.perSecond.forwarded)}/s forwarded, ${number(dropped(point))}/s dropped.`;
}

function summaryOfDemo(point) {
  const { quiet, hot } = point.delays;
  const name = point.shaped ? "With the shaper" : "Without the shaper";
  if (quiet.p99 === null) return `${name}: nothing of the quiet keys came through in this second.`;
  const hotWaits = hot.p99 === null ? "the hot key is silent" : `the hot key ${delay(hot.p99)}`;
  const rest = !point.shaped
    ? `${number(point.unread)} records wait in the topic, in order of arrival`
    : dropped(point) < 1
      ? "nothing is dropped"
      : `${number(dropped(point))} records/s are dropped, to a topic of their own`;
  return `${name}: quiet keys wait ${delay(quiet.p99)}, ${hotWaits} (p99); ${rest}.`;
}

/* Queue by flow. */

function showFlows() {
  const flows = points.at(-1).shaped ? (now.queue?.fattest ?? []).map(flowRow) : [oneLine()];
  const most = Math.max(1, ...flows.map((flow) => flow.records));
  $("flows-note").textContent = flowsNote(flows);
  const rows = [...$("flows").children];
  flows.forEach((flow, i) => {
    const row = rows[i] ?? makeRow();
    const [name, records, oldest, state] = row.children;
    row.className = flow.cut ? "cut" : "";
    name.title = flow.name;
    name.querySelector(".bar").style.width = `${(100 * flow.records) / most}%`;
    name.querySelector("span").textContent = flow.name;
    records.textContent = number(flow.records);
    oldest.textContent = flow.oldest;
    state.textContent = flow.state;
  });
  rows.slice(flows.length).forEach((row) => row.remove());
}

function flowRow(flow) {
  const several = new Set(now.queue.fattest.map((one) => one.partition)).size > 1;
  return {
    name: several ? `${flow.flow} (partition ${flow.partition})` : flow.flow,
    records: flow.records,
    oldest: flow.records > 0 ? delay(flow.oldestMs) : "–",
    state: flow.dropping ? "dropping" : flow.records > 0 ? "queued" : "idle",
    cut: flow.dropping,
  };
}

/** What there is in place of queues when there is no shaper. */
function oneLine() {
  const point = points.at(-1);
  const oldest = Math.max(...Object.values(point.delays).map((one) => one.max ?? 0));
  return { name: "all keys", records: point.unread ?? 0, oldest: delay(oldest), state: "in line", cut: true };
}

function makeRow() {
  const row = element("tr");
  const name = element("td");
  name.append(element("div", "bar"), element("span"));
  row.append(name, element("td", "number"), element("td", "number"), element("td"));
  $("flows").append(row);
  return row;
}

function flowsNote(flows) {
  if (!points.at(-1).shaped) {
    return "The shaper is off. All keys wait in one line, in the topic; what the shaper had queued waits in its changelog until it is back.";
  }
  if (!now.queue) return "The tasks do not answer at the moment.";
  const { busyFlows, droppingFlows } = now.queue;
  const cut = droppingFlows === 0 ? "none is being cut" : `${number(droppingFlows)} being cut`;
  return flows.length === 0 ? "Nothing is queued." : `${count(busyFlows, "busy flow")}, ${cut}.`;
}

/* Settings. */

function showSettings(given) {
  settings = given;
  $("settings").replaceChildren(
    ...given.map((one) => {
      const details = element("details", one.chosen ? "chosen" : "");
      const summary = element("summary");
      summary.append(element("span", "", one.name), element("b", "", setting(one.name, one.value)));
      details.append(summary, element("p", "", one.documentation));
      return details;
    }),
  );
}

/* The same as a table. */

function columns() {
  const delays = Object.keys(points.at(-1).delays).flatMap((who) =>
    ["p50", "p99", "max"].map((quantile) => [
      `${WHOSE[who]} ${quantile}`,
      (point) => delay(point.delays[who][quantile]),
    ]),
  );
  const rates = ["in", "forwarded", ...REASONS].map((what) => [
    `${what}/s`,
    (point) => number(point.perSecond[what]),
  ]);
  return [
    ["time", (point) => new Date(point.atMs).toLocaleTimeString()],
    ["shaper", (point) => (point.shaped ? "on" : "off")],
    ...delays,
    ...rates,
    ["queued", (point) => number(point.queued)],
    ["unread", (point) => number(point.unread)],
  ];
}

function showFigures() {
  if (!$("figures").open) return;
  const all = columns();
  const head = element("tr");
  all.forEach(([name]) => {
    const cell = element("th", "", name);
    cell.scope = "col";
    head.append(cell);
  });
  $("figures-head").replaceChildren(head);
  $("figures-body").replaceChildren(
    ...points.slice(-TABLE_ROWS).reverse().map((point) => {
      const row = element("tr");
      all.forEach(([, figure]) => row.append(element("td", "", figure(point))));
      return row;
    }),
  );
}

$("figures").addEventListener("toggle", () => points.length > 0 && showFigures());

follow();
