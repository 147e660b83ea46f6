"use strict";
// Brings the page of a task to life: the chart, the table and the state follow what periods release.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const history = data.history;
  const chosen = new Map(data.shown.map((row, turn) => [row, turn])); // with the colour of each
  const MOST = 8;
  const byId = (name) => document.getElementById(name);
  const colour = (row) => data.colours[chosen.get(row)];
  const free = () => data.colours.findIndex((_, turn) => ![...chosen.values()].includes(turn));
  const faded = (hex) => hex + "2b";
  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const endOf = (period) => data.start + period * data.seconds;
  const when = (period) => new Date(1000 * endOf(period)).toLocaleString();

  // ---- how things are printed; as in core/quantity.py and core/duration.py ----------------------
  const quantity = data.quantity;
  const decimals = (reach) => reach > 0 && Number.isFinite(reach)
    ? Math.min(12, Math.max(0, 1 - Math.floor(Math.log10(quantity.scale * reach)))) : 4;
  function text(value, places) {
    const printed = (quantity.scale * value).toFixed(places);
    return (Number(printed) === 0 ? printed.replace("-", "") : printed) + quantity.unit;
  }
  // Noise can move a value out of its interval: it is shown at the nearest end, and is raw itself.
  const inside = (value, low, high) => (value == null ? value : Math.min(Math.max(value, low), high));
  function raw({ value, low, high }) {
    const printed = text(value, places);
    return printed === text(inside(value, low, high), places) ? "" : `raw ${printed}`;
  }
  function ago(seconds) {
    for (const [name, size] of [["week", 604800], ["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]]) {
      const many = Math.floor(seconds / size);
      if (many >= (size > 1 ? 2 : 1)) return `${many} ${name}${many === 1 ? "" : "s"} ago`;
    }
    return "just now";
  }

  // ---- what is known of each item ---------------------------------------------------------------
  const latest = data.labels.map(() => null);
  let places = 4;
  let typical = 0;
  function learn(one) {
    latest.forEach((_, row) => {
      if (one.value[row] != null) latest[row] = { value: one.value[row], low: one.low[row], high: one.high[row], period: one.period };
    });
    const reach = latest.filter((one) => one).map((one) => (one.high - one.low) / 2).sort((a, b) => a - b);
    typical = reach[Math.floor(reach.length / 2)] ?? 0;
    places = decimals(typical);
  }
  history.forEach(learn);

  let plot = null;
  let bars = null;

  // ---- the chart ------------------------------------------------------------------------------
  const drawn = () => data.labels.map((_, row) => row).filter((row) => chosen.has(row));

  function columns() {
    const made = [history.map((one) => endOf(one.period))];
    for (const row of drawn()) {
      made.push(history.map((one) => inside(one.value[row], one.low[row], one.high[row])));
      for (const side of ["low", "high"]) made.push(history.map((one) => one[side][row]));
    }
    return made;
  }

  const axis = () => ({ stroke: style("--quiet"), grid: { stroke: style("--line"), width: 1 }, ticks: { show: false } });

  function range(_, low, high) {
    if (low == null || high == null) return [0, 1];
    if (quantity.from_zero) return [Math.min(low, 0), Math.max(high, 0) * 1.05 || 1];
    const beyond = 0.05 * (high - low) || 1;
    return [low - beyond, high + beyond];
  }

  function ticks(_, found) {
    const step = quantity.scale * (found[1] - found[0]);
    let places = 0; // as many as tell 2.5 from 3
    while (step > 0 && places < 12 && Math.abs(Number(step.toFixed(places)) - step) > 1e-6 * step) places += 1;
    return found.map((tick) => text(tick, places));
  }

  function draw() {
    if (!history.length) return;
    const box = byId("chart");
    if (plot) plot.destroy();
    box.textContent = "";
    const series = [{}];
    const bands = [];
    for (const row of drawn()) {
      const at = series.length;
      const hidden = { stroke: "transparent", width: 0, points: { show: false } };
      series.push(
        { label: data.labels[row], stroke: colour(row), width: 2, points: { show: history.length < 30, size: 5 } },
        { ...hidden, label: "low" }, { ...hidden, label: "high" },
      );
      bands.push({ series: [at + 2, at + 1], fill: faded(colour(row)) });
    }
    plot = new uPlot({
      width: box.clientWidth, height: 340, series, bands, padding: [null, names(box) ? ROOM : null, null, null],
      legend: { show: false }, cursor: { y: false },
      scales: {
        x: { time: true, range: () => [endOf(1), Math.max(endOf(data.periods), endOf(2))] },
        y: { range },
      },
      axes: [axis(), { ...axis(), size: 70, values: ticks }],
      hooks: { draw: [lone, label], setCursor: [(self) => self.cursor.idx != null && read(self.cursor.idx)] },
    }, columns(), box);
    plot.root.setAttribute("role", "img");
    plot.root.setAttribute("aria-label", `${quantity.noun} over time, estimated, with intervals; arrow keys read them out`);
    plot.root.tabIndex = 0;
    plot.root.addEventListener("keydown", walk);
  }

  // Names stand behind the ends of their lines, none upon another; where it is narrow, the legend has to do.
  const [ROOM, LINE, LONGEST] = [132, 15, 16]; // as in service/chart.py
  const names = (box) => box.clientWidth > 600;
  function label(self) {
    if (!names(byId("chart"))) return;
    const ends = drawn().filter((row) => latest[row]).map((row) => {
      const { value, low, high, period } = latest[row];
      const [x, y] = [self.valToPos(endOf(period), "x", true), self.valToPos(inside(value, low, high), "y", true)];
      return { x, y, name: data.labels[row] };
    }).sort((a, b) => a.y - b.y);
    const line = LINE * devicePixelRatio;
    let room = self.bbox.top + self.bbox.height - line * (ends.length - 1);
    let free = 0;
    self.ctx.save();
    Object.assign(self.ctx, { fillStyle: style("--ink"), font: `${13 * devicePixelRatio}px system-ui, sans-serif`, textBaseline: "middle", textAlign: "left" });
    for (const { x, y, name } of ends) {
      free = Math.max(Math.min(y, room), free);
      self.ctx.fillText(name.length > LONGEST ? `${name.slice(0, LONGEST - 1)}…` : name, x + 9 * devicePixelRatio, free);
      free += line;
      room += line;
    }
    self.ctx.restore();
  }

  // A period between unknown ones has no room for a band: its interval is a bar.
  function lone(self) {
    const known = (one, row) => one && one.value[row] != null;
    self.ctx.save();
    self.ctx.lineWidth = 3 * devicePixelRatio;
    history.forEach((one, at) => {
      for (const row of drawn()) {
        if (!known(one, row) || known(history[at - 1], row) || known(history[at + 1], row)) continue;
        const x = self.valToPos(endOf(one.period), "x", true);
        self.ctx.strokeStyle = colour(row) + "80";
        self.ctx.beginPath();
        self.ctx.moveTo(x, self.valToPos(one.low[row], "y", true));
        self.ctx.lineTo(x, self.valToPos(one.high[row], "y", true));
        self.ctx.stroke();
      }
    });
    self.ctx.restore();
  }

  function read(index) {
    const one = history[index];
    if (!one) return;
    const said = drawn().map((row) => {
      const [value, low, high] = [one.value[row], one.low[row], one.high[row]];
      if (value == null) return `${data.labels[row]} unknown`;
      const ends = [`${text(low, places)} to ${text(high, places)}`, raw({ value, low, high })].filter((words) => words);
      return `${data.labels[row]} ${text(inside(value, low, high), places)} (${ends.join(", ")})`;
    });
    byId("read").textContent = `Period ${one.period}, until ${when(one.period)}: ${said.join("; ")}. ${one.n.toLocaleString()} reports so far.`;
  }

  let reading = null;
  function walk(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    reading = Math.max(0, Math.min(history.length - 1, (reading ?? history.length) + step));
    plot.setCursor({ left: plot.valToPos(endOf(history[reading].period), "x"), top: 10 });
    read(reading);
  }

  // ---- participation --------------------------------------------------------------------------
  const WHOLE = [...Array(10).keys()].flatMap((power) => [1, 2, 5].map((step) => step * 10 ** power));
  function participation() {
    const box = byId("bars");
    if (!box || !history.length) return;
    if (bars) bars.destroy();
    bars = new uPlot({
      width: box.clientWidth, height: 112, legend: { show: false }, cursor: { show: false },
      series: [{}, { stroke: style("--accent"), fill: style("--soft"), width: 1.5, points: { show: false },
        paths: uPlot.paths.bars({ size: [0.8, 40] }) }],
      scales: {
        x: { time: true, range: () => [endOf(0.5), endOf(Math.max(data.periods, 2) + 0.5)] },
        y: { range: (_, low, high) => [0, high * 1.1 || 1] },
      },
      axes: [axis(), { ...axis(), size: 60, space: 18, incrs: WHOLE }],
    }, [history.map((one) => endOf(one.period)), history.map((one) => one.reports)], box);
  }

  // ---- the table ------------------------------------------------------------------------------
  function quiet(words) {
    const span = document.createElement("span");
    span.className = "quiet";
    span.textContent = words;
    return span;
  }
  function table() {
    const last = history[history.length - 1];
    if (!last) return;
    const body = byId("table").tBodies[0];
    const rows = [...body.rows];
    const value = (row) => latest[row.dataset.row]?.value ?? -Infinity;
    for (const row of rows) {
      const one = latest[row.dataset.row];
      row.cells[1].textContent = one ? text(inside(one.value, one.low, one.high), places) : "unknown";
      if (one && raw(one)) row.cells[1].prepend(quiet(`${raw(one)} `));
      row.cells[2].textContent = one ? `${text(one.low, places)} to ${text(one.high, places)}` : "";
      if (!one || one.period === last.period) continue;
      row.cells[1].append(quiet(` in period ${one.period}, until ${when(one.period)}`));
    }
    // Two that were never known are equal; their difference would be no number.
    if (!body.contains(document.activeElement)) body.append(...rows.sort((a, b) => value(b) - value(a) || 0));
    byId("caption").textContent = `${last.n.toLocaleString()} reports so far`;
    byId("reports").textContent = `${last.reports.toLocaleString()} ${last.reports === 1 ? "report" : "reports"} in period ${last.period}.`;
  }

  function swatches() {
    for (const row of byId("table").tBodies[0].rows) {
      const turn = chosen.get(Number(row.dataset.row));
      row.querySelector("input").checked = turn !== undefined;
      row.querySelector(".swatch").className = turn === undefined ? "swatch" : `swatch s${turn}`;
    }
    byId("legend").replaceChildren(...drawn().map((row) => {
      const [entry, swatch] = [document.createElement("span"), document.createElement("span")];
      swatch.className = `swatch s${chosen.get(row)}`;
      entry.append(swatch, ` ${data.labels[row]}`);
      return entry;
    }));
  }

  byId("table").addEventListener("change", (event) => {
    const row = Number(event.target.closest("tr").dataset.row);
    if (event.target.checked && chosen.size >= MOST) {
      event.target.checked = false;
      byId("read").textContent = `${MOST} items at once are all that can be told apart; take one away first.`;
      return;
    }
    if (event.target.checked) chosen.set(row, free()); else chosen.delete(row);
    swatches();
    draw();
  });

  // ---- the state ------------------------------------------------------------------------------
  let connection = "open";
  function state() {
    const last = history[history.length - 1];
    const now = Date.now() / 1000;
    const tell = (name, sentence) => {
      if (byId("state").className !== name) byId("state").className = name;
      if (byId("said").textContent !== sentence) byId("said").textContent = sentence;
    };
    if (data.waiting) return tell("waiting", data.waiting);
    if (last && last.period >= data.periods) return tell("over", `All ${data.periods} periods have closed; these numbers are final.`);
    if (connection === "lost") return tell("lost", "The collector cannot be reached; what you see may be old. Trying again.");
    if (!last) {
      const first = endOf(1) + data.grace;
      return tell("empty", `No period has closed yet. The first estimate comes at ${new Date(1000 * first).toLocaleTimeString()}.`);
    }
    const age = Math.max(0, now - endOf(last.period) - data.grace);
    if (age > 2 * data.seconds + 5) return tell("stale", `Period ${last.period} closed ${ago(age)} and none since; the collector may be behind.`);
    if (last.value.every((value) => value == null)) {
      const known = latest.some((one) => one) ? "The table shows what was last known" : "Nothing is known";
      return tell("few", `Period ${last.period} tells nothing: it has ${last.problem ?? `${last.reports.toLocaleString()} reports`}. ${known}; it goes on when devices take part.`);
    }
    const closed = `Period ${last.period} of ${data.periods.toLocaleString()} closed ${ago(age)}.`;
    if (data.wide && typical > data.wide) return tell("few", `${closed} Intervals are wide, ± ${(quantity.scale * typical).toFixed(places)}${data.apart}, until more devices have reported.`);
    return tell("live", closed);
  }

  // Curves that are read again come with the page: it is fetched again when a period has closed, or until they are there.
  let renewing = false;
  async function renew() {
    if (renewing) return;
    renewing = true;
    try {
      const page = new DOMParser().parseFromString(await (await fetch(location.href)).text(), "text/html");
      const fresh = JSON.parse(page.getElementById("data").textContent);
      const at = data.places.map((place) => fresh.places.indexOf(place));
      if (!history.length && !fresh.history.length) data.waiting = fresh.waiting;
      else if (!history.length || at.includes(-1)) return location.reload();
      else take(fresh, at);
    } catch { /* the collector cannot be reached; the state says so */ }
    renewing = false;
    if (data.waiting) setTimeout(renew, 2000);
  }
  function take(fresh, at) {
    data.waiting = fresh.waiting;
    history.splice(0, history.length, ...fresh.history.map((one) => {
      for (const side of ["value", "low", "high"]) one[side] = at.map((place) => one[side][place]);
      return one;
    }));
    latest.fill(null);
    history.forEach(learn);
    draw();
    participation();
    table();
    state();
  }

  function listen() {
    const last = history.length ? history[history.length - 1].period : 0;
    if (last >= data.periods) return;
    const source = new EventSource(`/v1/tasks/${data.task}/events?since=${last}`);
    source.addEventListener("open", () => { connection = "open"; state(); });
    source.addEventListener("error", () => { connection = "lost"; state(); });
    source.addEventListener("over", () => source.close());
    source.addEventListener("period", (event) => {
      if (!data.released) return renew();
      const one = JSON.parse(event.data);
      if (one.period !== (history.length ? history[history.length - 1].period : 0) + 1) return;
      for (const side of ["value", "low", "high"]) one[side] = data.places.map((place) => one[side][place]);
      if (!history.length) {
        if (data.items > data.places.length) return location.reload(); // now it is known which are the largest
        chosen.clear();
        one.value.map((value, row) => [value ?? -Infinity, row]).sort((a, b) => b[0] - a[0] || 0).slice(0, 4)
          .forEach(([, row]) => chosen.set(row, free()));
        swatches();
      }
      history.push(one);
      learn(one);
      if (plot) plot.setData(columns()); else draw();
      participation();
      table();
      state();
    });
  }

  swatches();
  draw();
  participation();
  table();
  state();
  listen();
  if (data.waiting) setTimeout(renew, 1000);
  setInterval(state, 1000);
  let waiting = 0;
  window.addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => { draw(); participation(); }, 150);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { draw(); participation(); });
})();
