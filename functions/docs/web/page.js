// The page: Swagger UI shows the reference, the playground and the code samples stand within it.

import { codeSamples } from "./samples.js";
import { playground } from "./playground.js";

const baseURL = new URL("api/v1", location.href).href;
for (const place of document.querySelectorAll(".base-url")) place.textContent = baseURL;

const nothing = () => null;

/** Swagger UI without its own forms, with ours above the answers of each operation. */
function plugin(spec) {
  return (system) => {
    const { createElement, useEffect, useRef } = system.React;
    const Ours = ({ path, method }) => {
      const place = useRef(null);
      useEffect(() => {
        const operation = spec.paths[path][method];
        place.current.replaceChildren(codeSamples(operation, baseURL), playground({ spec, operation, path, method, baseURL }));
      }, [path, method]);
      return createElement("div", { ref: place, className: "ours" });
    };
    // Swagger UI's own part, with what a screen reader or a keyboard lacks in it.
    const mended = (mend) => (Original) => (props) => {
      const place = useRef(null);
      useEffect(() => mend(place.current));
      return createElement("div", { ref: place }, createElement(Original, props));
    };
    const name = (part) => part.querySelectorAll("select").forEach((select) => select.setAttribute("aria-label", "Example"));
    const reach = (part) => part.querySelectorAll("pre").forEach((code) => (code.tabIndex = 0));
    return {
      components: {
        DeepLink: ({ text }) => createElement("span", null, text), // a link must not stand within a button
        authorizeBtn: nothing,
        authorizeOperationBtn: nothing,
        InfoContainer: nothing,
        ServersContainer: nothing,
        OperationServers: nothing,
      },
      wrapComponents: {
        ExamplesSelect: mended(name),
        HighlightCode: mended(reach),
        responses: (Original) => (props) =>
          createElement("div", null, createElement(Ours, { path: props.path, method: props.method }), createElement(Original, props)),
      },
    };
  };
}

/** Opens an operation that a link names and brings it into view, once it is there as a whole. */
async function open(ui, link) {
  ui.layoutActions.show(["operations", link.dataset.tag, link.dataset.operation], true);
  const block = () => document.querySelector(`#reference .opblock[id$="-${CSS.escape(link.dataset.operation)}"]`);
  for (let frames = 0; frames < 60 && !block()?.querySelector(".playground"); frames++) await new Promise(requestAnimationFrame);
  block()?.scrollIntoView();
  block()?.querySelector("button")?.focus({ preventScroll: true });
}

async function start() {
  const answer = await fetch("docs/openapi.json");
  if (!answer.ok) throw new Error(`openapi.json: ${answer.status}`);
  const spec = await answer.json();
  const ui = window.SwaggerUIBundle({
    spec: structuredClone(spec),
    domNode: document.getElementById("reference"),
    presets: [window.SwaggerUIBundle.presets.apis],
    plugins: [plugin(spec)],
    layout: "BaseLayout",
    deepLinking: true,
    docExpansion: "list",
    defaultModelsExpandDepth: -1,
    defaultModelExpandDepth: 3,
    supportedSubmitMethods: [],
    syntaxHighlight: false,
    validatorUrl: null,
    showCommonExtensions: true,
  });
  for (const link of document.querySelectorAll("nav [data-operation]")) link.addEventListener("click", () => open(ui, link));
}

// Where the link skips to is where the next Tab goes on from.
document.querySelector(".skip").addEventListener("click", () => document.getElementById("main").focus());

const narrow = matchMedia("(max-width: 60rem)");
const contents = document.getElementById("contents");
const fold = () => (contents.open = !narrow.matches);
narrow.addEventListener("change", fold);
fold();
contents.addEventListener("click", (event) => {
  if (narrow.matches && event.target.closest("a")) contents.open = false;
});

start().catch((error) => {
  document.getElementById("reference").textContent = `The reference could not be loaded. ${error.message}`;
});
