/* SPDX-License-Identifier: Apache-2.0 */
/* config.json: whoever writes the bundle chooses its bytes. */
#define DOCUMENT               config
#define ENCODE(object, a, len) oci_config_encode(object, true, a, len)
#include "tests/fuzz/fuzz_document.h"
