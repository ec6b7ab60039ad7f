// Prepares the empty page, into which a document is set later.
//
// The body of each document is hidden in the window, where nobody sees it: Chromium otherwise lays a document out at its
// load, for the pages, and for the window again. The rule names the size of the window (flags), which no page has, because
// the media type is always print. A new document keeps the adopted sheets.
//
// The policy lets the renderer process refuse what the interception would refuse: a refusal there costs no message. A
// document cannot remove the policy.
(async (base) => {
	if (document.readyState === "loading") await new Promise((parsed) => document.addEventListener("DOMContentLoaded", parsed));
	document.adoptedStyleSheets = [new CSSStyleSheet()];
	document.adoptedStyleSheets[0].insertRule("@media (width:800px) and (height:1px){:root>body{content-visibility:hidden!important}}");
	if (base === "") return;
	const policy = document.createElement("meta");
	policy.httpEquiv = "Content-Security-Policy";
	policy.content = `default-src 'none'; style-src 'unsafe-inline' data: ${base}; img-src data: https: ${base}; ` +
		`font-src data: ${base}; media-src data:; object-src data:; frame-src *`;
	document.head.append(policy);
})(OPTIONS)
