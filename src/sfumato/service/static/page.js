"use strict";
// Brings the page of a task to life: the chart, the table and the state follow what periods release.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const history = data.history;
  const chosen = new Map(data.shown.map((place, turn) => [place, turn])); // with the colour of each
  const MOST = 8;
  const byId = (name) => document.getElementById(name);
  const percent = (value) => (100 * value).toFixed(1) + "%";
  const colour = (place) => data.colours[chosen.get(place)];
  const free = () => data.colours.findIndex((_, turn) => ![...chosen.values()].includes(turn));
  const faded = (hex) => hex + "2b";
  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const endOf = (period) => data.start + period * data.seconds;
  let plot = null;
  let bars = null;

  // ---- the chart ------------------------------------------------------------------------------
  const places = () => data.labels.map((_, place) => place).filter((place) => chosen.has(place));

  function columns() {
    const made = [history.map((one) => endOf(one.period))];
    for (const place of places()) {
      for (const side of ["values", "low", "high"]) made.push(history.map((one) => one[side][place]));
    }
    return made;
  }

  const axis = () => ({ stroke: style("--quiet"), grid: { stroke: style("--line"), width: 1 }, ticks: { show: false } });

  function draw() {
    if (!history.length) return;
    const box = byId("chart");
    if (plot) plot.destroy();
    box.textContent = "";
    const series = [{}];
    const bands = [];
    for (const place of places()) {
      const at = series.length;
      const hidden = { stroke: "transparent", width: 0, points: { show: false } };
      series.push(
        { label: data.labels[place], stroke: colour(place), width: 2, points: { show: history.length < 30, size: 5 } },
        { ...hidden, label: "low" }, { ...hidden, label: "high" },
      );
      bands.push({ series: [at + 2, at + 1], fill: faded(colour(place)) });
    }
    plot = new uPlot({
      width: box.clientWidth, height: 340, series, bands,
      legend: { show: false }, cursor: { y: false },
      scales: {
        x: { time: true, range: () => [endOf(1), Math.max(endOf(data.periods), endOf(2))] },
        y: { range: (_, low, high) => [Math.min(low, 0), Math.max(high, 0) * 1.05 || 1] },
      },
      axes: [axis(), { ...axis(), size: 60, values: (_, ticks) => ticks.map((tick) => Math.round(1000 * tick) / 10 + "%") }],
      hooks: { setCursor: [(self) => self.cursor.idx != null && read(self.cursor.idx)] },
    }, columns(), box);
    plot.root.setAttribute("role", "img");
    plot.root.setAttribute("aria-label", "Estimated shares over time with their intervals; arrow keys read them out");
    plot.root.tabIndex = 0;
    plot.root.addEventListener("keydown", walk);
  }

  function read(index) {
    const one = history[index];
    if (!one) return;
    const when = new Date(1000 * endOf(one.period)).toLocaleString();
    const said = places().map((place) => one.values[place] == null ? `${data.labels[place]} unknown`
      : `${data.labels[place]} ${percent(one.values[place])} (${percent(one.low[place])} to ${percent(one.high[place])})`);
    byId("read").textContent = `Period ${one.period}, ${when}: ${said.join("; ")}. ${one.n.toLocaleString()} reports so far.`;
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
      axes: [axis(), { ...axis(), size: 60, space: 18 }],
    }, [history.map((one) => endOf(one.period)), history.map((one) => one.reports)], box);
  }

  // ---- the table ------------------------------------------------------------------------------
  function table() {
    const last = history[history.length - 1];
    if (!last) return;
    const body = byId("table").tBodies[0];
    const rows = [...body.rows];
    const value = (row) => last.values[row.dataset.place] ?? -9;
    for (const row of rows) {
      const place = row.dataset.place;
      const known = last.values[place] != null;
      row.cells[1].className = row.cells[2].className = "number";
      row.cells[1].textContent = known ? percent(last.values[place]) : "unknown";
      row.cells[2].textContent = known ? `${percent(last.low[place])} to ${percent(last.high[place])}` : "";
    }
    if (!body.contains(document.activeElement)) body.append(...rows.sort((a, b) => value(b) - value(a)));
    byId("caption").textContent = `${last.n.toLocaleString()} reports so far`;
    byId("reports").textContent = `${last.reports.toLocaleString()} reports in period ${last.period}.`;
  }

  function swatches() {
    for (const row of byId("table").tBodies[0].rows) {
      const turn = chosen.get(Number(row.dataset.place));
      row.querySelector("input").checked = turn !== undefined;
      row.querySelector(".swatch").className = turn === undefined ? "swatch" : `swatch s${turn}`;
    }
  }

  byId("table").addEventListener("change", (event) => {
    const place = Number(event.target.closest("tr").dataset.place);
    if (event.target.checked && chosen.size >= MOST) {
      event.target.checked = false;
      byId("read").textContent = `${MOST} items at once are all that can be told apart; take one away first.`;
      return;
    }
    if (event.target.checked) chosen.set(place, free()); else chosen.delete(place);
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
    if (last && last.period >= data.periods) return tell("over", `All ${data.periods} periods have closed; these numbers are final.`);
    if (connection === "lost") return tell("lost", "The collector cannot be reached; what you see may be old. Trying again.");
    if (!last) {
      const first = endOf(1) + data.grace;
      return tell("empty", `No period has closed yet. The first estimate comes at ${new Date(1000 * first).toLocaleTimeString()}.`);
    }
    const age = Math.max(0, now - endOf(last.period) - data.grace);
    if (age > 2 * data.seconds + 5) return tell("stale", `Period ${last.period} closed ${Math.round(age)} s ago and none since; the collector may be behind.`);
    if (last.reports < 200) return tell("few", `Period ${last.period} has ${last.reports} reports: too few to tell much. The bands are wide until more devices take part.`);
    return tell("live", `Period ${last.period} of ${data.periods} closed ${Math.round(age)} s ago.`);
  }

  function listen() {
    const last = history.length ? history[history.length - 1].period : 0;
    if (last >= data.periods) return;
    const source = new EventSource(`/v1/tasks/${data.task}/events?since=${last}`);
    source.addEventListener("open", () => { connection = "open"; state(); });
    source.addEventListener("error", () => { connection = "lost"; state(); });
    source.addEventListener("over", () => source.close());
    source.addEventListener("period", (event) => {
      const one = JSON.parse(event.data);
      if (one.period !== (history.length ? history[history.length - 1].period : 0) + 1) return;
      if (!history.length) {
        chosen.clear();
        one.values.map((value, place) => [value ?? -9, place]).sort((a, b) => b[0] - a[0]).slice(0, 4)
          .forEach(([, place]) => chosen.set(place, free()));
        swatches();
      }
      history.push(one);
      if (plot) plot.setData(columns()); else draw();
      participation();
      table();
      state();
    });
  }

  swatches();
  draw();
  participation();
  state();
  listen();
  setInterval(state, 1000);
  let waiting = 0;
  window.addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => { draw(); participation(); }, 150);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { draw(); participation(); });
})();
