// The credentials that the reader entered. They live in this module alone and are gone with the page.

import { ask } from "./dom.js";

const { demoId, demoSecret } = document.body.dataset; // of the local stack, empty elsewhere
let current = demoId ? { id: demoId, secret: demoSecret } : null; // {id, secret}

const listeners = [];

/** Calls a function with the credentials, or null, now and after each change. */
export function onCredentials(listener) {
  listeners.push(listener);
  listener(current);
}

const dialog = document.getElementById("credentials");
const id = document.getElementById("client-id");
const secret = document.getElementById("client-secret");

function show() {
  document.getElementById("credentials-state").textContent = current ? current.id : "No credentials";
  document.getElementById("open-credentials").classList.toggle("set", current !== null);
  for (const listener of listeners) listener(current);
}

/** Asks the reader for credentials; resolves with those in force then, or null. */
export async function enterCredentials() {
  id.value = current?.id ?? "";
  secret.value = current?.secret ?? "";
  if (await ask(dialog)) {
    current = id.value.trim() && secret.value.trim() ? { id: id.value.trim(), secret: secret.value.trim() } : null;
    show();
  }
  secret.value = "";
  return current;
}

/** The credentials, asked for where there are none. */
export const credentials = async () => current ?? enterCredentials();

document.getElementById("open-credentials").addEventListener("click", enterCredentials);
dialog.querySelector("[data-forget]").addEventListener("click", () => {
  current = null;
  show();
  dialog.close();
});
for (const field of [id, secret]) {
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault(); // the same key would press the button that gets the focus back
    dialog.querySelector("[data-accept]").click();
  });
}
show();
