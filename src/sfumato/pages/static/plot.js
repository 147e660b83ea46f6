// The chart: lines with soft bands, names at their ends, a range by dragging, values by keyboard.

import { inside, text, timeMarks } from "./wording.js";

const [ROOM, LINE, LONGEST] = [132, 15, 16]; // as in pages/chart.py
const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
const font = () => `${13 * devicePixelRatio}px system-ui, sans-serif`;

export class Plot {
  /**
   * @param box the element to draw into
   * @param read called with a period whose values are to be read out
   * @param ask called with the first and last period of a range, or with nothing for all of them
   */
  constructor(box, read, ask) {
    Object.assign(this, { box, read, ask, data: null, plot: null, reading: null, anchor: null });
  }

  /** Return where a period begins, on the axis. */
  begin(period) {
    const { edges, start, step } = this.data.axis;
    return edges ? edges[period - 1] : start + (period - 1) * step;
  }

  end(period) {
    return this.begin(period + 1);
  }

  /** Return the closed period that ends nearest to a place on the axis. */
  nearest(at) {
    let [low, high] = [1, this.data.closed];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (this.end(middle) <= at) low = middle; else high = middle;
    }
    return Math.abs(this.end(low) - at) <= Math.abs(this.end(high) - at) ? low : high;
  }

  /** Show other data; a line that has become longer grows. */
  show(data) {
    const before = this.data;
    this.data = data;
    if (!data.closed || !data.curves.length) return this.clear();
    const same = before && this.plot && JSON.stringify(shape(before)) === JSON.stringify(shape(data));
    if (!same) return this.draw();
    if (before.closed + 1 === data.closed && !calm()) return this.grow();
    this.plot.setData(this.columns());
  }

  clear() {
    this.plot?.destroy();
    this.plot = null;
  }

  columns() {
    const ends = Array.from({ length: this.data.closed }, (_, index) => this.end(index + 1));
    const sides = this.data.curves.flatMap(({ value, low, high }) => [
      value.map((one, index) => inside(one, low[index], high[index])), low, high,
    ]);
    return [ends, ...sides];
  }

  /** Let the last period come in over some frames. */
  grow() {
    const whole = this.columns();
    const last = whole[0].length - 1;
    const begun = performance.now();
    const frame = (now) => {
      if (!this.plot || this.columns()[0].length !== whole[0].length) return;
      const part = Math.min(1, (now - begun) / 400);
      const eased = 1 - (1 - part) ** 3;
      this.plot.setData(whole.map((column) => {
        const [from, to] = [column[last - 1], column[last]];
        return from == null || to == null ? column : [...column.slice(0, last), from + eased * (to - from)];
      }));
      if (part < 1) requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  }

  // ---- drawing ----------------------------------------------------------------------------------

  draw() {
    this.clear();
    this.box.textContent = "";
    const { data } = this;
    const [series, bands] = [[{}], []];
    for (const { label, turn } of data.curves) {
      const at = series.length;
      const hidden = { stroke: "transparent", width: 0, points: { show: false } };
      const colour = data.colours[turn];
      series.push({ label, stroke: colour, width: 2, points: { show: data.closed < 30, size: 5 } }, hidden, { ...hidden });
      bands.push({ series: [at + 2, at + 1], fill: `${colour}2b` });
    }
    const named = this.box.clientWidth > 600;
    this.plot = new uPlot({
      width: this.box.clientWidth, height: this.box.clientWidth > 600 ? 340 : 280, series, bands,
      padding: [null, named ? ROOM : 8, null, null],
      legend: { show: false },
      cursor: { y: false, drag: { x: true, y: false, setScale: false, dist: 6 }, bind: { dblclick: () => () => { this.ask(); return null; } } },
      scales: { x: { time: data.axis.inTime, range: () => this.ends() }, y: { range: (_, low, high) => this.range(low, high) } },
      ...this.zoned(),
      axes: [this.places(), { ...this.axis(), size: 70, values: (_, marks) => this.marks(marks) }],
      hooks: {
        draw: [() => this.lone(), () => this.line(), () => named && this.label()],
        setCursor: [(plot) => plot.cursor.idx != null && plot.cursor.event && this.read(plot.cursor.idx + 1)],
        setSelect: [(plot) => this.selected(plot)],
      },
    }, this.columns(), this.box);
    this.plot.root.querySelectorAll("canvas").forEach((canvas) => canvas.setAttribute("aria-hidden", "true"));
    this.touch();
  }

  axis() {
    return { stroke: style("--quiet"), grid: { stroke: style("--line"), width: 1 }, ticks: { show: false } };
  }

  /** Return the axis of time or positions; moments are the reader's, or those of the axis' own zone. */
  places() {
    const { inTime, step, zone } = this.data.axis;
    if (!inTime) return { ...this.axis(), values: (_, marks) => marks.map((mark) => mark.toLocaleString()) };
    return { ...this.axis(), space: step < 60 ? 110 : 80, values: (_, marks, __, ___, apart) => timeMarks(marks, apart, zone) };
  }

  /** Return what places the marks of an axis of time at round hours and days of its zone. */
  zoned() {
    const { zone } = this.data.axis;
    return zone ? { tzDate: (at) => uPlot.tzDate(new Date(1000 * at), zone) } : {};
  }

  ends() {
    const [first, last] = this.data.window ?? [1, Math.max(this.data.axis.periods, 2)];
    return first === last ? [this.begin(first), this.end(last)] : [this.end(first), this.end(last)];
  }

  range(low, high) {
    if (low == null || high == null) return [0, 1];
    const { above, quantity } = this.data;
    if (above != null) [low, high] = [Math.min(low, above), Math.max(high, above)];
    if (quantity.from_zero) return [Math.min(low, 0), Math.max(high, 0) * 1.05 || 1];
    const beyond = 0.05 * (high - low) || 1;
    return [low - beyond, high + beyond];
  }

  /** Return marks with as many decimals as tell 2.5 from 3. */
  marks(marks) {
    const { quantity } = this.data;
    const step = quantity.scale * (marks[1] - marks[0]);
    let places = 0;
    while (step > 0 && places < 12 && Math.abs(Number(step.toFixed(places)) - step) > 1e-6 * step) places += 1;
    return marks.map((mark) => text(quantity, mark, places));
  }

  /** Write names behind the ends of their lines, none upon another. */
  label() {
    const { ctx, bbox } = this.plot;
    const last = this.data.window?.[1] ?? this.data.closed;
    const ends = this.data.curves.flatMap(({ label, value, low, high }) => {
      let index = Math.min(last, value.length) - 1;
      while (index >= 0 && value[index] == null) index -= 1;
      if (index < 0) return [];
      const [x, y] = [this.plot.valToPos(this.end(index + 1), "x", true), this.plot.valToPos(inside(value[index], low[index], high[index]), "y", true)];
      return [{ x, y, label }];
    }).sort((a, b) => a.y - b.y);
    const line = LINE * devicePixelRatio;
    let room = bbox.top + bbox.height - line * (ends.length - 0.5); // above the marks of the axis
    let free = 0;
    ctx.save();
    Object.assign(ctx, { strokeStyle: style("--paper"), lineWidth: 4 * devicePixelRatio, lineJoin: "round" });
    Object.assign(ctx, { fillStyle: style("--ink"), font: font(), textBaseline: "middle", textAlign: "left" });
    for (const { x, y, label } of ends) {
      free = Math.max(Math.min(y, room), free);
      const words = [label.length > LONGEST ? `${label.slice(0, LONGEST - 1)}…` : label, x + 9 * devicePixelRatio, free];
      ctx.strokeText(...words); // so that no line is read through it
      ctx.fillText(...words);
      free += line;
      room += line;
    }
    ctx.restore();
  }

  /** Draw a period between unknown ones as a bar: it has no room for a band. */
  lone() {
    const { ctx } = this.plot;
    ctx.save();
    ctx.lineWidth = 3 * devicePixelRatio;
    for (const { turn, value, low, high } of this.data.curves) {
      ctx.strokeStyle = `${this.data.colours[turn]}80`;
      value.forEach((one, index) => {
        if (one == null || value[index - 1] != null || value[index + 1] != null) return;
        const x = this.plot.valToPos(this.end(index + 1), "x", true);
        ctx.beginPath();
        ctx.moveTo(x, this.plot.valToPos(low[index], "y", true));
        ctx.lineTo(x, this.plot.valToPos(high[index], "y", true));
        ctx.stroke();
      });
    }
    ctx.restore();
  }

  /** Draw the threshold of alarms. */
  line() {
    const { above } = this.data;
    if (above == null) return;
    const { bbox, ctx } = this.plot;
    const y = this.plot.valToPos(above, "y", true);
    ctx.save();
    ctx.strokeStyle = style("--warn");
    ctx.lineWidth = 1.5 * devicePixelRatio;
    ctx.setLineDash([5 * devicePixelRatio, 4 * devicePixelRatio]);
    ctx.beginPath();
    ctx.moveTo(bbox.left, y);
    ctx.lineTo(bbox.left + bbox.width, y);
    ctx.stroke();
    ctx.restore();
  }

  // ---- ranges and reading -----------------------------------------------------------------------

  selected(plot) {
    const { left, width } = plot.select;
    if (width < 6) return;
    const ends = [left, left + width].map((x) => this.nearest(plot.posToVal(x, "x")));
    plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.ask(...ends);
  }

  /** Let a finger drag a range, too: across is a range, up and down scrolls as ever. */
  touch() {
    const over = this.plot.over;
    let from = null;
    const at = (event) => event.clientX - over.getBoundingClientRect().left;
    over.addEventListener("pointerdown", (event) => { from = event.pointerType === "touch" ? at(event) : null; });
    over.addEventListener("pointermove", (event) => {
      if (from == null || event.pointerType !== "touch") return;
      const [left, right] = [Math.min(from, at(event)), Math.max(from, at(event))];
      this.plot.setSelect({ left, top: 0, width: right - left, height: over.clientHeight }, false);
    });
    over.addEventListener("pointerup", (event) => {
      if (from == null || event.pointerType !== "touch") return;
      from = null;
      this.selected(this.plot);
    });
  }

  /** Follow a key: arrows read out, with shift they choose a range, Enter asks, Escape goes back. */
  key(event) {
    if (!this.plot) return;
    const { closed } = this.data;
    const [first, last] = this.data.window ?? [1, closed];
    const now = this.reading ?? last + 1;
    const to = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: first, End: last }[event.key];
    if (to != null) {
      if (event.shiftKey) this.anchor ??= Math.min(now, last); else this.anchor = null;
      this.reading = Math.max(first, Math.min(last, to));
      this.mark();
      this.read(this.reading, this.anchor);
    } else if (event.key === "Enter" && this.reading) {
      const ends = [this.anchor ?? this.reading, this.reading].sort((a, b) => a - b);
      this.anchor = null;
      this.ask(...ends);
    } else if (event.key === "Escape") {
      this.anchor = this.reading = null;
      this.ask();
    } else return;
    event.preventDefault();
  }

  mark() {
    const x = (period) => this.plot.valToPos(this.end(period), "x");
    this.plot.setCursor({ left: x(this.reading), top: 10 });
    const [left, right] = [this.anchor ?? this.reading, this.reading].map(x).sort((a, b) => a - b);
    this.plot.setSelect({ left, top: 0, width: right - left, height: right > left ? this.plot.over.clientHeight : 0 }, false);
  }
}

/** Return what a chart has to be built anew for. */
const shape = ({ curves, window, above, axis, closed }) => [curves.map(({ item, turn }) => [item, turn]), window, above, axis, closed < 30];
