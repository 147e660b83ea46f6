// Brings the page of a task or a stream to life. All that is chosen is in the address: a choice
// fetches the address again, and so does a new period; the server has every word and number.

import { Plot } from "./plot.js";
import { changed, fetched, intercept, put } from "./renewal.js";
import { ago, inside, localize, moment, text } from "./wording.js";

const PARTS = ["state", "ways", "presets", "legend", "ranging", "alarming", "away", "rows", "happenings", "flags", "reports", "refused"];
const MOST = 8;
const byId = (name) => document.getElementById(name);
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

let data = JSON.parse(byId("data").textContent);
let lateness = data.now - Date.now() / 1000; // of our clock against the server's
let pinned = new URLSearchParams(location.search).has("items");
let connection = "open";
let bars = null;

// ---- what is read out ----------------------------------------------------------------------------
document.documentElement.classList.add("js");
const plain = byId("read").textContent;
function read(period, anchor = null) {
  const { axis, curves, places, quantity } = data;
  const words = curves.map(({ label, value, low, high }) => {
    const [one, least, most] = [value, low, high].map((side) => side[period - 1]);
    if (one == null) return `${label} unknown`;
    const shown = text(quantity, inside(one, least, most), places);
    const raw = text(quantity, one, places) === shown ? "" : `, raw ${text(quantity, one, places)}`;
    return `${label} ${shown} (${text(quantity, least, places)} to ${text(quantity, most, places)}${raw})`;
  });
  const until = axis.inTime ? `until ${moment(plot.end(period), axis.step < 60, axis.zone)}` : `up to value ${plot.end(period).toLocaleString()}`;
  const range = anchor == null || anchor === period ? "" : ` Periods ${Math.min(anchor, period)} to ${Math.max(anchor, period)} are chosen; Enter asks about them.`;
  byId("read").textContent = `Period ${period}, ${until}: ${words.join("; ")}.${range}`;
}

// ---- choices -------------------------------------------------------------------------------------
let asked = 0;
async function go(query, { quiet = false } = {}) {
  const number = ++asked;
  if (!quiet) byId("chart").setAttribute("aria-busy", "true");
  try {
    const { page, ok } = await fetched(query);
    if (number !== asked) return;
    if (!ok) return location.assign(location.pathname + query); // a page that says what is wrong
    if (!quiet) history.replaceState(null, "", query);
    const start = performance.now();
    take(page);
    performance.measure("taken", { start });
    connection = "open";
  } catch {
    connection = quiet ? "lost" : "failed";
  }
  byId("chart").removeAttribute("aria-busy");
  state();
}

function take(page) {
  const before = data;
  data = JSON.parse(page.getElementById("data").textContent);
  lateness = data.now - Date.now() / 1000;
  put(page, PARTS);
  const answer = page.getElementById("answer");
  localize(answer, lateness);
  if (byId("answer").textContent !== answer.textContent) byId("answer").replaceChildren(...answer.childNodes);
  if (before.state !== data.state) byId("news").textContent = byId("said").textContent;
  if (!data.closed || !data.curves.length) byId("chart").replaceChildren(...page.getElementById("chart").childNodes);
  plot.show(data);
  participation();
}

/** Return the present choices, with the items that are shown: they and their colours stay. */
function choices(changes = {}) {
  const fields = new URLSearchParams(location.search);
  if (!pinned && data.closed && data.curves.length) fields.set("items", slots());
  return changed(fields, changes);
}

function slots(without = null, more = null) {
  const turns = [];
  for (const { item, turn } of data.curves) if (item !== without) turns[turn] = item;
  if (more != null) {
    const free = [...Array(MOST).keys()].find((turn) => turns[turn] == null);
    turns[free] = more;
  }
  return Array.from(turns, (item) => item ?? "").join(",").replace(/,+$/, "");
}

const ask = (first = null, last = null) => go(choices({ first, last, span: null }));
const plot = new Plot(byId("chart"), read, ask);

document.addEventListener("change", (event) => {
  const box = event.target;
  if (box.name === "items") {
    const item = Number(box.value);
    if (box.checked && data.curves.length >= MOST) {
      box.checked = false;
      byId("read").textContent = `${MOST} items at once are all that can be told apart; take one away first.`;
      return;
    }
    pinned = true;
    const items = box.checked ? slots(null, item) : slots(item);
    if (items) return go(choices({ items }));
    box.checked = true;
    byId("read").textContent = "One item has to stay in the chart.";
  } else if (box.name === "sort") go(choices({ sort: box.value, page: null }));
});

