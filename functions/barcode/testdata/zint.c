/* Encodes a text COUNT times with libzint: zint TYPE DATA COUNT, where TYPE is C128, which writes PNGs to the standard
   output, or QR for a QR code of level M that is not drawn. Writes the nanoseconds of processor time per symbol, and
   its modules per side, to the standard error. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zint.h>

int main(int argc, char **argv)
{
	struct zint_symbol *symbol = ZBarcode_Create();
	if (argc != 4 || symbol == NULL) {
		return 2;
	}
	long count = atol(argv[3]);
	int draw = strcmp(argv[1], "C128") == 0;
	symbol->symbology = draw ? BARCODE_CODE128 : BARCODE_QRCODE;
	if (draw) {
		symbol->scale = 1;   /* two pixels a module */
		symbol->height = 40; /* modules: 80 pixels */
		symbol->show_hrt = 0;
		symbol->output_options |= BARCODE_NO_QUIET_ZONES | BARCODE_STDOUT;
	} else {
		symbol->option_1 = 2; /* level M */
	}

	int width = 0;
	clock_t start = clock();
	for (long i = 0; i < count; i++) {
		if (ZBarcode_Encode(symbol, (unsigned char *)argv[2], 0) >= ZINT_ERROR ||
				(draw && ZBarcode_Print(symbol, 0) >= ZINT_ERROR)) {
			fprintf(stderr, "%s\n", symbol->errtxt);
			return 1;
		}
		width = symbol->width;
		ZBarcode_Clear(symbol);
	}
	fprintf(stderr, "%.0f %d\n", (clock() - start) * (1e9 / CLOCKS_PER_SEC) / count, width);
	ZBarcode_Delete(symbol);
	return 0;
}
