// Fetches an address of this site again and puts the parts that have changed in place.
// Links and forms that lead to another query of the same page are followed in this way.

import { localize } from "./wording.js";

const byId = (name) => document.getElementById(name);

/** Put the parts of another version of this page in place, without taking the focus away. */
export function put(page, parts) {
  const active = document.activeElement?.dataset?.key;
  for (const part of parts) {
    const [old, fresh] = [byId(part), page.getElementById(part)];
    if (!old || !fresh || old.outerHTML === fresh.outerHTML) continue;
    const holds = old.contains(document.activeElement);
    if (holds && document.activeElement.matches("input:not([type=checkbox]), select")) continue; // somebody is typing
    for (const details of old.querySelectorAll("details[open]")) {
      const same = details.id && fresh.querySelector(`#${details.id}`);
      if (same) same.open = true;
    }
    old.replaceWith(fresh);
    if (!holds || !active) continue;
    const again = document.querySelector(`[data-key="${CSS.escape(active)}"]`);
    if (again) again.focus({ preventScroll: true });
  }
  localize(document);
}

/** Return another version of this page. */
export async function fetched(query) {
  const response = await fetch(location.pathname + query, { headers: { accept: "text/html", "x-requested-by": "page" } });
  const text = await response.text();
  const start = performance.now();
  const page = new DOMParser().parseFromString(text, "text/html");
  performance.measure("parsed", { start });
  return { page, ok: response.ok };
}

/** Return what a visitor has written into a form; null for an empty field. */
export function changesOf(form) {
  const controls = [...form.elements].filter((one) => one.name && one.type !== "hidden" && one.type !== "checkbox");
  return Object.fromEntries(controls.map((one) => [one.name, one.value || null]));
}

/** Return a query with some fields changed; those that are null are left out. */
export function changed(query, changes) {
  const fields = new URLSearchParams(query);
  for (const [name, value] of Object.entries(changes)) {
    if (value == null) fields.delete(name); else fields.set(name, value);
  }
  return `?${fields}`;
}

/**
 * Follow links and forms of this page in place.
 * @param go called with the query of a link
 * @param choose called with what a visitor has written into a form, and the form
 */
export function intercept(go, choose) {
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href^='?']");
    if (!link || event.metaKey || event.ctrlKey || event.shiftKey || event.button) return;
    event.preventDefault();
    go(link.getAttribute("href").replace(/#.*/, ""));
  });
  document.addEventListener("submit", (event) => {
    if (event.target.method !== "get") return;
    event.preventDefault();
    choose(changesOf(event.target), event.target);
  });
}
