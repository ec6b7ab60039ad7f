/* Encodes one text over and over with libzint: zint DATA COUNT [FILE] prints nanoseconds per symbol and its modules
   per side. With FILE the symbol is a Code 128 that is drawn as PNG, without FILE a QR code of level M that is not. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zint.h>

int main(int argc, char **argv)
{
	if (argc < 3 || argc > 4) {
		fprintf(stderr, "usage: zint DATA COUNT [FILE]\n");
		return 2;
	}
	long count = atol(argv[2]);
	struct zint_symbol *symbol = ZBarcode_Create();
	if (symbol == NULL || count < 1) {
		return 2;
	}
	symbol->symbology = BARCODE_QRCODE;
	symbol->option_1 = 2; /* level M */
	if (argc == 4) {
		symbol->symbology = BARCODE_CODE128;
		symbol->scale = 1;   /* two pixels a module */
		symbol->height = 40; /* modules: 80 pixels */
		symbol->show_hrt = 0;
		symbol->output_options |= BARCODE_NO_QUIET_ZONES;
		snprintf(symbol->outfile, sizeof symbol->outfile, "%s", argv[3]);
	}

	int width = 0;
	struct timespec start, end;
	clock_gettime(CLOCK_MONOTONIC, &start);
	for (long i = 0; i < count; i++) {
		int code = ZBarcode_Encode(symbol, (unsigned char *)argv[1], 0);
		if (code < ZINT_ERROR && argc == 4) {
			code = ZBarcode_Print(symbol, 0);
		}
		if (code >= ZINT_ERROR) {
			fprintf(stderr, "%s\n", symbol->errtxt);
			return 1;
		}
		width = symbol->width;
		ZBarcode_Clear(symbol);
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	printf("%.0f %d\n", ((end.tv_sec - start.tv_sec) * 1e9 + (end.tv_nsec - start.tv_nsec)) / count, width);
	ZBarcode_Delete(symbol);
	return 0;
}
