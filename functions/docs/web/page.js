// The page: fills each operation of the reference with code samples and a playground, and follows the reader.

import { playground } from "./playground.js";
import { copyable, copyButton, element } from "./dom.js";
import { codeSamples } from "./samples.js";
import "./search.js";

const baseURL = new URL("api/v1", location.href).href;
for (const place of document.querySelectorAll(".base-url")) place.textContent = baseURL;
for (const code of document.querySelectorAll("main pre")) copyable(code);
for (const code of document.querySelectorAll(".text :not(pre) > code")) {
  if (code.children.length > 0 || !code.textContent.includes(" ")) continue;
  code.classList.add("phrase"); // breaks at its spaces, and at no hyphen
  code.replaceChildren(...code.textContent.split(/( )/).map((part) => (part === " " ? part : element("span", { textContent: part }))));
}
for (const table of document.querySelectorAll(".about > table:not(.stacked)")) table.tabIndex = 0; // a narrow page scrolls it

/** Brings the element that the address names into view, with everything that hides it opened. */
function land() {
  const element = document.querySelector(":target");
  for (let part = element?.closest("details"); part; part = part.parentElement.closest("details")) part.open = true;
  element?.scrollIntoView({ behavior: "instant" });
}

async function start() {
  const response = await fetch("docs/page.json");
  if (!response.ok) throw new Error(`page.json: ${response.status}`);
  const spec = await response.json();
  const places = new Map([...document.querySelectorAll(".try")].map((place) => [place.dataset.operation, place]));
  for (const [path, item] of Object.entries(spec.paths)) {
    for (const [method, operation] of Object.entries(item)) {
      places.get(operation.operationId)?.append(codeSamples(operation, baseURL), playground({ spec, operation, path, method, baseURL }));
    }
  }
  land(); // the playgrounds moved what was in view
}

addEventListener("hashchange", land);

// llms.txt has each operation under its summary.
const markdown = async () => (await (await fetch("docs/llms.txt")).text()).split(/^(?=## )/m);
for (const operation of document.querySelectorAll(".operation")) {
  const title = `## ${operation.querySelector("h4 a").textContent}\n`;
  operation.querySelector(".path").append(copyButton("Copy as Markdown", async () => (await markdown()).find((part) => part.startsWith(title))));
}

// Where the link skips to is where the next Tab goes on from.
document.querySelector(".skip").addEventListener("click", () => document.getElementById("main").focus());

const narrow = matchMedia("(max-width: 60rem)");
const contents = document.getElementById("contents");
const fold = () => (contents.open = !narrow.matches);
narrow.addEventListener("change", fold);
fold();
contents.addEventListener("click", (event) => {
  const link = event.target.closest("a[href^='#']");
  if (!link) return;
  if (narrow.matches) contents.open = false;
  if (link.hash === location.hash) land(); // the address does not change, so the browser does not scroll either
});

// The list of contents marks what is in view.
const links = [...contents.querySelectorAll("a[href^='#']")].map((link) => [link, document.getElementById(link.getAttribute("href").slice(1))]);
let marked = null;
function mark() {
  const line = document.querySelector(".bar").getBoundingClientRect().bottom + 40;
  let current = links[0][0];
  for (const [link, place] of links) if (place.getBoundingClientRect().top <= line) current = link;
  if (current === marked) return;
  marked?.removeAttribute("aria-current");
  current.setAttribute("aria-current", "location");
  marked = current;
  const nav = contents.closest("nav");
  const top = current.getBoundingClientRect().top - nav.getBoundingClientRect().top;
  if (!narrow.matches && (top < 0 || top > nav.clientHeight - 40)) nav.scrollTop += top - nav.clientHeight / 2;
}
let waiting = false;
addEventListener("scroll", () => {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    mark();
  });
}, { passive: true });

start()
  .catch((error) => {
    document.getElementById("operations").after(`The playground and the code samples could not be loaded. ${error.message}`);
  })
  .finally(() => {
    document.body.dataset.ready = "true";
    mark();
  });
