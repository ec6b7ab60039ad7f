// Code samples of an operation, one tab for each language.

import { copyButton, element, uniqueID } from "./dom.js";

let chosen = "curl"; // the language that the reader looked at last, for all operations

/** The tabs of an operation's x-codeSamples, with the API's root filled in. */
export function codeSamples(operation, baseURL) {
  const samples = operation["x-codeSamples"] ?? [];
  const title = element("h5", { id: uniqueID("samples"), textContent: "Code samples" });
  const list = element("div", { role: "tablist", "aria-labelledby": title.id });
  const code = element("code");
  const panel = element("pre", { id: uniqueID("panel"), tabIndex: 0, role: "tabpanel" }, code);

  const select = (index, focus) => {
    chosen = samples[index].label;
    [...list.children].forEach((tab, i) => {
      tab.setAttribute("aria-selected", String(i === index));
      tab.tabIndex = i === index ? 0 : -1;
    });
    panel.setAttribute("aria-labelledby", list.children[index].id);
    code.textContent = samples[index].source.replaceAll("{base_url}", baseURL);
    if (focus) list.children[index].focus();
  };
  samples.forEach((sample, index) => {
    list.append(
      element("button", {
        type: "button",
        role: "tab",
        id: uniqueID("tab"),
        "aria-controls": panel.id,
        textContent: sample.label,
        onclick: () => select(index),
        onkeydown: (event) => {
          const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
          if (step) select((index + step + samples.length) % samples.length, true);
        },
      }),
    );
  });
  select(Math.max(0, samples.findIndex((sample) => sample.label === chosen)));
  return element("section", { className: "samples", "aria-label": `Code samples: ${operation.summary}` }, title, element("div", { className: "tabs" }, list, copyButton("Copy", () => code.textContent)), panel);
}
