/* SPDX-License-Identifier: Apache-2.0 */
/* The file of update --resources. */
#include "libocispec/tables.h"

#define DOCUMENT               resources
#define ENCODE(object, a, len) oci_table_encode_text(&oci_resources_type, object, false, a, len)
#include "tests/fuzz/fuzz_document.h"
