// The search over operations, fields and errors of the page.

import { element } from "./dom.js";

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
      list.push({ kind, title: `${status}${name}`, where: summary, id: row.id, words: `${status}${[...row.querySelectorAll("td code")].map((c) => c.textContent).join(" ")}` });
    }
  }
  for (const row of document.querySelectorAll("#error-list tr")) {
    const code = row.querySelector("code").textContent;
    list.push({ kind: "Error", title: `${row.cells[0].textContent} ${code}`, id: "errors", words: row.textContent });
  }
  return list.map((entry) => ({ ...entry, words: entry.words.toLowerCase() }));
}

const field = document.getElementById("search");
const results = document.getElementById("results");
const found = document.getElementById("found");
let index = null;

function show() {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  index ??= entries();
  const matching = words.length === 0 ? [] : index.filter((entry) => words.every((word) => entry.words.includes(word)));
  const rank = { Operation: 0, Chapter: 1, Error: 2, Field: 3 };
  const exact = (entry) => (entry.title.toLowerCase() === field.value.trim().toLowerCase() ? 0 : 1);
  matching.sort((a, b) => exact(a) - exact(b) || rank[a.kind] - rank[b.kind]);
  results.replaceChildren(
    ...matching.slice(0, most).map((entry) =>
      element("li", {}, element("a", { href: `#${entry.id}` },
        element("span", { className: "kind", textContent: entry.kind }), ` ${entry.title}`,
        entry.where ? element("span", { className: "where", textContent: entry.where }) : null))),
  );
  found.textContent = words.length === 0 ? "" : matching.length > most ? `${matching.length} results, the first ${most} shown` : `${matching.length} ${matching.length === 1 ? "result" : "results"}`;
}

field.addEventListener("input", show);
field.addEventListener("keydown", (event) => {
  if (event.key === "Enter") results.querySelector("a")?.click();
  if (event.key === "Escape") {
    field.value = "";
    show();
  }
});
