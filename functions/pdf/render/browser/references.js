// Writes the values of target-counter(), target-text() and leader() (CSS Generated Content for Paged Media 3, sections 3 and
// 4) into the document: the browser drops a declaration with any of them, so the rule gets the declaration with attr() in
// their places, and each element that the rule matches gets the attributes. The result names the declarations that are
// written, and the fragments of the places whose pages setPages has to be given.
(({ declarations }) => {
	COMMON
	// A path is the text of a rule with the rules around it, as the browser writes them.
	const step = (rule) => "\n" + (rule.selectorText ?? rule.conditionText ?? rule.name ?? "");
	const pathOf = (rules) => {
		const sheet = new CSSStyleSheet();
		sheet.replaceSync(rules.join("{") + "{" + "}".repeat(rules.length));
		let path = "", depth = 0;
		for (let rule = sheet.cssRules[0]; rule !== undefined; rule = rule.cssRules?.[0], depth++) path += step(rule);
		return depth === rules.length ? path : "";
	};
	const rulesAt = new Map(), lists = [];
	for (const sheet of get(document, Document, "styleSheets")) {
		const media = sheet.ownerNode instanceof HTMLStyleElement ? sheet.media.mediaText : "";
		lists.push([sheet, media === "" ? "" : "\n" + media]);
	}
	for (let list = lists.pop(); list !== undefined; list = lists.pop()) {
		let rules = [];
		try {
			rules = list[0].cssRules;
		} catch { } // of a style sheet that was not loaded
		for (const rule of rules) {
			const path = list[1] + step(rule);
			if (rule instanceof CSSStyleRule) rulesAt.set(path, [...rulesAt.get(path) ?? [], rule]);
			if (rule.styleSheet ?? rule.cssRules) lists.push(rule.styleSheet ? [rule.styleSheet, ""] : [rule, path]);
		}
	}

	const roman = (n) => [["m", 1000], ["cm", 900], ["d", 500], ["cd", 400], ["c", 100], ["xc", 90], ["l", 50], ["xl", 40], ["x", 10],
		["ix", 9], ["v", 5], ["iv", 4], ["i", 1]].reduce((text, [digit, value]) => {
		for (; n >= value; n -= value) text += digit;
		return text;
	}, "");
	const alpha = (n) => (n > 0 ? alpha(Math.floor((n - 1) / 26)) + String.fromCharCode(97 + (n - 1) % 26) : "");
	const styles = {
		"decimal": String, "decimal-leading-zero": (n) => String(n).padStart(2, "0"), "lower-roman": roman, "lower-alpha": alpha,
		"upper-roman": (n) => roman(n).toUpperCase(), "upper-alpha": (n) => alpha(n).toUpperCase(),
	};
	const fills = { dotted: ".\u00a0", solid: "_", space: "\u00a0" };
	const unquote = (text) => text.slice(1, -1).replace(/\\([0-9a-f]{1,6})\s?|\\(.)/gi, (_, code, c) => (code ? String.fromCodePoint(parseInt(code, 16)) : c));
	const plain = (text) => text.replace(/\s+/g, " ").trim();
	const generated = (e, pseudo) => {
		const { content } = getComputedStyle(e, pseudo);
		return /^"[^"]*"$/.test(content) ? unquote(content) : content === "none" || content === "normal" ? "" : undefined;
	};
	const longest = 500; // characters of a text: a document may have the text of its body 10,000 times
	const textOf = {
		"content": (e) => plain(get(e, Node, "textContent")), "first-letter": (e) => plain(get(e, Node, "textContent")).slice(0, 1),
		"before": (e) => generated(e, "::before"), "after": (e) => generated(e, "::after"),
	};

	// The place that an address of this document names, null for none; undefined for an address elsewhere.
	const here = get(document, Node, "baseURI").replace(/#.*/s, "");
	const placeOf = (address) => {
		let url, name;
		try {
			url = new URL(address, here);
			name = decodeURIComponent(url.hash.slice(1));
		} catch { }
		if (!name || url.href !== here + url.hash) return undefined;
		const e = Document.prototype.getElementById.call(document, name) ?? all(`a[name="${CSS.escape(name)}"]`)[0];
		return e === undefined ? null : { e, fragment: url.hash.slice(1) };
	};
	const functions = new RegExp(String.raw`target-(counter|text)\(\s*(?:attr\(\s*([\w-]+)[^()]*\)|("[^"]*"|'[^']*')|url\(\s*([^()]*?)\s*\))\s*` +
		String.raw`(?:,\s*([\w-]+)\s*)?(?:,\s*([\w-]+)\s*)?\)|leader\(\s*("[^"]+"|'[^']+'|dotted|solid|space)\s*\)`, "gi");
	const pages = [], leaders = [], written = new Set();
	let references = 0;
	for (const [i, { Rules, Property, Value }] of declarations.entries()) {
		const rules = rulesAt.get(pathOf(Rules ?? []));
		if (Property !== "content" || rules === undefined) continue;
		const parts = [];
		const value = Value.replace(/!\s*important\s*$/i, "").replace(functions, (whole, kind, attributeName, quoted, url, first, second, fill) => {
			const part = { kind: (kind ?? "leader").toLowerCase(), name: "svc-reference-" + references++, fill };
			part.address = (e) => (attributeName ? attribute(e, attributeName) : quoted ? unquote(quoted) : (url ?? "").replace(/^(["'])(.*)\1$/, "$2"));
			if (part.kind === "counter" && first === "page") part.write = styles[second ?? "decimal"];
			if (part.kind === "text" && second === undefined) part.write = textOf[first ?? "content"];
			if (part.kind !== "leader" && part.write === undefined) return whole;
			parts.push(part);
			return `attr(${part.name})`;
		});
		if (parts.length === 0 || !CSS.supports("content", value.replace(substituted, "''"))) continue;
		let complete = true;
		const set = (e, { name }, text) => Element.prototype.setAttribute.call(e, name, text);
		for (const e of matched(Rules)) {
			for (const part of parts) {
				if (part.kind === "leader") {
					const pseudo = Rules.at(-1).match(/:(before|after|marker)/i)?.[1];
					leaders.push({ e, pseudo: pseudo && "::" + pseudo, name: part.name, fill: fills[part.fill.toLowerCase()] ?? unquote(part.fill) });
					continue;
				}
				const place = placeOf(part.address(e));
				if (place && part.kind === "counter") {
					pages.push({ e, part, fragment: place.fragment, declaration: i });
					set(e, part, "00");
					continue;
				}
				const text = place ? part.write(place.e) : "";
				complete &&= place !== null && text?.length <= longest;
				set(e, part, (text ?? "").slice(0, longest));
			}
		}
		for (const rule of rules) rule.style.setProperty("content", value, /!\s*important\s*$/i.test(Value) ? "important" : "");
		if (complete) written.add(i);
	}
	// The browser writes a place into the PDF where a link names the place.
	const fragments = [...new Set(pages.map(({ fragment }) => fragment))];
	for (const fragment of fragments) {
		const link = Document.prototype.createElementNS.call(document, "http://www.w3.org/1999/xhtml", "a");
		link.href = "#" + fragment;
		link.style.setProperty("display", "none", "important");
		Element.prototype.append.call(root, link);
	}

	// Leaders fill their lines: each repeats as often as its block grows neither higher nor wider.
	const blockOf = (e) => {
		while (e !== root && /^(inline|contents)/.test(getComputedStyle(e).display)) e = get(e, Node, "parentElement");
		return e;
	};
	const canvas = new OffscreenCanvas(1, 1).getContext("2d"), side = (e, name) => get(e, Element, name);
	const fit = () => {
		const repeat = (leader, n) => Element.prototype.setAttribute.call(leader.e, leader.name, leader.fill.repeat(n));
		const size = ({ block }) => [Element.prototype.getBoundingClientRect.call(block).height, side(block, "scrollWidth")];
		for (const leader of leaders) repeat(leader, leader.low = 3);
		for (const leader of leaders) {
			leader.block = blockOf(leader.e);
			const style = getComputedStyle(leader.e, leader.pseudo);
			canvas.font = [style.fontStyle, style.fontWeight, style.fontSize, style.fontFamily].join(" ");
			leader.size = size(leader);
			leader.high = Math.max(3, Math.min(1000, Math.floor(side(leader.block, "clientWidth") / canvas.measureText(leader.fill).width) || 3));
		}
		while (leaders.some(({ low, high }) => low < high)) {
			for (const leader of leaders) repeat(leader, leader.n = Math.ceil((leader.low + leader.high) / 2));
			for (const leader of leaders) leader.fits = size(leader).every((length, i) => length <= leader.size[i] + 0.5);
			for (const leader of leaders) leader[leader.fits ? "low" : "high"] = leader.fits ? leader.n : Math.max(leader.low, leader.n - 1);
		}
		for (const leader of leaders) repeat(leader, leader.low);
	};
	// setPages writes the pages of the fragments, 0 for none, and returns the declarations that name a place without a page.
	globalThis.svcSetPages = (numbers) => {
		const without = new Set();
		for (const { e, part, fragment, declaration } of pages) {
			if (!numbers[fragment]) without.add(declaration);
			Element.prototype.setAttribute.call(e, part.name, numbers[fragment] ? part.write(numbers[fragment]) : "");
		}
		if (leaders.length > 0) fit();
		return JSON.stringify([...without]);
	};
	return JSON.stringify({ written: [...written], fragments, leaders: leaders.length });
})(OPTIONS)