let typing = 0;
document.addEventListener("input", (event) => {
  if (event.target.name !== "search") return;
  clearTimeout(typing);
  typing = setTimeout(() => go(choices({ search: event.target.value || null, page: null })), 150);
});

intercept((query) => go(query), (changes, form) => {
  const instead = form.id === "range" ? { span: null } : form.id === "choice" ? { page: null } : {};
  go(choices({ ...changes, ...instead }));
});

// ---- participation -------------------------------------------------------------------------------
const WHOLE = [...Array(10).keys()].flatMap((power) => [1, 2, 5].map((step) => step * 10 ** power));
function participation() {
  const box = byId("bars");
  bars?.destroy();
  bars = null;
  if (!box || !data.closed || !data.reports) return;
  const middle = (period) => (plot.begin(period) + plot.end(period)) / 2;
  bars = new uPlot({
    width: box.clientWidth, height: 112, padding: [null, 40, null, null], legend: { show: false }, cursor: { show: false },
    series: [{}, { stroke: colour("--accent"), fill: colour("--soft"), width: 1.5, points: { show: false }, paths: uPlot.paths.bars({ size: [0.8, 40] }) }],
    scales: {
      x: { time: data.axis.inTime, range: () => [plot.begin(1), plot.end(Math.max(data.axis.periods, 2))] },
      y: { range: (_, low, high) => [0, high * 1.1 || 1] },
    },
    ...plot.zoned(),
    axes: [plot.places(), { ...plot.axis(), size: 60, space: 18, incrs: WHOLE }],
  }, [data.reports.map((_, index) => middle(index + 1)), data.reports], box);
}

// ---- the state -----------------------------------------------------------------------------------
function state() {
  const lost = connection === "failed" || connection === "lost" && data.isLive;
  const line = byId("state");
  line.classList.toggle("lost", lost);
  if (lost) {
    const words = data.isLive
      ? "The collector cannot be reached; what you see may be old. Trying again."
      : "Nothing answers at this address any more; what you see is what was asked last.";
    if (byId("said").textContent !== words) byId("said").textContent = byId("news").textContent = words;
    return;
  }
  for (const element of line.querySelectorAll("time[data-style=ago]")) {
    const words = ago(Math.max(0, Date.now() / 1000 + lateness - Number(element.dataset.at)));
    if (element.textContent !== words) element.textContent = words;
  }
}

// ---- news ----------------------------------------------------------------------------------------
let source = null;
let renewing = false;
async function renew() {
  if (renewing) return;
  renewing = true;
  await go(choices(), { quiet: true });
  renewing = false;
}

function listen() {
  if (!data.isLive || !data.listensAt) return;
  source = new EventSource(`${data.listensAt}?bare=true&since=${data.closed}`);
  source.addEventListener("open", () => { if (connection !== "open") renew(); connection = "open"; state(); });
  source.addEventListener("error", () => { connection = "lost"; state(); });
  source.addEventListener("over", () => { source.close(); renew(); });
  source.addEventListener("period", renew);
}

let looked = Date.now();
function watch() {
  state();
  if (document.hidden || !data.isLive || connection === "lost" && source?.readyState === EventSource.CONNECTING) return;
  const now = Date.now() / 1000 + lateness;
  const due = data.nextAt != null && now > data.nextAt + (data.state === "waiting" ? 0 : 2);
  if (due && Date.now() - looked > 1500) {
    looked = Date.now();
    renew();
  }
}

const chart = byId("chart");
chart.tabIndex = 0;
chart.setAttribute("role", "group");
chart.setAttribute("aria-label", `${data.quantity.noun} over time. Arrow keys read out values, with shift they choose a range, Enter asks about it, Escape shows all.`);
chart.addEventListener("keydown", (event) => plot.key(event));
chart.addEventListener("pointerleave", () => { byId("read").textContent = plain; });

localize(document, lateness);
plot.show(data);
participation();
state();
listen();
setInterval(watch, 500);
let waiting = 0;
const redraw = () => { if (data.closed && data.curves.length) plot.draw(); participation(); };
window.addEventListener("resize", () => {
  clearTimeout(waiting);
  waiting = setTimeout(redraw, 150);
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
