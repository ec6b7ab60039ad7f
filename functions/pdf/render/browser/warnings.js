// Finds what the page does not show, after it was printed. The browser now has the media type print and the width of the
// printed page. boxes: some may scroll; glyphs: private-use characters may be shown; images: style sheets may
// have blocked images; refused: addresses that the page did not load; shrunk: the browser printed the text smaller;
// declarations: those that the browser may drop; styles: a style sheet names what was not loaded; strict: up to three
// elements of each warning get a selector, and an ID that a link of the document refers to, so that the next PDF names their pages.
(({ boxes, glyphs, declarations, images, refused, shrunk, styles, strict }) => {
	COMMON
	const has = (e, name) => Element.prototype.hasAttribute.call(e, name);
	const within = (e, selector) => Element.prototype.closest.call(e, selector) !== null;
	const shown = (e) => Element.prototype.checkVisibility.call(e, { visibilityProperty: true });
	const found = {}, blocked = new Set(refused);
	const note = (warning, e) => (found[warning] ??= []).push(e);

	// The executable types (HTML, 4.12.1): other scripts are data.
	const executable = /^(module|((text|application)\/(x-)?(java|ecma|j|live)script[\d.]*)?)$/;
	const isProgram = once((type) => executable.test(type.trim().toLowerCase()));
	const runs = (e) => isProgram(attribute(e, "type")) && !has(e, "nomodule") && !within(e, "noscript");
	const external = (e) => ["svc-blocked", "src", "href"].some((name) => has(e, name));
	const isStyle = once((rel) => /(^|\s)stylesheet(\s|$)/i.test(rel) && !/(^|\s)alternate(\s|$)/i.test(rel));
	const applies = (e) => isStyle(attribute(e, "rel")) && !has(e, "disabled") && matches(attribute(e, "media"));
	const localName = Object.getOwnPropertyDescriptor(Element.prototype, "localName").get;
	const missed = (e) => {
		switch (localName.call(e)) {
			case "script": return runs(e);
			case "link": return applies(e);
			case "embed": case "source": case "track": return !within(e, "picture") && shown(get(e, Node, "parentElement"));
		}
		return shown(e);
	};
	const block = (e, addresses) => {
		for (const address of addresses.split("\n")) blocked.add(address);
		note("resources-blocked", e);
	};
	for (const e of all("[svc-blocked]")) if (missed(e)) block(e, attribute(e, "svc-blocked"));
	const sheets = all("style").filter((e) => get(e, HTMLStyleElement, "sheet") !== null && matches(attribute(e, "media")));
	const texts = sheets.map((e) => get(e, Node, "textContent"));
	for (const [i, text] of texts.entries()) {
		for (const [, address, media] of text.matchAll(/@svc-blocked +(?:url\()?\s*["']?([^"')\s;]+)["']?\s*\)?([^;]*)/gi)) if (matches(media)) block(sheets[i], address);
	}
	const text = texts.join().toLowerCase();
	// The images of style attributes, and those of style sheets, which elements and pseudo-elements may have.
	const properties = [["background", "backgroundImage"], ["border", "borderImageSource"], ["mask", "maskImage"], ["content", "content"]]
		.filter(([name]) => images && (text.includes(name) || all(`[svc-style][style*="${name}" i]`).length > 0)).map(([, computed]) => computed);
	const imagesOf = (e, pseudo) => {
		const style = getComputedStyle(e, pseudo);
		let value = "";
		for (const name of properties) value += style[name];
		const drawn = !pseudo || style.display !== "none" && style.content !== "none";
		return value.includes("svc-blocked") && drawn && shown(e) ? value : "";
	};
	if (images) {
		for (const e of all("[svc-style]")) if (imagesOf(e)) block(e, attribute(e, "svc-style"));
		const inSheet = text.includes("image-set(");
		const pseudos = ["before", "after", "first-line", "first-letter", "marker"].filter((name) => text.includes(":" + name));
		for (const e of inSheet ? all("*") : []) {
			for (const pseudo of ["", ...pseudos.map((name) => "::" + name)]) {
				for (const [, address] of imagesOf(e, pseudo).matchAll(/url\("([^"]+)"\) \S+ type\("svc-blocked"\)/g)) block(e, address);
			}
		}
	}
	// Fonts that some text needs: the policy refuses the others, too.
	const face = (...of) => JSON.stringify(of), needed = new Set();
	if (styles) {
		for (const f of get(document, Document, "fonts")) {
			if (f.status === "error") needed.add(face(f.family, f.weight, f.style, f.unicodeRange));
		}
		const lists = [...get(document, Document, "styleSheets")]; // and rules with rules of their own, however deep
		for (let sheet = lists.pop(); sheet !== undefined; sheet = lists.pop()) {
			let rules = [];
			try {
				rules = sheet.cssRules;
			} catch { } // of a style sheet that was not loaded
			for (const rule of rules) {
				if (rule instanceof CSSFontFaceRule) {
					const of = (name) => rule.style.getPropertyValue(name);
					const key = face(of("font-family"), of("font-weight") || "normal", of("font-style") || "normal", of("unicode-range") || "U+0-10FFFF");
					for (const [, address] of needed.has(key) ? of("src").matchAll(/url\("((?!data:)[^"]*)"/gi) : []) blocked.add(address);
				} else if (rule.styleSheet ?? rule.cssRules) {
					lists.push(rule.styleSheet ?? rule);
				}
			}
		}
		for (const e of strict ? all("style, [style]") : []) {
			const text = get(e, Element, "localName") === "style" ? get(e, Node, "textContent") : attribute(e, "style");
			if (/url\((?!\s*["']?\s*(data:|#))/i.test(text)) note("resources-blocked", e);
		}
	}
	for (const e of all("script")) {
		if (runs(e) && (external(e) || /\S/.test(get(e, Node, "textContent")))) note("scripts-ignored", e);
	}
	for (const e of all("canvas")) {
		if (shown(e) && get(e, Element, "childElementCount") === 0 && !/\S/.test(get(e, Node, "textContent"))) note("scripts-ignored", e);
	}

	// Declarations that the browser drops, in rules that match an element.
	const dropped = new Set();
	for (const { Rules, Style, Property, Value, Name } of declarations) {
		const value = Value.replace(/!\s*important\s*$/i, "").replace(substituted, "''");
		if (Property !== "" && CSS.supports(Property, value)) continue;
		const [e] = Style === "" ? matched(Rules ?? []) : all(`[style="${CSS.escape(Style)}"]`);
		if (e === undefined) continue;
		dropped.add(Name);
		note("unsupported-css", e);
	}

	// A canvas draws a missing character as the page does: with the measures of another missing one.
	const canvas = new OffscreenCanvas(1, 1).getContext("2d"), known = new Map();
	const measures = (text) => {
		const m = canvas.measureText(text);
		return [m.width, m.actualBoundingBoxLeft, m.actualBoundingBoxRight, m.actualBoundingBoxAscent, m.actualBoundingBoxDescent].join();
	};
	const codes = new Map(); // of the missing private-use characters, which no font shows in a message
	const noteMissing = (e, code) => {
		if (code === "") return;
		codes.set(e, code.trimEnd());
		note("missing-glyphs", e);
	};
	const missing = (style, text) => { // of an element that is shown, or of its pseudo-element
		if (style.display === "none" || style.visibility !== "visible" || parseFloat(style.fontSize) === 0) return "";
		const font = [style.fontStyle, style.fontWeight, style.fontSize, style.fontFamily].join(" ");
		for (const character of text.match(strict ? /[^\x00-\x7f]/gu : /\p{Co}/gu) ?? []) {
			const key = character + font;
			if (!known.has(key)) {
				canvas.font = font;
				known.set(key, measures(character) === measures(/\p{Co}/u.test(character) ? "\u{10fffd}" : "\u0378"));
			}
			if (known.get(key)) return /\p{Co}/u.test(character) ? ` U+${character.codePointAt(0).toString(16).toUpperCase()}` : " ";
		}
		return "";
	};
	if (glyphs) {
		const texts = Document.prototype.createTreeWalker.call(document, root, NodeFilter.SHOW_TEXT);
		for (let text = texts.nextNode(); text !== null; text = texts.nextNode()) {
			const e = get(text, Node, "parentElement"), data = get(text, CharacterData, "data");
			if (/[^\x00-\x7f]/.test(data) && shown(e)) noteMissing(e, missing(getComputedStyle(e), data));
		}
		for (const e of all("body, body *")) {
			for (const pseudo of ["::before", "::after"]) {
				const style = getComputedStyle(e, pseudo);
				if (/[^\x00-\x7f]/.test(style.content) && shown(e)) noteMissing(e, missing(style, style.content));
			}
		}
	}

	// A box that scrolls shows its first part on paper. A box that hides its overflow is meant to.
	const side = (e, name) => get(e, Element, name), width = boxes || shrunk ? side(root, "clientWidth") : 0; // lays the page out
	const scrolls = (overflow) => overflow === "auto" || overflow === "scroll";
	const ofPage = getComputedStyle(root).overflowX === "visible" ? get(document, Document, "body") : null; // whose overflow is the page's
	for (const e of boxes ? all("body, body *") : []) {
		const style = getComputedStyle(e);
		if (e === ofPage || style.overflowX === "visible" && style.overflowY === "visible" || !shown(e) || side(e, "clientWidth") <= 1) continue;
		const wide = side(e, "scrollWidth") > side(e, "clientWidth") + 1, high = side(e, "scrollHeight") > side(e, "clientHeight") + 1;
		if (wide && scrolls(style.overflowX) || high && scrolls(style.overflowY)) note("content-clipped", e);
	}
	const ratio = shrunk ? side(root, "scrollWidth") / width : 0;
	if (ratio > 1.001) {
		const right = (e) => Element.prototype.getBoundingClientRect.call(e).right;
		const widest = strict ? all("body *").reduce((a, b) => (right(b) > right(a) ? b : a), root) : root;
		note("content-shrunk", widest);
		if (ratio > 1.501) note("content-clipped", widest); // Chromium prints text in two thirds of its size, and never smaller
	}

	const selector = (e) => {
		let path = "";
		for (let at = e; at !== null; at = get(at, Node, "parentElement")) {
			const name = get(at, Element, "localName"), id = attribute(at, "id");
			if (id !== "" && all("#" + CSS.escape(id)).length === 1) return "#" + CSS.escape(id) + path;
			let n = 1;
			for (let b = get(at, Element, "previousElementSibling"); b !== null; b = get(b, Element, "previousElementSibling")) {
				if (get(b, Element, "localName") === name) n++;
			}
			const step = CSS.escape(name) + (n > 1 ? `:nth-of-type(${n})` : "");
			if (all(step + path).length === 1) return step + path;
			path = " > " + `${CSS.escape(name)}:nth-of-type(${n})` + path;
		}
		return path.slice(3);
	};
	const instances = {}, marked = new Map();
	const instance = (e) => {
		if (marked.has(e)) return marked.get(e);
		const mark = "svc-mark-" + marked.size;
		marked.set(e, { selector: selector(e).replace(/^(.{200}).+$/s, "$1…") + (codes.get(e) ?? ""), mark });
		Element.prototype.setAttribute.call(e, "id", mark);
		const link = Document.prototype.createElementNS.call(document, "http://www.w3.org/1999/xhtml", "a");
		link.href = "#" + mark;
		link.style.display = "none";
		Element.prototype.append.call(root, link);
		return marked.get(e);
	};
	for (const warning in found) instances[warning] = strict ? [...new Set(found[warning])].slice(0, 3).map(instance) : [];
	return JSON.stringify({ blocked: blocked.size, dropped: [...dropped], instances });
})(OPTIONS)
