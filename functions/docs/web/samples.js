// Code samples of an operation, one tab for each language.

import { onCredentials } from "./credentials.js";
import { copyButton, element, uniqueID } from "./dom.js";

let chosen = "curl"; // the language of all samples, remembered
try {
  chosen = localStorage.getItem("language") ?? chosen;
} catch {
  // Storage is off: the choice lasts as long as the page.
}
const drawn = []; // of each operation, the function that shows the chosen language

function choose(label) {
  chosen = label;
  try {
    localStorage.setItem("language", label);
  } catch {
    // As above.
  }
  for (const draw of drawn) draw();
}

/** The tabs of an operation's x-codeSamples, with the API's root and the reader's credentials filled in. */
export function codeSamples(operation, baseURL) {
  const samples = operation["x-codeSamples"] ?? [];
  const title = element("h5", { id: uniqueID("samples"), textContent: "Code samples" });
  const list = element("div", { role: "tablist", "aria-labelledby": title.id });
  const code = element("code");
  const panel = element("pre", { id: uniqueID("panel"), tabIndex: 0, role: "tabpanel" }, code);

  let known = null;
  const draw = () => {
    const index = Math.max(0, samples.findIndex((sample) => sample.label === chosen));
    [...list.children].forEach((tab, i) => {
      tab.setAttribute("aria-selected", String(i === index));
      tab.tabIndex = i === index ? 0 : -1;
    });
    panel.setAttribute("aria-labelledby", list.children[index].id);
    const source = samples[index].source.replaceAll("{base_url}", baseURL);
    code.textContent = known ? source.replaceAll("<API_KEY>", known.id).replaceAll("<API_SECRET>", known.secret) : source;
  };
  samples.forEach((sample, index) => {
    list.append(
      element("button", {
        type: "button",
        role: "tab",
        id: uniqueID("tab"),
        "aria-controls": panel.id,
        textContent: sample.label,
        onclick: () => choose(sample.label),
        onkeydown: (event) => {
          const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
          if (!step) return;
          const next = (index + step + samples.length) % samples.length;
          choose(samples[next].label);
          list.children[next].focus();
        },
      }),
    );
  });
  drawn.push(draw);
  onCredentials((current) => {
    known = current;
    draw();
  });
  const tabs = element("div", { className: "tabs" }, list, copyButton("Copy", () => code.textContent));
  return element("section", { className: "samples", "aria-label": `Code samples: ${operation.summary}` }, title, tabs, panel);
}
