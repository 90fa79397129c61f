/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli: lean-runtime-doc, run by the build.
 *
 *   lean-runtime-doc man TEMPLATE    the template with its @part@ lines filled in
 *   lean-runtime-doc bash|zsh|fish   completions
 *   lean-runtime-doc table           one line an option, "verb --name -letter", for the tests
 */
#define LR_ROOM "doc"
#include "src/cli/doc.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "src/base/fd.h"
#include "src/base/str.h"
#include "src/cli/table.h"

static int man(const char *template, struct lr_cli_buf *out, struct lr_err *err)
{
	char line[1024];
	FILE *f = fopen(template, "re");
	int r = 0;

	if (!f)
		return lr_fail(err, errno, "%s", template);
	while (r == 0 && fgets(line, sizeof(line), f)) {
		size_t n = strlen(line);
		bool part = n > 3 && line[0] == '@' && line[n - 2] == '@' && line[n - 1] == '\n';
		if (!part) {
			lr_cli_puts(out, line);
			continue;
		}
		line[n - 2] = '\0';
		if (!lr_cli_doc_man_part(line + 1, out))
			r = lr_refuse(err, EINVAL, "%s: no part \"%s\"", template, line + 1);
	}
	fclose(f);
	return r;
}

static void table(struct lr_cli_buf *out)
{
	for (size_t v = 0; v <= lr_cli_n_verbs; v++) {
		const struct lr_cli_verb *verb = v ? &lr_cli_verbs[v - 1] : NULL;
		for (size_t i = 0; i < lr_cli_n_opts; i++) {
			const struct lr_cli_opt *o = &lr_cli_opts[i];
			if (o->hidden || !lr_cli_takes(o, verb ? verb->id : LR_VERB_GLOBAL))
				continue;
			lr_cli_put(out, "%s --%s", verb ? verb->name : "-", o->name);
			if (o->letter)
				lr_cli_put(out, " -%c", o->letter);
			lr_cli_puts(out, "\n");
		}
	}
}

int main(int argc, char **argv)
{
	LR_CLEANUP_BUF struct lr_cli_buf out = {0};
	struct lr_err err = {0};
	const char *what = argc > 1 ? argv[1] : "";
	int r = 0;

	if (lr_streq(what, "man") && argc == 3)
		r = man(argv[2], &out, &err);
	else if (lr_streq(what, "bash"))
		lr_cli_doc_bash(&out);
	else if (lr_streq(what, "zsh"))
		lr_cli_doc_zsh(&out);
	else if (lr_streq(what, "fish"))
		lr_cli_doc_fish(&out);
	else if (lr_streq(what, "table"))
		table(&out);
	else
		r = lr_refuse(&err, EINVAL, "usage: man TEMPLATE | bash | zsh | fish | table");
	if (r == 0)
		r = lr_cli_flush(&out, &err);
	if (r < 0) {
		char text[1024];
		fprintf(stderr, "%s\n", lr_err_format(&err, text, sizeof(text)));
	}
	return r < 0;
}
