// Waits for fonts: for unused ones, too, of a document that has no layout yet, otherwise for those that the text needs.
(async (unused) => {
	COMMON
	const fonts = get(document, Document, "fonts");
	if (unused) await Promise.allSettled([...fonts].map((face) => FontFace.prototype.load.call(face)));
	else get(root, Element, "clientWidth");
	await fonts.ready;
})(OPTIONS)
