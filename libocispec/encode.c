/* SPDX-License-Identifier: Apache-2.0 */
/* libocispec: the encoders of whole documents; see ocispec.h. */
#include "libocispec/ocispec.h"
#include "libocispec/tables.h"

char *oci_config_encode(const struct oci_config *c, bool indent, struct lr_arena *arena,
			size_t *len)
{
	return oci_table_encode_text(&oci_config_type, c, indent, arena, len);
}

char *oci_process_encode(const struct oci_process *p, struct lr_arena *arena, size_t *len)
{
	return oci_table_encode_text(&oci_process_type, p, false, arena, len);
}

char *oci_state_encode(const struct oci_state *s, bool indent, struct lr_arena *arena, size_t *len)
{
	/* The additions are for callers; hooks get the structure of the specification. */
	bool for_callers = s->rootfs || s->created || s->owner;

	return oci_table_encode_text(for_callers ? &oci_state_type : &oci_hook_state_type, s,
				     indent, arena, len);
}

char *oci_container_process_state_encode(const struct oci_container_process_state *s,
					 struct lr_arena *arena, size_t *len)
{
	return oci_table_encode_text(&oci_container_process_state_type, s, false, arena, len);
}

char *oci_features_encode(const struct oci_features *f, bool indent, struct lr_arena *arena,
			  size_t *len)
{
	return oci_table_encode_text(&oci_features_type, f, indent, arena, len);
}
