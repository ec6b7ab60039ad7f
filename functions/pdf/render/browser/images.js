// Returns the first of the addresses whose image the browser cannot draw, or "".
//
// An image whose header is broken has no size. Another broken image has a size, and its pixels are missing from a row on:
// a bitmap needs the whole image, and a canvas shows the pixels that exist. A document may read a canvas only if the image
// was requested with CORS. The program draws one image at a time, because each needs memory.
//
// The program uses only names that a document cannot redefine by the names of its elements.
(async (addresses) => {
	const load = async (address, cors) => {
		const image = new Image();
		if (cors) image.crossOrigin = "anonymous";
		image.src = address;
		await image.decode();
		return image;
	};
	const whole = async (address) => {
		const image = await load(address, false);
		if (!/\.svg($|[?#])/i.test(address)) (await createImageBitmap(image)).close(); // SVG has no rows, perhaps no size
		return true;
	};
	const partial = async (address) => {
		const side = 64, canvas = new OffscreenCanvas(side, side).getContext("2d", {willReadFrequently: true});
		canvas.drawImage(await load(address, true), 0, 0, side, side);
		return new Uint32Array(canvas.getImageData(0, 0, side, side).data.buffer).some((pixel) => pixel !== 0);
	};
	const no = () => false;
	for (const address of addresses) {
		if (!await whole(address).catch(no) && !await partial(address).catch(no)) return JSON.stringify(address);
	}
	return `""`;
})(OPTIONS)
