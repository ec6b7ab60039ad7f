// A document can name its elements and the controls of its forms after each property, so getters and methods are called
// through their prototypes.
const get = (object, of, name) => Object.getOwnPropertyDescriptor(of.prototype, name).get.call(object);
const attribute = (e, name) => Element.prototype.getAttribute.call(e, name) ?? "";
const all = (selector) => [...Document.prototype.querySelectorAll.call(document, selector)];
const root = get(document, Document, "documentElement");
const once = (test, results = new Map()) => (text) => results.get(text) ?? results.set(text, test(text)).get(text);
const matches = once((query) => matchMedia(query).matches);
// The elements that the innermost of rules matches, of a rule of pages the root.
const pseudo = "::?(?:before|after|marker|first-line|first-letter|footnote-call|footnote-marker)";
const matched = (rules) => {
	let selector = "";
	for (const rule of rules) {
		if (/^@media/i.test(rule) && !matches(rule.slice(6)) || /^@supports/i.test(rule) && !CSS.supports(rule.slice(9).trim())) return [];
		if (/^@(page|footnote)/i.test(rule)) return [root];
		if (/^@(media|supports|layer)/i.test(rule)) continue;
		if (rule.startsWith("@")) return [];
		selector = selector === "" ? rule : rule.includes("&") ? rule.replaceAll("&", `:is(${selector})`) : `:is(${selector}) :is(${rule})`;
	}
	try {
		return all(selector.replace(new RegExp("(^|[\\s>+~,(])" + pseudo, "gi"), "$1*").replace(new RegExp(pseudo, "gi"), ""));
	} catch {
		return []; // no selector of this browser
	}
};
const substituted = /(attr|var)\([^()]*\)/gi; // any value with these parses
