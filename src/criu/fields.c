/* SPDX-License-Identifier: Apache-2.0 */
/* criu: fields, one by one. A field is a number and a kind (one varint), then a varint, or a length and
 * so many bytes. */
#include <errno.h>
#include <stdbool.h>

#include "src/criu/fields.h"

static bool get_varint(struct lr_criu_in *in, uint64_t *ret)
{
	uint64_t v = 0;

	for (unsigned shift = 0; shift < 64 && in->at < in->end; shift += 7) {
		uint8_t byte = *in->at++;
		v |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*ret = v;
			return true;
		}
	}
	return false;
}

int lr_criu_next(struct lr_criu_in *in, struct lr_criu_field *ret)
{
	uint64_t tag, n = 0;

	*ret = (struct lr_criu_field){0};
	if (in->at == in->end)
		return 0;
	if (!get_varint(in, &tag))
		return -EBADMSG;
	ret->number = tag >> 3;
	ret->wire = (enum lr_criu_wire)(tag & 7);
	switch (ret->wire) {
	case LR_CRIU_WIRE_VARINT:
		return get_varint(in, &ret->value) ? 1 : -EBADMSG;
	case LR_CRIU_WIRE_BYTES:
		if (!get_varint(in, &n))
			return -EBADMSG;
		break;
	case LR_CRIU_WIRE_FIXED64:
		n = 8;
		break;
	case LR_CRIU_WIRE_FIXED32:
		n = 4;
		break;
	default:
		return -EBADMSG;
	}
	if (n > (uint64_t)(in->end - in->at))
		return -EBADMSG;
	ret->bytes = (struct lr_criu_in){in->at, in->at + n};
	in->at += n;
	return 1;
}
