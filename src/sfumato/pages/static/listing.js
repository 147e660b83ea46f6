// Keeps the list of tasks and the operator's view up to date, and follows their links in place.

import { changed, fetched, intercept, put } from "./renewal.js";
import { localize } from "./wording.js";

const PARTS = ["states", "listed", "strangers", "since", "ringing", "facts", "tables"];
let busy = false;

async function renew(query) {
  if (busy) return;
  busy = true;
  try {
    const { page, ok } = await fetched(query);
    document.body.classList.toggle("lost", !ok);
    if (ok) put(page, PARTS);
  } catch {
    document.body.classList.add("lost"); // the collector cannot be reached
  }
  busy = false;
}

function go(query) {
  history.replaceState(null, "", query);
  renew(query);
}

intercept(go, (changes) => go(changed(location.search, changes)));
localize(document);
const again = Number(document.querySelector("main").dataset.again);
setInterval(() => document.hidden || renew(location.search), 1000 * again);
