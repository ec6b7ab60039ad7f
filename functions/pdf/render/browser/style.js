// Gives the document its page rule, before every style sheet, and the title of the request. The rule goes into a sheet
// without text, because a document can display its style elements.
//
// The zoom of the root element scales the margins of the page, too. An important declaration of the element itself
// overrides all sheets and layers; only a running transition overrides that, so the program forbids both.
(({ rule, title }) => {
	COMMON
	const style = Document.prototype.createElementNS.call(document, "http://www.w3.org/1999/xhtml", "style");
	Element.prototype.prepend.call(root, style);
	get(style, HTMLStyleElement, "sheet").insertRule(rule);
	for (const sheet of get(document, Document, "adoptedStyleSheets")) sheet.disabled = false;
	const own = get(root, HTMLElement, "style");
	own.setProperty("transition", "none", "important");
	own.setProperty("zoom", "1", "important");
	if (title !== "") Object.getOwnPropertyDescriptor(Document.prototype, "title").set.call(document, title);
})(OPTIONS)
