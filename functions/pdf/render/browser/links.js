// Returns the links of the document in their order, each with its address and its name for assistive technology: a label, the
// text with the texts of images, or the title. A base element can make each address long, and one label name each link.
(({ longest }) => {
	COMMON
	const text = (e) => {
		const walker = Document.prototype.createTreeWalker.call(document, e, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT);
		let name = "";
		for (let node = walker.currentNode; node !== null && name.length < longest; node = walker.nextNode()) {
			if (node instanceof CharacterData) name += get(node, CharacterData, "data");
			else name += " " + (attribute(node, "aria-label") || attribute(node, "alt")) + " ";
		}
		return name;
	};
	const name = (e) => {
		const labels = attribute(e, "aria-labelledby").split(/\s+/).map((id) => Document.prototype.getElementById.call(document, id));
		const texts = [labels.map((label) => (label === null ? "" : text(label))).join(" "), attribute(e, "aria-label"), text(e), attribute(e, "title")];
		return (texts.map((t) => t.replace(/\s+/g, " ").trim()).find((t) => t !== "") ?? "").slice(0, longest);
	};
	const address = (e) => get(e, e instanceof HTMLAreaElement ? HTMLAreaElement : HTMLAnchorElement, "href");
	let left = 2_000_000;
	const within = (text) => {
		if (text.length > left) return "";
		left -= text.length;
		return text;
	};
	return JSON.stringify(all(":is(a, area)[href]").filter((e) => e instanceof HTMLElement).map((e) => ({ Address: within(address(e)), Name: within(name(e)) })));
})(OPTIONS)
