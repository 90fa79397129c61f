/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fork/subject.h"

#include <sys/stat.h>

static void put(const char *name, const char *text)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd >= 0) {
		(void)!write(fd, text, strlen(text));
		close(fd);
	}
}

void subject_ready(void)
{
	const struct timespec pause = {.tv_nsec = 2000000};
	struct stat st;

	put("ready", "");
	while (stat("go", &st) < 0)
		if (nanosleep(&pause, NULL) < 0)
			subject_wrong("nanosleep: errno %d", errno);
}

void subject_wrong(const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	put("result.new", text);
	rename("result.new", "result");
	_exit(1);
}

static const struct {
	const char *name;
	void (*run)(void);
} modes[] = {
	{"threads", subject_threads},   {"files", subject_files},
	{"signals", subject_signals},   {"restart", subject_restart},
	{"memory", subject_memory},     {"shared", subject_shared},
	{"tree", subject_tree},         {"vectors", subject_vectors},
	{"timers", subject_timers},     {"sections", subject_sections},
	{"sealed", subject_sealed},     {"owners", subject_owners},
	{"locked", subject_locked},     {"lockedall", subject_lockedall},
	{"advice", subject_advice},     {"settings", subject_settings},
	{"places", subject_places},     {"jail", subject_jail},
	{"kinds", subject_kinds},       {"tiles", subject_tiles},
	{"notiles", subject_notiles},   {"keys", subject_keys},
	{"firstkey", subject_firstkey}, {"brood", subject_brood},
	{"heirs", subject_heirs},
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc == 2 && i < sizeof(modes) / sizeof(modes[0]); i++)
		if (strcmp(argv[1], modes[i].name) == 0) {
			modes[i].run();
			put("result.new", "ok");
			rename("result.new", "result");
			return 0;
		}
	return 2;
}
