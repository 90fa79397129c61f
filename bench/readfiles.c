/* SPDX-License-Identifier: Apache-2.0 */
/*
 * readfiles DIR: loads each file of DIR and below into memory, one after the other, and writes
 * "FILES BYTES SUM": SUM is that of all files' 64-bit words, modulo 2^64, so it doesn't depend on
 * the order and can't be had without reading everything. It is in the images of `lean-bench
 * lifecycle`, the same for every base.
 */
#include <err.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static uint64_t files, bytes, sum;

static void read_file(const char *path)
{
	static uint64_t words[8192];
	ssize_t n;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		err(1, "%s", path);
	for (;;) {
		memset(words, 0, sizeof words);
		n = read(fd, words, sizeof words);
		if (n < 0)
			err(1, "%s", path);
		if (n == 0)
			break;
		bytes += (uint64_t)n;
		for (ssize_t i = 0; i < (n + 7) / 8; i++)
			sum += words[i];
	}
	files++;
	close(fd);
}

static int each(const char *path, const struct stat *st, int kind, struct FTW *where)
{
	(void)st;
	(void)where;
	if (kind == FTW_F)
		read_file(path);
	else if (kind == FTW_DNR || kind == FTW_NS)
		errx(1, "%s: can't be read", path);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc != 2)
		errx(2, "usage: readfiles DIR");
	if (nftw(argv[1], each, 16, FTW_PHYS) < 0)
		err(1, "%s", argv[1]);
	printf("%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", files, bytes, sum);
	return 0;
}
