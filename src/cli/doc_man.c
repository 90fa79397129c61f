/* SPDX-License-Identifier: Apache-2.0 */
/* cli: the generated parts of the man page, in man(7) macros. */
#include <string.h>

#include "src/base/str.h"
#include "src/cli/doc.h"
#include "src/cli/table.h"

/* Plain text: a dash that must stay a dash, no accidental escape or request. */
static void put_text(struct lr_cli_buf *out, const char *text)
{
	bool start = true;

	for (; *text; text++) {
		if (start && (*text == '.' || *text == '\''))
			lr_cli_puts(out, "\\&");
		if (*text == '\\')
			lr_cli_puts(out, "\\e");
		else if (*text == '-')
			lr_cli_puts(out, "\\-");
		else
			lr_cli_put(out, "%c", *text);
		start = *text == '\n';
	}
}

static void put_option(struct lr_cli_buf *out, const struct lr_cli_opt *o)
{
	lr_cli_puts(out, ".TP\n");
	if (o->letter)
		lr_cli_put(out, "\\fB\\-%c\\fR, ", o->letter);
	if (o->letter2)
		lr_cli_put(out, "\\fB\\-%c\\fR, ", o->letter2);
	lr_cli_puts(out, "\\fB\\-\\-");
	put_text(out, o->name);
	lr_cli_puts(out, "\\fR");
	if (o->value) {
		lr_cli_puts(out, o->kind == LR_KIND_MAYBE ? "[=\\fI" : "=\\fI");
		put_text(out, o->value);
		lr_cli_puts(out, o->kind == LR_KIND_MAYBE ? "\\fR]" : "\\fR");
	}
	lr_cli_puts(out, "\n");
	put_text(out, o->help);
	lr_cli_puts(out, o->repeat ? "; may be given more than once.\n" : ".\n");
}

static void put_options(struct lr_cli_buf *out, uint8_t verb)
{
	for (size_t i = 0; i < lr_cli_n_opts; i++) {
		const struct lr_cli_opt *o = &lr_cli_opts[i];
		bool help = o->id == LR_OPT_HELP &&
			    verb != LR_VERB_GLOBAL; /* said once, not nineteen times */
		if (!o->hidden && !help && lr_cli_takes(o, verb))
			put_option(out, o);
	}
}

static void put_usage(struct lr_cli_buf *out, const struct lr_cli_verb *v)
{
	lr_cli_put(out, "\\fB%s\\fR [\\fIGLOBAL-OPTION\\fR...] \\fB%s\\fR [\\fIOPTION\\fR...]",
		   "lean\\-runtime", v->name);
	if (*v->operands) {
		lr_cli_puts(out, " \\fI");
		put_text(out, v->operands);
		lr_cli_puts(out, "\\fR");
	}
	lr_cli_puts(out, "\n");
}

static void put_command(struct lr_cli_buf *out, const struct lr_cli_verb *v)
{
	lr_cli_put(out, ".SS %s\n", v->name);
	put_usage(out, v);
	lr_cli_puts(out, ".PP\n");
	lr_cli_put(out, "%c", v->summary[0] & ~0x20);
	put_text(out, v->summary + 1);
	lr_cli_puts(out, ".\n");
	if (v->about) {
		put_text(out, v->about);
		lr_cli_puts(out, "\n");
	}
	put_options(out, v->id);
}

bool lr_cli_doc_man_part(const char *part, struct lr_cli_buf *out)
{
	if (lr_streq(part, "header")) {
		lr_cli_put(out,
			   ".TH LEAN\\-RUNTIME 8 \"\" \"lean\\-runtime %s\" "
			   "\"System administration\"\n",
			   LR_VERSION);
		return true;
	}
	if (lr_streq(part, "synopsis")) {
		for (size_t i = 0; i < lr_cli_n_verbs; i++) {
			put_usage(out, &lr_cli_verbs[i]);
			lr_cli_puts(out, ".br\n");
		}
		return true;
	}
	if (lr_streq(part, "globals")) {
		put_options(out, LR_VERB_GLOBAL);
		return true;
	}
	if (lr_streq(part, "commands")) {
		for (size_t i = 0; i < lr_cli_n_verbs; i++)
			put_command(out, &lr_cli_verbs[i]);
		return true;
	}
	return false;
}
