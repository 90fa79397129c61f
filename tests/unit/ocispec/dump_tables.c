/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints every property that a table knows, one a line: "config process.rlimits[].soft u64". "[]"
 * stands for the elements of a list, "{}" for the values of a map. For check_schema.py.
 */
#include <stdio.h>

#include "libocispec/tables.h"

static const char *kind_name(enum oci_kind kind)
{
	switch (kind) {
	case OCI_KIND_STR:
		return "string";
	case OCI_KIND_BOOL:
		return "bool";
	case OCI_KIND_I32:
		return "i32";
	case OCI_KIND_I64:
		return "i64";
	case OCI_KIND_U16:
		return "u16";
	case OCI_KIND_U32:
		return "u32";
	case OCI_KIND_U64:
		return "u64";
	case OCI_KIND_STRV:
		return "list-of-string";
	case OCI_KIND_U32V:
		return "list-of-u32";
	case OCI_KIND_MAP:
		return "map-of-string";
	case OCI_KIND_OBJ:
		return "object";
	case OCI_KIND_LIST:
		return "list-of-object";
	case OCI_KIND_DICT:
		return "map-of-object";
	}
	return "?";
}

static void dump(const char *document, const struct oci_type *type, const char *prefix)
{
	char path[512];

	for (unsigned i = 0; i < type->n; i++) {
		const struct oci_field *f = &type->fields[i];
		const char *below = f->kind == OCI_KIND_LIST   ? "[]."
				    : f->kind == OCI_KIND_DICT ? "{}."
							       : ".";

		printf("%s %s%s %s %s\n", document, prefix, f->name, kind_name(f->kind),
		       f->flags & OCI_REQUIRED ? "required" : "optional");
		if (!f->type)
			continue;
		snprintf(path, sizeof(path), "%s%s%s", prefix, f->name, below);
		dump(document, f->type, path);
	}
}

int main(void)
{
	dump("config", &oci_config_type, "");
	dump("state", &oci_state_type, "");
	return 0;
}
