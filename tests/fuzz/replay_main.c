/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a fuzz target over the files of the given folders: the corpora as ordinary tests. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "tests/fuzz/fuzz.h"

static void replay(int dirfd, const char *name)
{
	LR_CLEANUP_FD int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC);
	struct stat st;

	FUZZ_CHECK(fd >= 0 && fstat(fd, &st) == 0);
	/* Of exactly its size, so that the sanitizer sees a read beyond. */
	uint8_t *data = malloc(st.st_size ? (size_t)st.st_size : 1);
	FUZZ_CHECK(data);
	FUZZ_CHECK(lr_read_full(fd, data, (size_t)st.st_size) == st.st_size);
	LLVMFuzzerTestOneInput(data, (size_t)st.st_size);
	free(data);
}

int main(int argc, char **argv)
{
	size_t files = 0;

	for (int i = 1; i < argc; i++) {
		LR_CLEANUP_DIR DIR *dir = opendir(argv[i]);
		struct dirent *e;

		if (!dir) {
			perror(argv[i]);
			return EXIT_FAILURE;
		}
		while ((e = readdir(dir))) {
			if (e->d_name[0] == '.')
				continue;
			replay(dirfd(dir), e->d_name);
			files++;
		}
	}
	printf("%zu files\n", files);
	return files ? EXIT_SUCCESS : EXIT_FAILURE;
}
