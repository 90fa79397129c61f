/* SPDX-License-Identifier: Apache-2.0 */
/* cli: the parser. One pass over argv, driven by the table; one block of memory. */
#define LR_ROOM ""
#include "src/cli/args.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/str.h"
#include "src/cli/number.h"

struct parser {
	char **argv; /* what is left; NULL-terminated */
	uint8_t verb;
	struct lr_cli_args *args;
	struct lr_err *err;
};

static const char *verb_name(const struct parser *p)
{
	return p->args->verb ? p->args->verb->name : NULL;
}

/* runc: a wrong command line is status 1 even for exec, whose own failures are 255. */
static void usage_error(struct lr_err *err)
{
	err->terse = true;
	err->exit_code = 1;
}

/* Every usage error ends by telling where the options are listed. */
static int see_help(const struct parser *p)
{
	const char *verb = verb_name(p);

	usage_error(p->err);
	return lr_err_hint(p->err, "see '%s%s%s --help'", LR_CLI_NAME, verb ? " " : "",
			   verb ? verb : "");
}

static int unknown_flag(const struct parser *p, const char *word)
{
	/* The dashes of Go's message: one, however many were typed. */
	const char *name = word + (word[1] == '-' ? 2 : 1);
	size_t n = strcspn(name, "=");

	lr_refuse(p->err, EINVAL, "flag provided but not defined: -%.*s", (int)n, name);
	if (p->verb != LR_VERB_GLOBAL && lr_cli_opt_find(LR_VERB_GLOBAL, name, n)) {
		usage_error(p->err);
		return lr_err_hint(p->err, "--%.*s belongs in front of '%s'", (int)n, name,
				   verb_name(p));
	}
	return see_help(p);
}

/* "prefetch:" among the words is of all "prefetch:N", with N from 1. */
static bool is_choice(const char *choices, const char *text)
{
	const char *colon = strchr(text, ':');
	char word[32];
	uint32_t n;

	if (strpbrk(text, " \n") || (colon && colon - text > 30))
		return false;
	if (!colon)
		return lr_has_word(choices, text);
	memcpy(word, text, (size_t)(colon - text) + 1);
	word[colon - text + 1] = 0;
	return lr_has_word(choices, word) && lr_parse_u32(colon + 1, &n) == 0 && n;
}

static int check_value(const struct parser *p, const struct lr_cli_opt *o, const char *text)
{
	int64_t number;
	int r = 0;

	switch (o->kind) {
	case LR_KIND_INT:
		r = lr_parse_i64(text, &number);
		break;
	case LR_KIND_SIZE:
		r = lr_cli_parse_size(text, &number);
		break;
	case LR_KIND_DURATION:
		r = lr_cli_parse_duration(text, &number);
		break;
	case LR_KIND_CHOICE:
		r = is_choice(o->choices, text) ? 0 : -EINVAL;
		break;
	default:
		break;
	}
	if (r == 0)
		return 0;
	/* Callers and habits know runc's words for these two. */
	if (o->id == LR_OPT_LOG_FORMAT)
		lr_refuse(p->err, EINVAL, "invalid log-format: %s", text);
	else if (o->id == LR_OPT_FORMAT)
		lr_refuse(p->err, EINVAL, "invalid format option: %s", text);
	else
		lr_refuse(p->err, EINVAL, "invalid value \"%s\" for flag -%s: %s", text, o->name,
			  r == -ERANGE ? "number out of range" : o->help);
	return see_help(p);
}

static int add(struct parser *p, const struct lr_cli_opt *o, const char *text)
{
	int r = check_value(p, o, text);

	if (r == 0)
		p->args->values[p->args->n_values++] =
			(struct lr_cli_value){.opt = o, .text = text};
	return r;
}

static int add_flag(struct parser *p, const struct lr_cli_opt *o, const char *text)
{
	bool value;

	if (!text)
		return add(p, o, "true");
	if (lr_cli_parse_bool(text, &value) < 0) {
		lr_refuse(p->err, EINVAL, "invalid boolean value \"%s\" for -%s", text, o->name);
		return see_help(p);
	}
	return add(p, o, value ? "true" : "false");
}

static int add_value(struct parser *p, const struct lr_cli_opt *o, const char *value,
		     const char *word)
{
	if (!value && !(value = *p->argv)) {
		lr_refuse(p->err, EINVAL, "flag needs an argument: %s", word);
		return see_help(p);
	}
	if (value == *p->argv)
		p->argv++;
	return add(p, o, value);
}

/* -td, -tu0, -tu 0: letters in one word, as argp takes them: flags, and at the end an option with
 * its value. 0 if they are not that, or if there are too many. */
static int add_letters(struct parser *p, const char *letters, const char *word)
{
	const struct lr_cli_opt *o = NULL;
	size_t flags = 0;
	int r = 0;

	while (letters[flags] && (o = lr_cli_opt_letter(p->verb, letters[flags])) &&
	       o->kind == LR_KIND_FLAG)
		flags++;
	if (!o || o->kind == LR_KIND_MAYBE || flags > LR_CLI_LETTERS_MAX)
		return 0;
	for (size_t i = 0; i < flags && r >= 0; i++)
		r = add_flag(p, lr_cli_opt_letter(p->verb, letters[i]), NULL);
	if (r >= 0 && letters[flags])
		r = add_value(p, o, letters[flags + 1] ? letters + flags + 1 : NULL, word);
	return r < 0 ? r : 1;
}

