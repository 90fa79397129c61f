/* SPDX-License-Identifier: Apache-2.0 */
/* cli: what --help, help and --version print. */
#define LR_ROOM ""
#include "src/cli/help.h"

#include <errno.h>

#include "libocispec/ocispec.h"
#include "src/cli/args.h"
#include "src/cli/commands.h"
#include "src/cli/commit.h"

#define OPTION_COLUMN 30

/* "-b, --bundle=DIR" */
static void put_heading(const struct lr_cli_opt *o, struct lr_cli_buf *out)
{
	if (o->letter)
		lr_cli_put(out, "-%c, ", o->letter);
	if (o->letter2)
		lr_cli_put(out, "-%c, ", o->letter2);
	bool maybe = o->kind == LR_KIND_MAYBE;
	lr_cli_put(out, "--%s%s%s%s", o->name,
		   maybe      ? "[="
		   : o->value ? "="
			      : "",
		   o->value ? o->value : "", maybe ? "]" : "");
}

static void put_options(uint8_t verb, struct lr_cli_buf *out)
{
	for (size_t i = 0; i < lr_cli_n_opts; i++) {
		const struct lr_cli_opt *o = &lr_cli_opts[i];
		if (o->hidden || !lr_cli_takes(o, verb))
			continue;
		size_t start = out->len;
		lr_cli_puts(out, o->letter ? "  " : "      ");
		put_heading(o, out);
		size_t width = out->len - start;
		if (width + 2 > OPTION_COLUMN) {
			lr_cli_puts(out, "\n");
			width = 0;
		}
		lr_cli_put(out, "%*s%s%s\n", (int)(OPTION_COLUMN - width), "", o->help,
			   o->repeat ? "; repeatable" : "");
	}
}

static void help_all(struct lr_cli_buf *out)
{
	lr_cli_puts(out, LR_CLI_NAME
		    " - run containers as the Open Container Initiative specifies\n\n"
		    "Usage: " LR_CLI_NAME
		    " [GLOBAL-OPTION...] COMMAND [OPTION...] [ARGUMENT...]\n\nCommands:\n");
	for (size_t i = 0; i < lr_cli_n_verbs; i++)
		lr_cli_put(out, "  %-12s%s\n", lr_cli_verbs[i].name, lr_cli_verbs[i].summary);
	lr_cli_puts(out, "\nGlobal options, in front of the command:\n");
	put_options(LR_VERB_GLOBAL, out);
	lr_cli_puts(out, "\n'" LR_CLI_NAME " COMMAND --help' shows the options of a command.\n");
}

void lr_cli_help(const struct lr_cli_verb *verb, struct lr_cli_buf *out)
{
	if (!verb) {
		help_all(out);
		return;
	}
	lr_cli_put(out, "%s %s - %s\n\nUsage: %s [GLOBAL-OPTION...] %s [OPTION...]%s%s\n",
		   LR_CLI_NAME, verb->name, verb->summary, LR_CLI_NAME, verb->name,
		   *verb->operands ? " " : "", verb->operands);
	if (verb->about)
		lr_cli_put(out, "\n%s\n", verb->about);
	lr_cli_puts(out, "\nOptions:\n");
	put_options(verb->id, out);
}

int lr_cmd_help(const struct lr_cli_args *args, struct lr_err *err)
{
	LR_CLEANUP_BUF struct lr_cli_buf out = {0};
	const struct lr_cli_verb *verb = NULL;

	if (args->n_operands && !(verb = lr_cli_verb_find(args->operands[0])))
		return lr_refuse(err, EINVAL, "unknown command \"%s\"", args->operands[0]);
	lr_cli_help(verb, &out);
	return lr_cli_flush(&out, err);
}

const char *lr_cli_commit(void)
{
	return LR_COMMIT;
}

void lr_cli_version(struct lr_cli_buf *out)
{
	/* Docker reads the first line and these two keys, and trips over any further line that
	 * has the word in it. */
	lr_cli_put(out, "%s version %s\ncommit: %s\nspec: %s\n", LR_CLI_NAME, LR_VERSION,
		   lr_cli_commit(), OCI_VERSION);
}
