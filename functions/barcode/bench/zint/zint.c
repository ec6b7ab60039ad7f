/* Draws one Code 128 as PNG over and over with libzint: zint DATA COUNT FILE prints nanoseconds per picture. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zint.h>

int main(int argc, char **argv)
{
	if (argc != 4) {
		fprintf(stderr, "usage: zint DATA COUNT FILE\n");
		return 2;
	}
	long count = atol(argv[2]);
	struct zint_symbol *symbol = ZBarcode_Create();
	if (symbol == NULL || count < 1 || strlen(argv[3]) >= sizeof symbol->outfile) {
		return 2;
	}
	symbol->symbology = BARCODE_CODE128;
	symbol->scale = 1;   /* two pixels a module */
	symbol->height = 40; /* modules: 80 pixels */
	symbol->show_hrt = 0;
	symbol->output_options |= BARCODE_NO_QUIET_ZONES;
	strcpy(symbol->outfile, argv[3]);

	struct timespec start, end;
	clock_gettime(CLOCK_MONOTONIC, &start);
	for (long i = 0; i < count; i++) {
		if (ZBarcode_Encode_and_Print(symbol, (unsigned char *)argv[1], 0, 0) >= ZINT_ERROR) {
			fprintf(stderr, "%s\n", symbol->errtxt);
			return 1;
		}
		ZBarcode_Clear(symbol);
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	printf("%.0f\n", ((end.tv_sec - start.tv_sec) * 1e9 + (end.tv_nsec - start.tv_nsec)) / count);
	ZBarcode_Delete(symbol);
	return 0;
}