/* One word that starts with a dash (and is more than a dash); eats its value too. */
static int parse_option(struct parser *p)
{
	const char *word = *p->argv++;
	bool single = word[1] != '-';
	const char *name = word + (single ? 1 : 2);
	size_t n = strcspn(name, "=");
	const char *value = name[n] ? name + n + 1 : NULL;
	const struct lr_cli_opt *o = NULL;

	if (n == 1) /* Go's flag package does not count the dashes */
		o = lr_cli_opt_letter(p->verb, name[0]);
	if (!o)
		o = lr_cli_opt_find(p->verb, name, n);
	if (!o) {
		int r = single && n > 1 ? add_letters(p, name, word) : 0;
		return r ? (r < 0 ? r : 0) : unknown_flag(p, word);
	}
	if (o->kind == LR_KIND_FLAG)
		return add_flag(p, o, value);
	if (o->kind == LR_KIND_MAYBE)
		return add(p, o, value ? value : "");
	return add_value(p, o, value, word);
}

static bool is_option(const char *word)
{
	return word && word[0] == '-' && word[1];
}

static int parse_globals(struct parser *p)
{
	while (is_option(*p->argv)) {
		if (lr_streq(*p->argv, "--")) {
			p->argv++;
			break;
		}
		int r = parse_option(p);
		if (r < 0)
			return r;
	}
	const char *name = *p->argv;
	if (!name)
		return 0;
	p->args->verb = lr_cli_verb_find(lr_streq(name, "h") ? "help" : name);
	if (!p->args->verb) {
		lr_refuse(p->err, EINVAL, "unknown command \"%s\"", name);
		return see_help(p);
	}
	p->verb = p->args->verb->id;
	p->argv++;
	return 0;
}

static int parse_verb(struct parser *p)
{
	const struct lr_cli_verb *verb = p->args->verb;
	struct lr_cli_args *args = p->args;

	while (*p->argv) {
		bool options = !verb->command || args->n_operands == 0 || verb->own_opts_after;
		if (options && lr_streq(*p->argv, "--")) {
			p->argv++;
			break;
		}
		if (options && is_option(*p->argv)) {
			int r = parse_option(p);
			if (r < 0)
				return r;
			continue;
		}
		if (verb->command && args->n_operands == 1)
			break;
		args->operands[args->n_operands++] = *p->argv++;
	}
	while (*p->argv)
		args->operands[args->n_operands++] = *p->argv++;
	return 0;
}

/* Enough for what people and managers type. Not the heap: whoever has no other use for it, such as
 * the program until it has executed itself again, saves the system calls that set it up. */
static _Alignas(max_align_t) char usual[4096];

int lr_cli_parse(int argc, char **argv, struct lr_cli_args *ret, struct lr_err *err)
{
	size_t words = argc > 0 ? (size_t)argc : 1, letters = 0;

	/* Each word is at most one operand, or one option, or a handful of letters. */
	for (int i = 1; i < argc; i++)
		if (argv[i][0] == '-')
			letters += LR_CLI_LETTERS_MAX;
	size_t n_values = words + letters;
	size_t size = n_values * sizeof(struct lr_cli_value) + (words + 1) * sizeof(char *);
	char *block = size <= sizeof(usual) ? memset(usual, 0, size) : calloc(1, size);
	*ret = (struct lr_cli_args){0};
	if (!block)
		return lr_fail(err, ENOMEM, "command line");
	ret->argv = argv;
	ret->values = (struct lr_cli_value *)block;
	ret->operands = (char **)(block + n_values * sizeof(struct lr_cli_value));

	struct parser p = {.argv = argv + (argc > 0), .args = ret, .err = err};
	int r = parse_globals(&p);
	if (r == 0 && ret->verb)
		r = parse_verb(&p);
	return r;
}

void lr_cli_args_free(struct lr_cli_args *args)
{
	if ((char *)args->values != usual)
		free(args->values); /* operands are in the same block */
	*args = (struct lr_cli_args){0};
}

int lr_cli_check_operands(const struct lr_cli_args *args, struct lr_err *err)
{
	const struct lr_cli_verb *v = args->verb;
	const struct parser p = {.verb = v->id, .args = (struct lr_cli_args *)args, .err = err};

	if (args->n_operands >= v->min && (v->max == LR_ANY_ARGS || args->n_operands <= v->max))
		return 0;
	if (v->min == v->max)
		lr_refuse(err, EINVAL, "\"%s\" requires exactly %u argument(s)", v->name, v->min);
	else if (args->n_operands < v->min)
		lr_refuse(err, EINVAL, "\"%s\" requires a minimum of %u argument(s)", v->name,
			  v->min);
	else
		lr_refuse(err, EINVAL, "\"%s\" requires a maximum of %u argument(s)", v->name,
			  v->max);
	return see_help(&p);
}
