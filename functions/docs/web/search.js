// The search over the whole text of the page: operations, chapters, errors, fields and sentences.

import { element, uniqueID } from "./dom.js";

const most = 12; // results shown

/** Everything that can be found: the text that is searched, the title that is shown, and where it is. */
function entries() {
  const list = [];
  for (const heading of document.querySelectorAll("main section.text > h2[id]")) {
    list.push({ kind: "Chapter", title: heading.textContent, id: heading.id, words: heading.textContent });
  }
  for (const operation of document.querySelectorAll(".operation")) {
    const summary = operation.querySelector("h4").textContent;
    list.push({ kind: "Operation", title: summary, id: operation.id, words: `${summary} ${operation.querySelector(".path").textContent}` });
    for (const row of operation.querySelectorAll("tr[id]")) {
      const name = row.querySelector("code")?.textContent ?? "";
      const kind = row.closest(".fields") ? "Field" : "Error";
      const status = kind === "Error" ? `${row.cells[0].textContent} ` : "";
      list.push({ kind, title: `${status}${name}`, where: summary, id: row.id, words: `${status}${row.textContent}` });
    }
  }
  for (const row of document.querySelectorAll("#error-list tr")) {
    const code = row.querySelector("code").textContent;
    row.id ||= uniqueID("error");
    list.push({ kind: "Error", title: `${row.cells[0].textContent} ${code}`, id: row.id, words: row.textContent });
  }
  const sentences = "main section.text > p, main section.text li, .wide td:last-child, .clients td, .values td:first-child, .about > p, .about li, .about > table:not(.fields) td";
  for (const text of document.querySelectorAll(sentences)) {
    text.id ||= uniqueID("text");
    const chapter = text.closest(".operation")?.querySelector("h4") ?? headingBefore(text);
    list.push({ kind: "Text", title: text.textContent.trim().replace(/\s+/g, " "), where: chapter?.textContent, id: text.id, words: text.textContent });
  }
  return list.map((entry) => ({ ...entry, words: plain(entry.words) }));
}

/** A text as it is compared: "timeout" finds "time-out". */
const plain = (text) => text.toLowerCase().replace(/(?<=[a-z])-(?=[a-z])/g, "");

/** The chapter's heading that stands before an element. */
function headingBefore(element) {
  let found = null;
  for (const heading of document.querySelectorAll("main section.text > h2[id]")) {
    if (heading.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING) found = heading;
  }
  return found;
}

/** A part of a long title around the first of the words. */
function excerpt(title, words) {
  if (title.length <= 80) return title;
  const at = Math.max(0, title.toLowerCase().indexOf(words[0]) - 20);
  return `${at > 0 ? "…" : ""}${title.slice(at, at + 80)}…`;
}

const field = document.getElementById("search");
const results = document.getElementById("results");
const found = document.getElementById("found");
let index = null;

function show() {
  const words = plain(field.value).split(/\s+/).filter(Boolean);
  index ??= entries();
  const matching = words.length === 0 ? [] : index.filter((entry) => words.every((word) => entry.words.includes(word)));
  const rank = { Operation: 0, Chapter: 1, Error: 2, Field: 3, Text: 4 };
  const exact = (entry) => (entry.title.toLowerCase() === field.value.trim().toLowerCase() ? 0 : 1);
  matching.sort((a, b) => exact(a) - exact(b) || rank[a.kind] - rank[b.kind]);
  results.replaceChildren(
    ...matching.slice(0, most).map((entry) =>
      element("li", {}, element("a", { href: `#${entry.id}` },
        element("span", { className: "kind", textContent: entry.kind }), ` ${excerpt(entry.title, words)}`,
        entry.where ? element("span", { className: "where", textContent: entry.where }) : null))),
  );
  found.textContent = words.length === 0 ? "" : matching.length > most ? `${matching.length} results, the first ${most} shown` : `${matching.length} ${matching.length === 1 ? "result" : "results"}`;
}

field.addEventListener("input", show);
field.addEventListener("keydown", (event) => {
  if (event.key === "Enter") results.querySelector("a")?.click();
  if (event.key === "ArrowDown") {
    event.preventDefault();
    results.querySelector("a")?.focus();
  }
  if (event.key === "Escape") {
    field.value = "";
    show();
  }
});

// The arrow keys go through the results, and from the first one back to the field.
results.addEventListener("keydown", (event) => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step) return;
  event.preventDefault();
  const links = [...results.querySelectorAll("a")];
  const next = links.indexOf(document.activeElement) + step;
  (next < 0 ? field : links[next])?.focus();
});

addEventListener("keydown", (event) => {
  const typing = event.target.closest?.("input, textarea, select, dialog");
  if ((event.key === "/" && !typing) || (event.key === "k" && (event.ctrlKey || event.metaKey))) {
    event.preventDefault();
    field.focus();
    field.select();
  }
});
