// How numbers and moments are printed; numbers as in core/quantity.py, moments in the reader's time.

/** Return a value as it is printed, with its unit. */
export function text(quantity, value, places) {
  const printed = (quantity.scale * value).toFixed(places);
  const grouped = printed.replace(/\B(?<!\.\d*)(?=(\d{3})+(?!\d))/g, ",");
  return (Number(printed) === 0 ? grouped.replace("-", "") : grouped) + quantity.unit;
}

/** Return a value, or the nearest end of its interval if noise has moved it out. */
export const inside = (value, low, high) => (value == null ? value : Math.min(Math.max(value, low), high));

const UNITS = [["week", 604800], ["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];

/** Return how long ago something was, as in core/duration.py. */
export function ago(seconds) {
  for (const [name, size] of UNITS) {
    const many = Math.floor(seconds / size);
    if (many >= (size > 1 ? 2 : 1)) return `${many} ${name}${many === 1 ? "" : "s"} ago`;
  }
  return "just now";
}

/** Return a moment in the reader's words: with the weekday if it is near; or in another time zone. */
export function moment(at, fine = false, zone = "") {
  if (zone) return `${new Date(1000 * at).toLocaleString(undefined, { timeZone: zone, dateStyle: "medium", timeStyle: fine ? "medium" : "short" })} (${zone})`;
  const when = new Date(1000 * at);
  const near = Math.abs(Date.now() - when) < 6 * 86400 * 1000;
  const today = when.toDateString() === new Date().toDateString();
  const day = today ? {} : near ? { weekday: "long" } : { year: "numeric", month: "short", day: "numeric" };
  const second = fine ? { second: "2-digit" } : {};
  const midnight = !when.getHours() && !when.getMinutes() && !when.getSeconds();
  const clock = midnight && !today ? {} : { hour: "2-digit", minute: "2-digit", ...second };
  return when.toLocaleString(undefined, { ...day, ...clock });
}

const CLOCK = { hour: "2-digit", minute: "2-digit" };
const MARKS = [ // from this distance of two marks on, in seconds: what each says, and what is below it
  [28 * 86400, { month: "short" }, { year: "numeric" }],
  [86400, { day: "numeric", month: "short" }, { year: "numeric" }],
  [60, CLOCK, { day: "numeric", month: "short" }],
  [0, { ...CLOCK, second: "2-digit" }, { day: "numeric", month: "short" }],
];

/** Return what stands at the marks of an axis of time; the second line only where it is another one. */
export function timeMarks(marks, step, zone) {
  const [, above, below] = MARKS.find(([least]) => step >= least);
  let before = "";
  return marks.map((at) => {
    const [first, second] = [above, below].map((parts) => new Date(1000 * at).toLocaleString(undefined, { timeZone: zone || undefined, ...parts }));
    const words = second === before ? first : `${first}\n${second}`;
    before = second;
    return words;
  });
}

/** Show all moments below an element in the reader's time; lateness is how far our clock is behind. */
export function localize(root, lateness = 0) {
  for (const element of root.querySelectorAll("time[data-at]")) {
    const at = Number(element.dataset.at);
    const words = element.dataset.style === "ago"
      ? ago(Math.max(0, Date.now() / 1000 + lateness - at))
      : moment(at, element.dataset.style === "fine");
    if (element.textContent !== words) element.textContent = words;
    if (!element.title) element.title = new Date(1000 * at).toISOString().replace("T", " ").replace(".000Z", " UTC");
  }
}
