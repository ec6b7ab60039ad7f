// Small helpers to build elements.

let ids = 0;

/** An ID that no other element has. */
export const uniqueID = (prefix) => `${prefix}-${++ids}`;

/** An element with properties, attributes (names with a hyphen, role, for) and children. */
export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === false) continue;
    if (name.includes("-") || name === "role" || name === "for") made.setAttribute(name, value);
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made[name] = value;
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

/** A button that copies a text and says so. */
export function copyButton(label, text) {
  const button = element("button", { type: "button", textContent: label });
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(await text());
      button.textContent = "Copied";
    } catch {
      button.textContent = "The browser does not let this page copy";
    }
    setTimeout(() => (button.textContent = label), 2500);
  });
  return button;
}

/** Puts a button that copies beside a block of code. */
export function copyable(code) {
  const frame = element("div", { className: "sample" });
  code.replaceWith(frame);
  frame.append(code, copyButton("Copy", () => code.textContent));
  return frame;
}

/** Waits for the choice in a dialog: true for the button marked data-accept. */
export function ask(dialog) {
  return new Promise((resolve) => {
    let accepted = false;
    const accept = () => {
      accepted = true;
      dialog.close();
    };
    const cancel = () => dialog.close();
    const buttons = [
      [dialog.querySelector("[data-accept]"), accept],
      [dialog.querySelector("[data-cancel]"), cancel],
    ];
    for (const [button, action] of buttons) button.addEventListener("click", action);
    dialog.addEventListener(
      "close",
      () => {
        for (const [button, action] of buttons) button.removeEventListener("click", action);
        resolve(accepted);
      },
      { once: true },
    );
    dialog.showModal();
  });
}

/** A number with its digits in groups of three. */
export const grouped = (n) => n.toLocaleString("en-US");
